"""Login page, shown before the pages where a login is configured; without access nothing is read from the store.

Streamlit talks to the provider. Its login settings are set in memory, so that no secret is in a file of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any, Final

import streamlit as st

from hopwatch.dashboards import context, markup, theme
from hopwatch.dashboards.views import access
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings.dashboard import LoginSettings

AUTH: Final = "auth"
"""The table of Streamlit's secrets that makes it ask a provider."""
OWN_TABLE: Final = "hopwatch"
WIDTH_PX: Final = 480
MAX_NAME: Final = 200
"""Characters of a user's name that are shown and stored, at most."""


def build_secrets(login: LoginSettings) -> dict[str, Any]:
    """Build Streamlit's settings of a login.

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
    return {AUTH: auth, OWN_TABLE: {"allowed": list(login.allowed)}}


def check_login(login: LoginSettings | None) -> None:
    """Check that who is to be asked for a login is: Streamlit has to have been told.

    Raises:
        ConfigurationError: the configuration has a login of which Streamlit knows nothing.
    """
    if login is not None and not _needs_login():
        raise ConfigurationError(
            "the configuration has a [dashboard.login] that this dashboard was not started with: end it, and start it "
            "by hopwatch dashboard"
        )


def has_access() -> bool:
    """Return whether the user may see the pages."""
    return not _needs_login() or (
        bool(st.user.is_logged_in) and not access.explain_refusal(st.user.to_dict(), _read_allowed())
    )


def draw_login() -> None:
    """Draw the login page."""
    st.html(theme.build_styles(context.read_palette()))
    with st.container(key="entrance", width=WIDTH_PX):
        st.subheader("Hopwatch", anchor=False)
        if not st.user.is_logged_in:
            st.text("Log in to see the streams that are watched here.")
            st.button("Log in", icon=":material/login:", on_click=st.login, key="log-in")
        else:
            st.error("Your account has no access.")
            # Not in the banner: Markdown makes links of addresses.
            st.text(access.explain_refusal(st.user.to_dict(), _read_allowed()))
            _draw_logout_button("Log in with another account")


def read_user_name() -> str:
    """Return the name of the user who has logged in, one line of printable text; empty where no login is configured."""
    name = str(st.user.get("email") or st.user.get("name") or "") if _needs_login() else ""
    return name[:MAX_NAME] if name.isprintable() else ascii(name[:MAX_NAME])


def draw_logout() -> None:
    """Draw the logout button for a logged-in user."""
    if _needs_login():
        _draw_logout_button("Log out", read_user_name())


def _draw_logout_button(words: str, who: str = "") -> None:
    hint = markup.escape_markdown(who) or None
    st.button(words, icon=":material/logout:", on_click=st.logout, help=hint, key="log-out")


def _needs_login() -> bool:
    return st.secrets.load_if_toml_exists() and AUTH in st.secrets


def _read_allowed() -> Collection[str]:
    return frozenset(st.secrets[OWN_TABLE]["allowed"])
