"""Receiver on a real socket that takes batches of events, and fails in every way now and then."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

FAULTS: Final = ("500", "503", "429", "404", "hang", "reset", "before", "207", "rubbish", "redirect", "endless")


ACCEPTING: Final = frozenset({"", "reset", "endless"})
"""Faults after which all was done; of a reset nobody hears that."""
REFUSING: Final = frozenset({"404", "redirect"})


def _build_answer(status: str, body: bytes, headers: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 " + status.encode() + b"\r\n" + length + headers + b"\r\n" + body


ANSWERS: Final = {
    "": _build_answer("200 OK", b"ok"),
    "500": _build_answer("500 X", b"no"),
    "503": _build_answer("503 X", b"no", b"Retry-After: 0\r\n"),
    "429": _build_answer("429 X", b"no", b"Retry-After: 0\r\n"),
    "404": _build_answer("404 X", b"gone"),
    "redirect": _build_answer("302 X", b"", b"Location: http://169.254.169.254/\r\n"),
    "rubbish": _build_answer("207 X", b'{"events": [1, {"id": null}'),
    "endless": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100_000,
}


class FlakyReceiver:
    """Receiver; ``accepted`` and ``refused`` are the ids that it took for good, and refused for good."""

    def __init__(self, fault_ratio: float, seed: int) -> None:
        """Fail for a share of requests."""
        self._fault_ratio, self._chance = fault_ratio, random.Random(seed)
        self.accepted, self.refused, self.faults = Counter[str](), Counter[str](), Counter[str]()
        self.url = ""
        self.requests = 0

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[FlakyReceiver]:
        """Serve on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**22)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
                await self._react(await reader.readexactly(length), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _react(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        ids = [event["id"] for event in json.loads(body)]
        fault = self._chance.choice(FAULTS) if self._chance.random() < self._fault_ratio else ""
        self.faults[fault] += 1
        self.accepted.update(ids if fault in ACCEPTING else ids[: len(ids) // 2] if fault == "207" else ())
        self.refused.update(ids if fault in REFUSING else ())
        if fault in ANSWERS:
            writer.write(ANSWERS[fault])
        elif fault == "207":
            items = [{"id": one, "status": 201 if at < len(ids) // 2 else 503} for at, one in enumerate(ids)]
            writer.write(_build_answer("207 X", json.dumps({"events": items}).encode()))
        elif fault == "hang":
            await asyncio.sleep(60)
        else:
            writer.transport.abort()
