"""Connections of the dashboard, each within its bounds: so many at once of one address, and a deadline for both sides.

uvicorn has neither: a client that connects and says nothing, or that asks and does not read, keeps its connection for
ever, and what waits for it in memory. Behind a proxy all viewers have one address, its own.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from hopwatch.probes.contract.addresses import identify_owner

MOST_CONNECTIONS: Final = 512
"""Half of the files that a process may have open by default."""
MOST_PER_ADDRESS: Final = 128
"""A viewer has one that stays and, while a page is loaded, six more."""
REQUEST_WITHIN_S: Final = 10.0
"""From when a request is waited for until it is there, with its body."""
READ_WITHIN_S: Final = 60.0
"""From when a client leaves something of an answer in our memory until it has taken all of it."""
LOOK_S: Final = 1.0
TELL_S: Final = 60.0

_log = structlog.get_logger("hopwatch")


class Bounded(H11Protocol):
    """uvicorn's protocol of HTTP/1.1, which a WebSocket begins with too: one connection."""

    request_within_s: ClassVar[float] = REQUEST_WITHIN_S
    read_within_s: ClassVar[float] = READ_WITHIN_S
    most_per_address: ClassVar[int] = MOST_PER_ADDRESS
    look_s: ClassVar[float] = LOOK_S
    told_s: ClassVar[float] = -TELL_S
    """When it was told last that connections are refused, on the clock of the loop."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a connection, or cut it where there are too many."""
        super().connection_made(transport)
        self._waiting_since_s = self._unread_since_s = self.loop.time()
        if self._is_one_too_many():
            transport.abort()
            self._tell()
            return
        self._look()

    def _is_one_too_many(self) -> bool:
        own = _owner(self.client)
        of_it = sum(_owner(getattr(one, "client", None)) == own for one in self.connections)
        return len(self.connections) > MOST_CONNECTIONS or of_it > self.most_per_address

    def _tell(self) -> None:
        now_s = self.loop.time()
        if now_s - Bounded.told_s >= TELL_S:
            Bounded.told_s = now_s
            most = f"{self.most_per_address} of one address, {MOST_CONNECTIONS} of all"
            _log.warning("connections to the dashboard were refused", client=self.client and self.client[0], most=most)

    def _look(self) -> None:
        """Cut the connection where its client is late, and look again in a moment; so for a WebSocket."""
        transport, now_s = self.transport, self.loop.time()
        unread_bytes = transport.get_write_buffer_size()
        if transport.is_closing() and not unread_bytes:
            return
        is_http = transport.get_protocol() is self
        is_waiting = is_http and self.conn.their_state in {h11.IDLE, h11.SEND_BODY} and not unread_bytes
        if not is_waiting:
            self._waiting_since_s = now_s
        if not unread_bytes:
            self._unread_since_s = now_s
        if now_s - self._waiting_since_s > self.request_within_s or now_s - self._unread_since_s > self.read_within_s:
            # To close would wait until the client has read all.
            transport.abort()
            return
        self.loop.call_later(self.look_s, self._look)


def _owner(client: tuple[str, int] | None) -> str:
    return identify_owner(client[0]) if client else ""
