"""Clients of the query API that wait for changes: whether each gets every change, once and in order, and how late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import aiohttp
import orjson
from sqlalchemy import Engine, update

from bench.month import GREAT, Month
from bench.truth import WrongResultError
from hopwatch.monitor.store import tables
from hopwatch.probes.contract.limits import WINDOW_US

WATCHERS: Final = 200
EVERY_S: Final = 0.4
"""Interval of changes: less than half of that of the looks, so that an event has several."""
WINDOWS: Final = 30
"""Windows that change in turn: more than any event has."""
PATIENCE_S: Final = 30.0
"""Time that all clients have to come, and that the last change may take to each."""
_DATA: Final = b"data: "

Got = list[tuple[int, float]]
"""Numbers of the changes that a client got, and when, s."""


class Watchers:
    """Clients of ``/v1/changes``, and the writer of what they wait for.

    A change gives a window its number as revision; so the numbers that a client gets tell what it missed, got twice or
    got in another order.
    """

    def __init__(self, engine: Engine, month: Month, port: int) -> None:
        """Take the store, what it has, and the port of the API over it."""
        self._engine, self._month, self._port = engine, month, port
        self._begun_s: list[float] = []
        self._got: list[Got] = [[] for _ in range(WATCHERS)]

    async def watch(self, seconds: float) -> list[float]:
        """Let windows change for so long while all clients wait; return how long each change took to each client, s.

        Raises:
            WrongResultError: a client did not get every change, once, and in order.
        """
        await asyncio.to_thread(self._write, 0)
        numbers = range(1, round(seconds / EVERY_S) + 1)
        begun = [asyncio.Event() for _ in range(WATCHERS)]
        server, forever = f"http://127.0.0.1:{self._port}", aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(server, connector=aiohttp.TCPConnector(limit=0), timeout=forever) as session:
            reading = [
                asyncio.create_task(self._read(session, of_client, one, numbers[-1]))
                for of_client, one in zip(self._got, begun, strict=True)
            ]
            try:
                await asyncio.wait_for(asyncio.gather(*(one.wait() for one in begun)), PATIENCE_S)
                await self._change(numbers)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.gather(*reading), PATIENCE_S)
            except TimeoutError:
                here = sum(one.is_set() for one in begun)
                raise WrongResultError(f"{here} of {WATCHERS} clients had an event within {PATIENCE_S:.0f} s") from None
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
                await asyncio.to_thread(self._write, 0)
        return time_changes(self._begun_s, self._got)

    async def _change(self, numbers: range) -> None:
        begin_s = time.perf_counter()
        for number in numbers:
            await asyncio.sleep(max(0.0, begin_s + number * EVERY_S - time.perf_counter()))
            self._begun_s.append(time.perf_counter())
            await asyncio.to_thread(self._write, number)

    def _write(self, number: int) -> None:
        """Make the change of a number; 0 takes all of them back."""
        column, end_us = tables.windows.c, self._month.finals_end_us
        start_us = end_us - (1 + number % WINDOWS) * WINDOW_US
        is_chosen = column.window_start_us == start_us if number else column.window_start_us < end_us
        here = column.stream == GREAT, column.window_start_us >= end_us - WINDOWS * WINDOW_US, is_chosen
        with self._engine.execution_options(writes=True).begin() as connection:
            connection.execute(update(tables.windows).where(*here).values(revision=number))

    async def _read(self, session: aiohttp.ClientSession, got: Got, begun: asyncio.Event, last: int) -> None:
        """Read the events of one client until it has the last change."""
        async with session.get("/v1/changes", params={"stream": GREAT}) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if not line.startswith(_DATA):
                    continue
                # The first event is the state that the changes begin from.
                if begun.is_set():
                    got_s, windows = time.perf_counter(), orjson.loads(line[len(_DATA) :])["windows"]
                    got += [(number, got_s) for number in _sort_numbers(windows)]
                begun.set()
                if got and got[-1][0] >= last:
                    return


def _sort_numbers(windows: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the changes of one event, which has its windows by time."""
    return sorted(int(one["revision"]) for one in windows)


def time_changes(begun_s: Sequence[float], got: Iterable[Got]) -> list[float]:
    """Return how long after it was begun each change was with each client, s.

    Raises:
        WrongResultError: a client did not get every change, once, and in order.
    """
    expected = list(range(1, len(begun_s) + 1))
    for place, of_client in enumerate(got):
        numbers = [number for number, _ in of_client]
        if numbers != expected:
            pairs = enumerate(zip(numbers, expected, strict=False))
            at = next((at for at, (one, other) in pairs if one != other), min(len(numbers), len(expected)))
            told = f"client {place} got {len(numbers)} changes of {len(expected)}, and from change {at + 1} on"
            raise WrongResultError(f"{told} {numbers[at : at + 10]}")
    return [got_s - begun_s[number - 1] for of_client in got for number, got_s in of_client]
