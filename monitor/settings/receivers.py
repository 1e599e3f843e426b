"""Validators of receivers: URLs, addresses, headers and secrets, with their error messages."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

MIN_SECRET_CHARS: Final = 16

_ADDRESS: Final = re.compile(r"[^\s@<>,;:\"()\[\]\\]{1,64}@[A-Za-z0-9.-]{1,250}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_RESERVED_HEADERS: Final = re.compile(
    r"host|user-agent|accept-encoding|content-.*|transfer-encoding|connection|idempotency-key|hopwatch-.*",
    re.IGNORECASE,
)
_MAX_PORT: Final = 65_535


def check_url(url: str) -> str:
    """Check an HTTP URL.

    Raises:
        ValueError: it is not valid; the message does not show it, since it may hold a secret.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if not is_one or not url.isascii() or not url.isprintable() or " " in url or "@" in urlsplit(url).netloc:
        msg = 'this is a URL such as "https://host.example/path", without user, password or blanks in it'
        raise ValueError(msg)
    return url


def check_ca_file(file: str) -> str:
    """Check a file of CA certificates; empty for the system's own.

    Raises:
        ValueError: it cannot be read, or holds no certificate.
    """
    if file:
        try:
            ssl.create_default_context(cafile=file)
        except ssl.SSLError:
            msg = f"the file {file} holds no certificates: it is PEM, with BEGIN CERTIFICATE in it"
            raise ValueError(msg) from None
        except OSError as error:
            msg = f"the file {file} cannot be read: {error.strerror}"
            raise ValueError(msg) from None
    return file


def check_port(value: object) -> int:
    """Parse a port.

    Raises:
        ValueError: it is not a port.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_PORT:
        return value
    msg = f"a port is a whole number from 1 to {_MAX_PORT}, got {value!r:.40}"
    raise ValueError(msg)


def check_address(text: str) -> str:
    """Check a mail address.

    Raises:
        ValueError: it is not valid, or not ASCII.
    """
    if not text.isascii() or not _ADDRESS.fullmatch(text):
        msg = f'an address is NAME@DOMAIN such as "on-call@host.example", got {text!r:.80}'
        raise ValueError(msg)
    return text


def parse_urls(value: object) -> tuple[str, ...]:
    """Parse a list of URLs, or a text of URLs separated by blanks, as in a variable; each is checked later.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list | tuple) and all(isinstance(url, str) and url for url in value):
        return tuple(value)
    msg = 'this is a list of URLs, such as ["http://alertmanager:9093"]'
    raise ValueError(msg)


def check_single_word(text: str) -> None:
    """Check that a secret is a single word, which fits into a header.

    Raises:
        ValueError: it has blanks or other characters than ASCII.
    """
    if not re.fullmatch(r"[!-~]+", text):
        msg = "this is one word of ASCII, without blanks or line ends"
        raise ValueError(msg)


def check_secret_length(text: str) -> None:
    """Check the length of a signing secret.

    Raises:
        ValueError: it is short enough for a brute-force attack.
    """
    if len(text) < MIN_SECRET_CHARS:
        advice = "make one by openssl rand -hex 32"
        msg = f"a signing secret has at least {MIN_SECRET_CHARS} characters, this one {len(text)}: {advice}"
        raise ValueError(msg)


def check_apprise_urls(text: str) -> None:
    """Check Apprise URLs, separated by blanks; none is shown.

    Raises:
        ValueError: Apprise does not support one of them.
    """
    # Its import takes longer than all of the settings, and most do without it.
    from apprise import Apprise  # noqa: PLC0415

    # It logs unknown URLs, which may hold a secret.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    for place, url in enumerate(text.split(), 1):
        if not Apprise.instantiate(url, suppress_exceptions=True):
            raise ValueError(
                f"Apprise knows no service of number {place} of the urls; see its list of what they look like"
            )


def check_headers(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    """Check the additional headers of a webhook.

    Raises:
        ValueError: a header is invalid or reserved.
    """
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or _RESERVED_HEADERS.fullmatch(name):
            msg = f"a header is a name such as X-Team, and none that Hopwatch sets itself; got {name!r:.80}"
            raise ValueError(msg)
        text = value.get_secret_value()
        if not text.isascii() or not text.isprintable() or text != text.strip():
            msg = f"the header {name} is one line of ASCII, without blanks around it"
            raise ValueError(msg)
    return headers


def check_template(text: str) -> str:
    """Check a template.

    Raises:
        ValueError: it cannot be compiled or rendered.
    """
    # Its import takes longer than most of the settings, and most do without it.
    from hopwatch.monitor.settings.templates import check_template  # noqa: PLC0415

    return check_template(text)
