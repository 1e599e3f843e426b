"""HTTP receiver that answers each request after a wait, and counts which messages came how often.

A program by itself: PORT WAIT_S MESSAGES. A POST is a JSON list of objects, each with an ``id`` that is a number below
MESSAGES, as text. A GET is answered with the counts. It does as little as it can, as it shares the cores with those
whom it measures.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final, cast

import orjson
import uvloop

HOST: Final = "127.0.0.1"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"
_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@dataclass(slots=True)
class Counts:
    """Counts of what came; moments are those of ``time.monotonic``, 0 before the first request."""

    messages: int = 0
    distinct: int = 0
    requests: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    now_s: float = 0.0


class MessageCounter:
    """Counter of messages by their numbers."""

    def __init__(self, messages: int) -> None:
        """Begin with none of so many."""
        self.counts = Counts()
        self._seen = bytearray(messages)

    def add_request(self, body: bytes) -> None:
        """Add the messages of a request."""
        numbers, seen, counts = [int(one["id"]) for one in orjson.loads(body)], self._seen, self.counts
        for number in numbers:
            if not seen[number]:
                seen[number] = 1
                counts.distinct += 1
        counts.messages += len(numbers)
        counts.requests += 1
        counts.last_s = time.monotonic()
        counts.first_s = counts.first_s or counts.last_s

    def build_answer(self) -> bytes:
        """Return the answer to a GET."""
        self.counts.now_s = time.monotonic()
        body = orjson.dumps(asdict(self.counts))
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


class RequestProtocol(asyncio.Protocol):
    """One connection, which is kept; requests come one after the other."""

    def __init__(self, counter: MessageCounter, wait_s: float) -> None:
        """Take the counter, and the time from a request's last byte to its answer."""
        self._counter, self._wait_s = counter, wait_s
        self._held = bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hold the transport."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is none by its type

    def data_received(self, data: bytes) -> None:
        """Answer the request that is complete now, if one is."""
        held = self._held
        held += data
        while (head_end := held.find(_END)) >= 0:
            length = _LENGTH.search(bytes(held[:head_end]))
            end = head_end + len(_END) + (int(length[1]) if length else 0)
            if len(held) < end:
                return
            is_post, body = held.startswith(b"POST "), bytes(held[head_end + len(_END) : end])
            del held[:end]
            if not is_post:
                self._write(self._counter.build_answer())
                continue
            self._counter.add_request(body)
            if self._wait_s:
                asyncio.get_running_loop().call_later(self._wait_s, self._write, _OK)
            else:
                self._write(_OK)

    def _write(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


async def serve(port: int, wait_s: float, messages: int) -> None:
    """Serve until SIGTERM."""
    loop, over, counter = asyncio.get_running_loop(), asyncio.Event(), MessageCounter(messages)
    loop.add_signal_handler(signal.SIGTERM, over.set)
    server = await loop.create_server(lambda: RequestProtocol(counter, wait_s), HOST, port, backlog=1_024)
    await over.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
