"""HTTP protocol with limits: connections per address and in total, and deadlines for reading and writing.

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

MAX_CONNECTIONS: Final = 512
"""Half of the files that a process may have open by default."""
MAX_PER_ADDRESS: Final = 128
"""A viewer has one that stays and, while a page is loaded, six more."""
REQUEST_TIMEOUT_S: Final = 10.0
"""From when a request is waited for until it is there, with its body."""
READ_TIMEOUT_S: Final = 60.0
"""From when a client leaves something of an answer in our memory until it has taken all of it."""
CHECK_INTERVAL_S: Final = 1.0
WARN_INTERVAL_S: Final = 60.0

_log = structlog.get_logger("hopwatch")


class BoundedHttpProtocol(H11Protocol):
    """uvicorn's protocol of HTTP/1.1, which a WebSocket begins with too: one connection."""

    request_timeout_s: ClassVar[float] = REQUEST_TIMEOUT_S
    read_timeout_s: ClassVar[float] = READ_TIMEOUT_S
    max_per_address: ClassVar[int] = MAX_PER_ADDRESS
    check_interval_s: ClassVar[float] = CHECK_INTERVAL_S
    warned_s: ClassVar[float] = -WARN_INTERVAL_S
    """Time of the last log line on refused connections, on the loop's clock."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a connection, or cut it where there are too many."""
        super().connection_made(transport)
        self._waiting_since_s = self._unread_since_s = self.loop.time()
        if self._is_over_limit():
            transport.abort()
            self._warn()
            return
        self._check_deadlines()

    def _is_over_limit(self) -> bool:
        own = _owner(self.client)
        of_it = sum(_owner(getattr(one, "client", None)) == own for one in self.connections)
        return len(self.connections) > MAX_CONNECTIONS or of_it > self.max_per_address

    def _warn(self) -> None:
        now_s = self.loop.time()
        if now_s - BoundedHttpProtocol.warned_s >= WARN_INTERVAL_S:
            BoundedHttpProtocol.warned_s = now_s
            most = f"{self.max_per_address} of one address, {MAX_CONNECTIONS} of all"
            _log.warning("connections to the dashboard were refused", client=self.client and self.client[0], most=most)

    def _check_deadlines(self) -> None:
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
        if now_s - self._waiting_since_s > self.request_timeout_s or now_s - self._unread_since_s > self.read_timeout_s:
            # To close would wait until the client has read all.
            transport.abort()
            return
        self.loop.call_later(self.check_interval_s, self._check_deadlines)


def _owner(client: tuple[str, int] | None) -> str:
    return identify_owner(client[0]) if client else ""
