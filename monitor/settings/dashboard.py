"""``[dashboard]``: origins of the dashboard, and its login by an OpenID Connect provider."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from hopwatch.monitor.settings import receivers
from hopwatch.monitor.settings.secrets import SecretTable
from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.monitor.texts.trace_url import TRACE_ID_FIELD

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
CALLBACK_PATH: Final = "/oauth2callback"
"""Redirect path of the login, below the dashboard's own URL."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_DOMAIN: Final = re.compile(r"@[A-Za-z0-9.-]{1,250}")


def parse_origin(url: str) -> str:
    """Return the origin of a URL as a browser writes it: scheme, host, and the port unless it is the usual one.

    Raises:
        ValueError: it is no URL of the web.
    """
    parts = urlsplit(receivers.check_url(url))
    host, port = (parts.hostname or "").rstrip("."), parts.port
    shown = f"[{host}]" if ":" in host else host
    return (
        f"{parts.scheme}://{shown}"
        if port in {None, _DEFAULT_PORTS[parts.scheme]}
        else f"{parts.scheme}://{shown}:{port}"
    )


def _check_origin(text: str) -> str:
    parts = None
    with suppress(ValueError):
        parts = urlsplit(receivers.check_url(text))
    if parts is None or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f'an origin is a scheme, a host and a port, such as "https://host.example"; got {text!r:.80}')
    return parse_origin(text)


def _check_base_url(text: str) -> str:
    receivers.check_url(text)
    if "?" in text or "#" in text:
        raise ValueError('this is a URL without ? and #, such as "https://host.example/hopwatch"')
    return text.rstrip("/")


def _check_trace_url(text: str) -> str:
    if text and text.count(TRACE_ID_FIELD) != 1:
        example = f"https://jaeger.example/trace/{TRACE_ID_FIELD}"
        raise ValueError(f'the URL of a trace has {TRACE_ID_FIELD} in it, once, such as "{example}"; got {text!r:.80}')
    return text and receivers.check_url(text.replace(TRACE_ID_FIELD, "0")) and text


def _check_issuer(text: str) -> str:
    return _check_base_url(text).removesuffix(DISCOVERY_PATH)


def _check_required(text: str) -> str:
    if not text:
        raise ValueError("this is required: the name that the provider knows the dashboard by")
    return text


def _list_validator(example: str) -> Callable[[object], tuple[str, ...]]:
    """Return a validator of a list of texts; a variable separates them by blanks."""

    def read(value: object) -> tuple[str, ...]:
        said = value.split() if isinstance(value, str) else value
        if isinstance(said, list | tuple) and all(isinstance(entry, str) for entry in said):
            return tuple(said)
        raise ValueError(f"this is a list such as {example}, got {value!r:.80}")

    return read


def _check_entry(text: str) -> str:
    if not _DOMAIN.fullmatch(text):
        try:
            receivers.check_address(text)
        except ValueError:
            forms = 'an address such as "on-call@host.example", or "@host.example" for all of a domain'
            raise ValueError(f"an allowed user is {forms}; got {text!r:.80}") from None
    return text.lower()


BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
AllowedEntries = Annotated[
    tuple[Annotated[str, AfterValidator(_check_entry)], ...],
    BeforeValidator(_list_validator('["@host.example", "on-call@host.example"]')),
]
Origins = Annotated[
    tuple[Annotated[str, AfterValidator(_check_origin)], ...],
    BeforeValidator(_list_validator('["https://host.example"]')),
]


class LoginSettings(SecretTable):
    """``[dashboard.login]``: the provider, the client credentials, and the people who have access."""

    SECRET_CHECKS: ClassVar = {
        "client_secret": receivers.check_single_word,
        "cookie_secret": receivers.check_secret_length,
    }
    REQUIRED_SECRETS: ClassVar = ("client_secret",)
    url: BaseUrl
    provider: Annotated[str, AfterValidator(_check_issuer)]
    client_id: Annotated[str, AfterValidator(_check_required)]
    client_secret: SecretStr = SecretStr("")
    client_secret_file: str = ""
    cookie_secret: SecretStr = SecretStr("")
    cookie_secret_file: str = ""
    allowed: AllowedEntries = ()

    @property
    def discovery_url(self) -> str:
        """URL of the provider's discovery document."""
        return self.provider + DISCOVERY_PATH

    @property
    def callback_url(self) -> str:
        """Redirect URL of the login."""
        return self.url + CALLBACK_PATH


class DashboardSettings(SettingsTable):
    """``[dashboard]``: additional origins, where traces are, and the login; without one there is no authentication."""

    origins: Origins = ()
    trace_url: Annotated[str, AfterValidator(_check_trace_url)] = ""
    login: LoginSettings | None = None
