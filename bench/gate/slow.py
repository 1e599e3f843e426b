"""Clients that trickle: half of them the head of a request, half its body, a few bytes a second, and come again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from bench.alone import Json
from bench.gate.client import HOST, request
from bench.gate.load import PATH

EVERY_S: Final = 0.5
"""Between two bytes."""
SPREAD_S: Final = 2.0
"""In which all of them come for the first time."""
_HEAD: Final = f"POST {PATH} HTTP/1.1\r\nhost: {HOST}\r\nx-slow: ".encode()
_BODY: Final = 10_000


class _Crowd:
    """All of them: how many are connected, how long the server has put up with each."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port, self._until_s = port, time.perf_counter() + seconds
        self.connected = 0
        self.lived_s: list[float] = []

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._until_s

    async def trickle(self, number: int, clients: int) -> None:
        await asyncio.sleep(SPREAD_S * number / clients)
        while not self.is_over:
            with suppress(OSError):
                await self._come(_HEAD if number % 2 else request("POST", PATH, b"[" * _BODY)[:-_BODY])

    async def _come(self, begin: bytes) -> None:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        self.connected += 1
        began_s = time.perf_counter()
        try:
            writer.write(begin)
            while not self.is_over:
                with suppress(TimeoutError):
                    # Whatever comes is the end of it: a status, or that the server hangs up.
                    await asyncio.wait_for(reader.read(1), EVERY_S)
                    self.lived_s.append(time.perf_counter() - began_s)
                    return
                writer.write(b"[")
        finally:
            self.connected -= 1
            writer.close()


def trickle(folder: Path, port: int, clients: int, seconds: float) -> Json:
    """Let so many clients trickle; return how many were there at the median, were cut off, and after how long."""
    del folder
    return asyncio.run(_trickle(port, clients, seconds))


async def _trickle(port: int, clients: int, seconds: float) -> Json:
    crowd, counts = _Crowd(port, seconds), []
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(crowd.trickle(number, clients))
        await asyncio.sleep(SPREAD_S)
        while not crowd.is_over:
            counts.append(crowd.connected)
            await asyncio.sleep(EVERY_S)
    return {
        "clients": int(median(counts)) if counts else 0,
        "cut": len(crowd.lived_s),
        "lived_s": median(crowd.lived_s) if crowd.lived_s else None,
    }
