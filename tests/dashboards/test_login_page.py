"""Tests of what stands before the pages: who is let in, and what is said when the configuration has become wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards import login_page
from hopwatch.dashboards.views.access import explain_refusal
from hopwatch.monitor import settings
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings.dashboard import LoginSettings
from tests.support.dashboard_stores import PATIENCE_S, build_windows, fill, read_page
from tests.support.login_settings import HIDDEN, LOGIN, SIGNING
from tests.support.workspace import CONFIGURATION, Workspace

ALLOWED = frozenset({"@host.example", "guest@other.example"})
GUEST = "guest@other.example"
NOBODY = "The provider gives no e-mail address of yours"


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"email": "on-call@host.example"}, ""),
        ({"email": "On-Call@HOST.example", "email_verified": True}, ""),
        ({"email": GUEST}, ""),
        ({"email": "other@other.example"}, "other@other.example is not among the addresses that have access."),
        ({"email": "on-call@sub.host.example"}, "on-call@sub.host.example is not among the addresses"),
        ({"email": "on-call@evil-host.example"}, "on-call@evil-host.example is not among the addresses"),
        (
            {"email": "on-call@host.example@evil.example"},
            "on-call@host.example@evil.example is not among the addresses",
        ),
        ({"email": GUEST, "email_verified": False}, f"The provider has not verified the address {GUEST}."),
        ({"email": GUEST, "email_verified": "false"}, f"The provider has not verified the address {GUEST}."),
        ({"email": ""}, NOBODY),
        ({"email": "host.example"}, NOBODY),
        ({"email": ["on-call@host.example"]}, NOBODY),
        ({"name": "on-call@host.example"}, NOBODY),
        ({}, NOBODY),
    ],
)
def test_who_is_let_in(user: dict[str, Any], told: str) -> None:
    """By the address that the provider tells, whole or by its domain, however it is written."""
    found = explain_refusal(user, ALLOWED)
    assert found.startswith(told) if told else found == ""


def test_without_a_list_the_provider_decides() -> None:
    """Without a list, everybody whom the provider lets in is let in."""
    assert explain_refusal({}, ()) == ""


@given(st.emails())
def test_nobody_else_is_let_in(email: str) -> None:
    """Only addresses of the list and of its domains are let in."""
    is_theirs = email.lower() == GUEST or email.lower().endswith("@host.example")
    assert (explain_refusal({"email": email}, ALLOWED) == "") is is_theirs


def login(folder: Path, more: str = "") -> LoginSettings:
    """Return a login as a configuration has it."""
    file = folder / "login.toml"
    file.write_text(LOGIN + more)
    found = settings.load(file, flags={}, environ={}).dashboard.login
    assert found is not None
    return found


def test_streamlit_is_told_all_that_it_wants(tmp_path: Path) -> None:
    """A secret for cookies that is not configured is another one at each start."""
    one, other = (login_page.build_secrets(login(tmp_path)) for _ in range(2))
    assert one["auth"]["client_secret"] == HIDDEN
    assert one["auth"]["redirect_uri"] == "https://hopwatch.example/oauth2callback"
    assert len(one["auth"]["cookie_secret"]) == 64
    assert one["auth"]["cookie_secret"] != other["auth"]["cookie_secret"]
    kept = login_page.build_secrets(login(tmp_path, 'allowed = ["@a.example"]\n' + f'cookie_secret = "{SIGNING}"\n'))
    assert kept["auth"]["cookie_secret"] == SIGNING
    assert kept["hopwatch"] == {"allowed": ["@a.example"]}


def test_a_login_that_streamlit_was_not_told_of_is_refused(tmp_path: Path) -> None:
    """A login of which Streamlit was not told is refused with a configuration error."""
    login_page.check_login(None)
    with pytest.raises(ConfigurationError, match=r"a \[dashboard.login\] that this dashboard was not started with"):
        login_page.check_login(login(tmp_path))


def run(config: Path) -> AppTest:
    """Run the app as Streamlit does, over a configuration."""
    return AppTest.from_function(_run, args=(str(config),), default_timeout=PATIENCE_S).run()


def _run(config: str) -> None:
    from hopwatch.dashboards import app  # noqa: PLC0415 - the source is all that it has

    app.run(config)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "hopwatch.toml cannot be read: No such file or directory"),
        ("[store\n", "hopwatch.toml:1:7: not TOML"),
        ('[store]\nurl = "mysql://me:T0P@h/d"\n', "hopwatch.toml:2: store.url: a store is a SQLite file"),
        (LOGIN, "a [dashboard.login] that this dashboard was not started with"),
    ],
)
def test_a_configuration_that_has_become_wrong_is_told(text: str | None, told: str, tmp_path: Path) -> None:
    """With file and line, no traceback and no password; once it is right again the page goes on."""
    place = Workspace(tmp_path)
    fill(place.store_url, *build_windows()).dispose()
    if text is not None:
        place.configure(text)
    tested = run(place.config)
    assert not tested.exception
    (said,) = tested.error
    assert said.value.startswith("The configuration has become wrong")
    assert told in tested.code[0].value
    assert "T0P" not in read_page(tested)
    place.configure(CONFIGURATION)
    tested.run()
    assert not tested.exception
    assert "stream=orders" in read_page(tested)
