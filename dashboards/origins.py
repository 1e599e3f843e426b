"""ASGI middleware that refuses WebSockets which pages of another origin open.

A browser says in ``Origin`` which page opens a WebSocket, and lets every page open every one. Streamlit would look for
the addresses of this machine, over the network, to find out whether the page is one of its own (ADR 0150).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from hopwatch.monitor.settings.dashboard import parse_origin
from hopwatch.probes.once_per_cause import OncePerCause

MAX_WARNED: Final = 16
"""Most refused origins that are logged, once each: a client can invent any number of them."""
MAX_SHOWN: Final = 100
POLICY_VIOLATION: Final = 1008
"""The status of RFC 6455; a WebSocket that is not open yet is refused with 403."""
_LOCAL: Final = "localhost"

_log = structlog.get_logger("hopwatch")


class OriginMiddleware:
    """An ASGI app before another one, which lets WebSockets of the dashboard's own pages through."""

    def __init__(self, app: ASGIApp, urls: Iterable[str]) -> None:
        """Stand before an app; ``urls`` are those at which people open it, beside the addresses of this machine."""
        self._app = app
        self._allowed = {parse_origin(url) for url in urls}
        self._machine_names = {_LOCAL, socket.gethostname().lower()}
        self._warned = OncePerCause(MAX_WARNED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        origins = _read_header(scope, b"origin") if scope["type"] == "websocket" else []
        if not origins:
            # No browser: it has neither the cookies nor the place of anybody else.
            await self._app(scope, receive, send)
        elif len(origins) == 1 and self._is_own(origins[0], _read_header(scope, b"host")):
            await self._app(_rewrite_host(scope, origins[0]), receive, send)
        else:
            self._warn(", ".join(origins))
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})

    def _is_own(self, said: str, hosts: list[str]) -> bool:
        """Return whether a page is one of the dashboard's own.

        It is where its origin is named, or is the address that the request went to. Any other name does not do: whoever
        owns one can let it lead to this machine.
        """
        try:
            origin = parse_origin(said)
        except ValueError:
            return False
        name = urlsplit(origin).hostname or ""
        is_same = [parse_origin(f"{urlsplit(origin).scheme}://{host}") for host in hosts if _is_host(host)] == [origin]
        return origin in self._allowed or (is_same and (name in self._machine_names or _is_address(name)))

    def _warn(self, origin: str) -> None:
        shown = f"{origin:.{MAX_SHOWN}}"
        if self._warned.is_new(shown):
            advice = "if people open the dashboard there, add it to [dashboard] origins"
            _log.warning("a page of another origin was refused", origin=shown, advice=advice)


def _read_header(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name]


def _is_host(host: str) -> bool:
    try:
        parse_origin(f"http://{host}")
    except ValueError:
        return False
    return True


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _rewrite_host(scope: Scope, origin: str) -> Scope:
    """Return a request with the host of its page's origin: Streamlit then looks up no addresses."""
    headers = [one for one in scope["headers"] if one[0].lower() != b"host"]
    return {**scope, "headers": [*headers, (b"host", urlsplit(origin).netloc.encode("latin-1"))]}
