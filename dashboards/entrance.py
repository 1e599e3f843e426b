"""What stands before the pages where a login is configured; nothing of the store is read for who is not let in.

Streamlit does the talking with the provider. It is told how in memory, so that no secret is in a file of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any, Final

import streamlit as st

from hopwatch.dashboards import look, looking, markup
from hopwatch.dashboards.views import let_in
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings.dashboard import LoginSettings

AUTH: Final = "auth"
"""The table of Streamlit's secrets that makes it ask a provider."""
OWN: Final = "hopwatch"
WIDTH_PX: Final = 480


def secrets_of(login: LoginSettings) -> dict[str, Any]:
    """Return what Streamlit is to know of a login.

    Without a secret for cookies one is made up, and everybody logs in anew when the dashboard is started again.
    """
    auth = {
        "redirect_uri": login.callback_url,
        "cookie_secret": login.read_secret("cookie_secret") or secrets.token_hex(32),
        "client_id": login.client_id,
        "client_secret": login.read_secret("client_secret"),
        "server_metadata_url": login.discovery_url,
        "client_kwargs": {"scope": "openid email profile", "code_challenge_method": "S256"},
    }
    return {AUTH: auth, OWN: {"allowed": list(login.allowed)}}


def check(login: LoginSettings | None) -> None:
    """Check that who is to be asked for a login is: Streamlit has to have been told.

    Raises:
        ConfigurationError: the configuration has a login of which Streamlit knows nothing.
    """
    if login is not None and not _is_guarded():
        raise ConfigurationError(
            "the configuration has a [dashboard.login] that this dashboard was not started with: end it, and start it "
            "by hopwatch dashboard"
        )


def is_let_in() -> bool:
    """Return whether who looks may see the pages."""
    return not _is_guarded() or (bool(st.user.is_logged_in) and not let_in.refusal(st.user.to_dict(), _allowed()))


def show() -> None:
    """Draw what stands there instead of the pages."""
    st.html(look.styles(looking.palette()))
    with st.container(key="entrance", width=WIDTH_PX):
        st.subheader("Hopwatch", anchor=False)
        if not st.user.is_logged_in:
            st.text("Log in to see the streams that are watched here.")
            st.button("Log in", icon=":material/login:", on_click=st.login, key="log-in")
        else:
            st.error("You are logged in, and not let in.")
            # Not in the banner: Markdown makes links of addresses.
            st.text(let_in.refusal(st.user.to_dict(), _allowed()))
            _leave("Log in as somebody else")


def leave() -> None:
    """Draw the way out, for who came in by a login."""
    if _is_guarded():
        _leave("Log out", str(st.user.get("email") or st.user.get("name") or ""))


def _leave(words: str, who: str = "") -> None:
    hint = markup.plain(who) or None
    st.button(words, icon=":material/logout:", on_click=st.logout, help=hint, key="log-out")


def _is_guarded() -> bool:
    return st.secrets.load_if_toml_exists() and AUTH in st.secrets


def _allowed() -> Collection[str]:
    return frozenset(st.secrets[OWN]["allowed"])
