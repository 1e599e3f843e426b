"""Load on an entrance, from a process of its own: batches as fast as they are taken, or single events on time."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from bench.contestant import Json
from bench.footprint import cpu_s
from bench.gate import orders
from bench.gate.client import Connection, HttpReply, format_request, open_connection
from bench.truth import WrongResultError

PATH: Final = f"/streams/{orders.STREAM}/events"
CREATED: Final = 201
OK: Final = 200
HEALTH_EVERY_S: Final = 0.1


class _Sums:
    """What was acknowledged so far, and what the server's processor has done for it."""

    def __init__(self, process: int) -> None:
        self._process = process
        self.acknowledged = 0

    def now(self) -> tuple[float, float, int]:
        """Return the moment and the server's processor time, in s, and how many events were acknowledged."""
        return time.perf_counter(), cpu_s(self._process), self.acknowledged


class Load(NamedTuple):
    """A load on the server of a process: so many seconds of it count, after others to warm up.

    ``rate`` is how many single events are due a second.
    """

    port: int
    process: int
    warm_s: float
    seconds: float
    connections: int
    rate: int = 0


def batches(folder: Path, **load: Any) -> Json:  # noqa: ANN401 - JSON
    """Send batches, each connection the next one when the last one is answered; ``load`` is a :class:`Load`."""
    del folder
    return asyncio.run(_batches(Load(**load)))


async def _batches(load: Load) -> Json:
    _keep_quiet()
    sums, numbers, is_over = _Sums(load.process), itertools.count(), asyncio.Event()

    async def send() -> None:
        connection = await open_connection(load.port)
        while not is_over.is_set():
            check(await connection.ask(format_request("POST", PATH, orders.encode_batch(next(numbers)))), CREATED)
            sums.acknowledged += orders.BATCH
        connection.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(load.connections):
            tasks.create_task(send())
        await asyncio.sleep(load.warm_s)
        began_s, cpu_began_s, before = sums.now()
        await asyncio.sleep(load.seconds)
        ended_s, cpu_ended_s, after = sums.now()
        is_over.set()
    events = after - before
    return {
        "acknowledged": sums.acknowledged,
        "rate": events / (ended_s - began_s),
        "cpu_us": (cpu_ended_s - cpu_began_s) / events * 1e6,
    }


def serial_batches(folder: Path, batch: int, **load: Any) -> Json:  # noqa: ANN401 - JSON
    """Send batches of one size over one connection, each when the last one is answered; ``load`` is a :class:`Load`."""
    del folder
    return asyncio.run(_serial_batches(batch, Load(**load)))


async def _serial_batches(batch: int, load: Load) -> Json:
    _keep_quiet()
    sums, spans_s, requests = _Sums(load.process), list[float](), 0
    connection = await open_connection(load.port)

    async def send_until(ends_s: float) -> None:
        nonlocal requests
        while time.perf_counter() < ends_s:
            request = format_request("POST", PATH, orders.encode_batch(requests, batch))
            began_s = time.perf_counter()
            check(await connection.ask(request), CREATED)
            spans_s.append(time.perf_counter() - began_s)
            sums.acknowledged += batch
            requests += 1

    await send_until(time.perf_counter() + load.warm_s)
    spans_s.clear()
    began_s, cpu_began_s, before = sums.now()
    await send_until(began_s + load.seconds)
    ended_s, cpu_ended_s, after = sums.now()
    connection.close()
    return {
        "requests": requests,
        "rate": (after - before) / (ended_s - began_s),
        "cpu_us": (cpu_ended_s - cpu_began_s) / (after - before) * 1e6,
        "p95_ms": float(np.quantile(spans_s, 0.95)) * 1e3,
    }


def singles(folder: Path, **load: Any) -> Json:  # noqa: ANN401 - JSON
    """Put events one by one, so many a second, and ask meanwhile whether the server is well.

    Each event is due at its moment, whatever became of those before it; its span begins there. If all connections are
    at work then, it waits, and that counts.
    """
    del folder
    return asyncio.run(_singles(Load(**load)))


async def _singles(load: Load) -> Json:
    _keep_quiet()
    open_ones = [await open_connection(load.port) for _ in range(load.connections)]
    first, last = int(load.warm_s * load.rate), int((load.warm_s + load.seconds) * load.rate)
    numbers, sums, is_over = itertools.count(), _Sums(load.process), asyncio.Event()
    spans_s, health_s = [0.0] * last, [0.0]
    starts_s = time.perf_counter() + 0.1

    async def put(connection: Connection) -> None:
        while (number := next(numbers)) < last:
            due_s = starts_s + number / load.rate
            if (early_s := due_s - time.perf_counter()) > 0:
                await asyncio.sleep(early_s)
            (event_id,) = orders.ids(1)
            check(
                await connection.ask(format_request("PUT", f"{PATH}/{event_id}", orders.encode_order(number))), CREATED
            )
            spans_s[number] = time.perf_counter() - due_s
            sums.acknowledged += 1

    async def look() -> None:
        while not is_over.is_set():
            began_s = time.perf_counter()
            connection = await open_connection(load.port)
            check(await connection.ask(format_request("GET", "/healthz")), OK)
            connection.close()
            health_s.append(time.perf_counter() - began_s)
            await asyncio.sleep(HEALTH_EVERY_S)

    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(look())
        putting = [tasks.create_task(put(one)) for one in open_ones]
        await asyncio.sleep(starts_s + load.warm_s - time.perf_counter())
        _, cpu_began_s, before = sums.now()
        await asyncio.wait(putting)
        _, cpu_ended_s, after = sums.now()
        is_over.set()
        await looking
    for connection in open_ones:
        connection.close()
    return {
        "acknowledged": sums.acknowledged,
        "cpu_us": (cpu_ended_s - cpu_began_s) / max(after - before, 1) * 1e6,
        "health_most_ms": max(health_s) * 1e3,
        **figures(spans_s[first:]),
    }


def figures(spans_s: Sequence[float]) -> Json:
    """Return what spans come to, in ms."""
    p50_ms, p99_ms, most_ms = (float(span_s) * 1e3 for span_s in np.quantile(spans_s, (0.5, 0.99, 1.0)))
    return {"p50_ms": p50_ms, "p99_ms": p99_ms, "most_ms": most_ms}


def check(answer: HttpReply, expected: int) -> None:
    """Hold an answer against what it has to be.

    Raises:
        WrongResultError: it is another one.
    """
    if answer.status != expected:
        raise WrongResultError(f"every answer has to be {expected}, got {answer.status}: {answer.body[:500]!r}")


def _keep_quiet() -> None:
    """Collect no garbage: pauses of the client are none of the server's."""
    gc.collect()
    gc.disable()
