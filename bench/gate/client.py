"""A client of HTTP/1.1 that costs little: a connection that is kept, a request at a time."""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple

HOST: Final = "127.0.0.1"
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class ReplyError(ValueError):
    """Raised when a reply is not one that this client understands."""


class HttpReply(NamedTuple):
    """A status, and the body with it."""

    status: int
    body: bytes


class ReplyReader:
    """Takes answers out of what comes, in whatever pieces it does."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._held = b""

    def feed(self, piece: bytes) -> HttpReply | None:
        """Take a piece; return the answer that it completes, if it does.

        Raises:
            AnswerError: it is no HTTP/1.1, or does not say how long it is.
        """
        self._held += piece
        head, end, body = self._held.partition(_END)
        if not end:
            return None
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None or length is None:
            raise ReplyError(f"an answer of HTTP/1.1 with a content-length was expected, got {head[:200]!r}")
        size = int(length[1])
        if len(body) < size:
            return None
        self._held = body[size:]
        return HttpReply(int(status[1]), body[:size])


class Connection(asyncio.Protocol):
    """One connection; whoever asks waits for the answer before the next one does."""

    def __init__(self) -> None:
        """Begin without a server; see :func:`connected`."""
        self._answers = ReplyReader()
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: asyncio.Future[HttpReply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hold the transport."""
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101 - a connection of TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand out an answer that is whole."""
        try:
            answer = self._answers.feed(data)
        except ReplyError as error:
            self._fail(error)
            return
        if answer is not None and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._fail(exc or ConnectionResetError("the server has closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    async def ask(self, request: bytes) -> HttpReply:
        """Send a request, and return the answer to it.

        Raises:
            AnswerError: it cannot be understood.
            OSError: the connection is lost.
        """
        assert self._transport is not None  # noqa: S101 - it is connected
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def open_connection(port: int) -> Connection:
    """Return a connection to a port of this machine."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, HOST, port)
    return connection


def format_request(method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
    """Return a request with a body of JSON; ``more`` are lines for its head."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n{more}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
