"""Tests of ``[dashboard]`` and its login: what is right, what is said of what is not, where secrets may stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.dashboard import parse_origin
from tests.support.login_settings import HIDDEN, LOGIN, SIGNING


def login(folder: Path, text: str = LOGIN, **environ: str) -> Any:  # noqa: ANN401 - the settings of one table
    """Return what a file and variables make of the table."""
    file = folder / "h.toml"
    file.write_text(text)
    return load(file, flags={}, environ=environ).dashboard.login


def test_without_a_word_nobody_is_asked(tmp_path: Path) -> None:
    """There is no login by default."""
    assert login(tmp_path, "") is None


def test_a_login_has_all_that_the_provider_wants(tmp_path: Path) -> None:
    """A login has its discovery and callback URLs, and everybody whom the provider knows is allowed."""
    found = login(tmp_path)
    assert found.discovery_url == "https://id.example/realms/ops/.well-known/openid-configuration"
    assert found.callback_url == "https://hopwatch.example/oauth2callback"
    assert (found.read_secret("client_secret"), found.read_secret("cookie_secret"), found.allowed) == (HIDDEN, "", ())
    assert HIDDEN not in repr(found)


def test_the_page_that_a_provider_is_known_by_may_be_named_in_full(tmp_path: Path) -> None:
    """As its documents have it."""
    text = LOGIN.replace("/realms/ops", "/realms/ops/.well-known/openid-configuration")
    assert login(tmp_path, text) == login(tmp_path)


def test_addresses_and_domains_are_let_in_however_they_are_written(tmp_path: Path) -> None:
    """As a list in the file, with blanks between them in a variable."""
    text = LOGIN + 'allowed = ["@Host.example", "On-Call@other.example"]\n'
    expected = ("@host.example", "on-call@other.example")
    assert login(tmp_path, text).allowed == expected
    assert (
        login(tmp_path, HOPWATCH_DASHBOARD__LOGIN__ALLOWED="@host.example  on-call@other.example").allowed == expected
    )


def test_a_secret_may_stand_in_a_file_or_a_variable(tmp_path: Path) -> None:
    """A variable comes before both forms in the file, and one of digits is text."""
    (tmp_path / "secret").write_text("in-a-file\n")
    text = LOGIN.replace(f'client_secret = "{HIDDEN}"', 'client_secret_file = "secret"')
    assert login(tmp_path, text).read_secret("client_secret") == "in-a-file"
    environ = {"HOPWATCH_DASHBOARD__LOGIN__CLIENT_SECRET": "123"}
    assert login(tmp_path, text, **environ).read_secret("client_secret") == "123"
    (tmp_path / "secret").write_text(SIGNING)
    file = str(tmp_path / "secret")
    assert login(tmp_path, HOPWATCH_DASHBOARD__LOGIN__COOKIE_SECRET_FILE=file).read_secret("cookie_secret") == SIGNING


def test_origins_are_kept_as_browsers_write_them(tmp_path: Path) -> None:
    """As a list in the file, with blanks between them in a variable; none without a word."""
    (tmp_path / "h.toml").write_text('[dashboard]\norigins = ["HTTPS://Host.example:443/", "http://[::1]:8501"]\n')
    expected = ("https://host.example", "http://[::1]:8501")
    assert load(tmp_path / "h.toml", flags={}, environ={}).dashboard.origins == expected
    environ = {"HOPWATCH_DASHBOARD__ORIGINS": "http://a.example:80 https://b.example:80"}
    found = load(tmp_path / "h.toml", flags={}, environ=environ).dashboard.origins
    assert found == ("http://a.example", "https://b.example:80")
    (tmp_path / "h.toml").write_text("")
    assert load(tmp_path / "h.toml", flags={}, environ={}).dashboard.origins == ()


def test_the_url_of_a_trace_has_its_id_in_it(tmp_path: Path) -> None:
    """None by default."""
    url = "https://jaeger.example/trace/{trace_id}"
    (tmp_path / "h.toml").write_text(f'[dashboard]\ntrace_url = "{url}"\n')
    assert load(tmp_path / "h.toml", flags={}, environ={}).dashboard.trace_url == url
    (tmp_path / "h.toml").write_text("")
    assert load(tmp_path / "h.toml", flags={}, environ={}).dashboard.trace_url == ""


def test_an_origin_is_what_a_url_begins_with() -> None:
    """Without the usual port, path and query."""
    assert parse_origin("https://Host.example.:443/path?query#part") == "https://host.example"
    assert parse_origin("http://host.example:443") == "http://host.example:443"
    with pytest.raises(ValueError, match=r"this is a URL such as"):
        parse_origin("host.example")


ORIGIN: Final = 'an origin is a scheme, a host and a port, such as "https://host.example"; got'
URL: Final = 'this is a URL such as "https://host.example/path", without user, password or blanks in it'
WRONG: Final = {
    "no url": (LOGIN.replace("url =", "#"), "dashboard.login.url: this is required"),
    "no client": (LOGIN.replace("client_id =", "#"), "dashboard.login.client_id: this is required"),
    "no name": (
        LOGIN.replace('"hopwatch"', '""'),
        "dashboard.login.client_id: this is required",
    ),
    "no secret": (
        LOGIN.replace("client_secret =", "#"),
        "client_secret: this is required: client_secret, or client_secret_file for a file that holds it",
    ),
    "a secret twice": (
        LOGIN + 'client_secret_file = "secret"\n',
        "client_secret and client_secret_file both say it: keep one of them",
    ),
    "no file": (
        LOGIN.replace(f'client_secret = "{HIDDEN}"', 'client_secret_file = "nowhere"'),
        "nowhere cannot be read: No such file or directory",
    ),
    "words": (LOGIN.replace(HIDDEN, f"{HIDDEN} {HIDDEN}"), "this is one word of ASCII"),
    "short": (
        LOGIN + 'cookie_secret = "T0P-5ECRET"\n',
        "a signing secret has at least 16 characters, this one 10: make one by openssl rand -hex 32",
    ),
    "number": (
        LOGIN.replace(f'"{HIDDEN}"', "7"),
        "dashboard.login.client_secret: this is a text, got ***",
    ),
    "url": (LOGIN.replace("https://hopwatch.example/", "hopwatch"), f"dashboard.login.url: {URL}"),
    "query": (LOGIN.replace('example/"', 'example/?a=b"'), "this is a URL without ? and #"),
    "provider": (LOGIN.replace("https://id.example", "id"), f"dashboard.login.provider: {URL}"),
    "allowed": (LOGIN + "allowed = 7\n", 'this is a list such as ["@host.example", "on-call@host.example"], got 7'),
    "entry": (
        LOGIN + 'allowed = ["host.example"]\n',
        'an allowed user is an address such as "on-call@host.example", or "@host.example" for all of a domain; got',
    ),
    "unknown": (LOGIN + 'client = "x"\n', "dashboard.login.client: there is no such key; did you mean 'client_id'?"),
    "no origin": ('[dashboard]\norigins = ["host.example"]\n', f"dashboard.origins: {ORIGIN} 'host.example'"),
    "a page": ('[dashboard]\norigins = ["http://h/p"]\n', f"dashboard.origins: {ORIGIN} 'http://h/p'"),
    "any origin": ('[dashboard]\norigins = "*"\n', f"dashboard.origins: {ORIGIN} '*'"),
    "no trace": (
        '[dashboard]\ntrace_url = "https://jaeger.example/trace"\n',
        'dashboard.trace_url: the URL of a trace has {trace_id} in it, once, such as "https://jaeger.example/trace/{trace_id}"',
    ),
    "no url of a trace": ('[dashboard]\ntrace_url = "jaeger/{trace_id}"\n', f"dashboard.trace_url: {URL}"),
    "no origins": ("[dashboard]\norigins = 7\n", 'this is a list such as ["https://host.example"], got 7'),
    "no table": ('[dashboard]\nlogin = "T0P-5ECRET"\n', "dashboard.login: this is a table, got ***"),
    "no such table": ("[dashboard]\nlogins = 1\n", "dashboard.logins: there is no such key; did you mean 'login'?"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_and_no_secret_is(text: str, words: str, tmp_path: Path) -> None:
    """With its line and what may stand there."""
    (tmp_path / "secret").write_text("in-a-file\n")
    with pytest.raises(SettingsError) as refused:
        login(tmp_path, text)
    assert words in str(refused.value)
    assert HIDDEN not in str(refused.value)
