"""``[dashboard]``: where people open the dashboard, and who may look at it, asked of an OpenID Connect provider."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from hopwatch.monitor.settings import receivers
from hopwatch.monitor.settings.secrets import SecretTable
from hopwatch.monitor.settings.table import Table

DISCOVERY: Final = "/.well-known/openid-configuration"
CALLBACK: Final = "/oauth2callback"
"""Where the provider sends people back to, below the dashboard's own URL."""
_PORTS: Final = {"http": 80, "https": 443}
_DOMAIN: Final = re.compile(r"@[A-Za-z0-9.-]{1,250}")


def origin_of(url: str) -> str:
    """Return the origin of a URL as a browser writes it: scheme, host, and the port unless it is the usual one.

    Raises:
        ValueError: it is no URL of the web.
    """
    parts = urlsplit(receivers.url(url))
    host, port = (parts.hostname or "").rstrip("."), parts.port
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" if port in {None, _PORTS[parts.scheme]} else f"{parts.scheme}://{shown}:{port}"


def _origin(text: str) -> str:
    parts = None
    with suppress(ValueError):
        parts = urlsplit(receivers.url(text))
    if parts is None or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f'an origin is a scheme, a host and a port, such as "https://host.example"; got {text!r:.80}')
    return origin_of(text)


def _place(text: str) -> str:
    receivers.url(text)
    if "?" in text or "#" in text:
        raise ValueError('this is a URL without ? and #, such as "https://host.example/hopwatch"')
    return text.rstrip("/")


def _issuer(text: str) -> str:
    return _place(text).removesuffix(DISCOVERY)


def _some(text: str) -> str:
    if not text:
        raise ValueError("this is required: the name that the provider knows the dashboard by")
    return text


def _listed(example: str) -> Callable[[object], tuple[str, ...]]:
    """Return what reads a list of texts; a variable has them with blanks between them."""

    def read(value: object) -> tuple[str, ...]:
        said = value.split() if isinstance(value, str) else value
        if isinstance(said, list | tuple) and all(isinstance(entry, str) for entry in said):
            return tuple(said)
        raise ValueError(f"this is a list such as {example}, got {value!r:.80}")

    return read


def _entry(text: str) -> str:
    if not _DOMAIN.fullmatch(text):
        try:
            receivers.address(text)
        except ValueError:
            forms = 'an address such as "on-call@host.example", or "@host.example" for all of a domain'
            raise ValueError(f"who is let in is {forms}; got {text!r:.80}") from None
    return text.lower()


Place = Annotated[str, AfterValidator(_place)]
Entries = Annotated[
    tuple[Annotated[str, AfterValidator(_entry)], ...],
    BeforeValidator(_listed('["@host.example", "on-call@host.example"]')),
]
Origins = Annotated[
    tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_listed('["https://host.example"]'))
]


class LoginSettings(SecretTable):
    """``[dashboard.login]``: the provider, what it knows the dashboard by, and who of those it knows is let in."""

    FORMS: ClassVar = {"client_secret": receivers.one_word, "cookie_secret": receivers.long_enough}
    NEEDED: ClassVar = ("client_secret",)
    url: Place
    provider: Annotated[str, AfterValidator(_issuer)]
    client_id: Annotated[str, AfterValidator(_some)]
    client_secret: SecretStr = SecretStr("")
    client_secret_file: str = ""
    cookie_secret: SecretStr = SecretStr("")
    cookie_secret_file: str = ""
    allowed: Entries = ()

    @property
    def discovery_url(self) -> str:
        """Where the provider says what it can do."""
        return self.provider + DISCOVERY

    @property
    def callback_url(self) -> str:
        """Where the provider sends people back to."""
        return self.url + CALLBACK


class DashboardSettings(Table):
    """``[dashboard]``: where it is opened beside its own addresses; nobody is asked who they are without a login."""

    origins: Origins = ()
    login: LoginSettings | None = None
