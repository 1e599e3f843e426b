"""ASGI middleware that keeps the account of requests: received = answered + dropped + in flight."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from hopwatch.probes.metrics.account import Account, DropReason, EventOutcome

if TYPE_CHECKING:
    # The dashboard counts requests too, and has none of what the limits are made of.
    from hopwatch.probes.http.limits import App, Receive, Scope, Send

_SWITCHING: Final = 101
_FORBIDDEN: Final = 403
"""Status with which a server answers a WebSocket that its app closes before accepting it."""


class RequestCountMiddleware:
    """Count each request once, by the status of its answer; wrapped around all other middleware."""

    def __init__(self, app: App, account: Account) -> None:
        """Wrap an app."""
        self._app, self._account = app, account

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, and settle it when it ends."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        status = 0

        async def note(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = status or _read_status(message)
            await send(message)

        self._account.receive(1)
        try:
            await self._app(scope, receive, note)
        finally:
            if status:
                self._account.settle(1, EventOutcome.ANSWERED, str(status))
            else:
                self._account.drop(1, DropReason.NO_ANSWER)


def _read_status(message: MutableMapping[str, Any]) -> int:
    """Return the status of a message that begins an answer, 0 for others."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return _SWITCHING
        case "websocket.close":
            return _FORBIDDEN
        case _:
            return 0
