"""Clients that trickle: half of them the head of a request, half its body, a few bytes a second, and come again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Final

from bench.contestant import Json
from bench.gate.client import HOST, format_request
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
            reader, writer = await asyncio.open_connection(HOST, self._port)
            writer.write(_HEAD if number % 2 else format_request("POST", PATH, b"[" * _BODY)[:-_BODY])
            self.connected += 1
            began_s = time.perf_counter()
            if await self._is_cut(reader, writer):
                self.lived_s.append(time.perf_counter() - began_s)
            self.connected -= 1
            writer.close()

    async def _is_cut(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Trickle until the server ends it, in whatever way, or all is over."""
        while not self.is_over:
            try:
                await asyncio.wait_for(reader.read(1), EVERY_S)
            except TimeoutError:
                writer.write(b"[")
            except OSError:
                return True
            else:
                return True
        return False


def trickle(folder: Path, port: int, clients: int, seconds: float) -> Json:
    """Let so many clients trickle; return how many there were at the median, were cut off, after how long at most."""
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
        "lived_most_s": max(crowd.lived_s, default=None),
    }
