"""ASGI middleware: a request that carries id and event time of a message is stamped as it arrives, and when it is done.

The two headers are those of all integrations (:mod:`hopwatch.probes.message_headers`)::

    app = HopwatchMiddleware(app, stream="orders", node="intake", sink="spool:./var/spool")

The message has left the node once its answer was sent, with a status below 400. One of 400 to 499 is a refusal, except
408, 425 and 429; behind these, behind 5xx and behind an exception whoever sent the message has to send it again.
Requests without the headers pass by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from hopwatch.probes import Probe
from hopwatch.probes.integrations.message_marker import MessageMarker
from hopwatch.probes.message_headers import MessageIdentity
from hopwatch.probes.sinks import Sink

_RECOVERABLE: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses of 400 to 499 behind which a message is sent again."""

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]


class HopwatchMiddleware:
    """Middleware of one node; it closes its probe when the app shuts down."""

    def __init__(  # noqa: PLR0913 - what can be chosen, all but the app by name
        self,
        app: App,
        *,
        stream: str | None = None,
        node: str | None = None,
        sink: str | Sink | None = None,
        probe: Probe | None = None,
        ignore_unmarked: bool = True,
    ) -> None:
        """Wrap an app; pass either ``probe``, or ``stream`` and ``node``, and ``sink`` unless HOPWATCH_SINK names one.

        ``ignore_unmarked=False`` counts a request without headers as a message that was missed.
        """
        self._app, self.hopwatch_probe = app, probe or Probe(stream or "", node or "", sink)
        self._marker = MessageMarker(self.hopwatch_probe, "ASGI", ignores=ignore_unmarked)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Run a request, or the life of the app."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._close_at_shutdown(send))
            return
        message = None
        if scope["type"] == "http":
            message = self._marker.stamp_arrival(scope["headers"], scope["path"])
        await self._app(scope, receive, send if message is None else self._stamp_end(message, send))

    def _stamp_end(self, message: MessageIdentity, send: Send) -> Send:
        """Return what sends an answer, and stamps the message behind the last part of it."""
        status = 0

        async def send_and_stamp(event: Event) -> None:
            nonlocal status
            await send(event)
            if event["type"] == "http.response.start":
                status = int(event["status"])
            elif event["type"] == "http.response.body" and not event.get("more_body", False):
                if status < HTTPStatus.BAD_REQUEST:
                    self.hopwatch_probe.departed(*message)
                elif status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _RECOVERABLE:
                    self.hopwatch_probe.rejected(*message, f"HTTP {status}", has_arrived=True)

        return send_and_stamp

    def _close_at_shutdown(self, send: Send) -> Send:
        async def send_and_close(event: Event) -> None:
            if event["type"].startswith("lifespan.shutdown."):
                self.hopwatch_probe.close()
            await send(event)

        return send_and_close
