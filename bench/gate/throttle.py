"""Throttle of the gate: consumers that are too slow, with a throttle and without, over a real broker.

A group of one consumer takes so many messages a second and commits every second; producers send twice as many, at fixed
times, and do not send again what is refused. Waits are from the broker's time of a record until it is consumed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

import numpy as np
from confluent_kafka import Consumer
from rich.table import Table

from bench.contestant import keep_to_cores_for_children
from bench.gate import orders, server
from bench.gate.client import format_request, open_connection
from bench.gate.load import CREATED, PATH
from bench.gate.preflight import check_entrance
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.truth import WrongResultError
from servers.kafka import Kafka

GROUP: Final = "slow"
BATCH: Final = 10
TOO_MANY: Final = 429
PARTITIONS: Final = 4
_SLICE_S: Final = 0.05
_STARTED_S: Final = 30.0
_NEEDS: Final = {"message.timestamp.type": "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class ThrottleSizes:
    """Rates, the target and the time of each run, after so long in which consumers keep up."""

    offered_per_s: int = 400
    consumed_per_s: int = 200
    target_s: float = 5.0
    seconds: float = 120.0
    calm_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ThrottleLine:
    """One run: waits of the messages that were consumed in it, s, and what the producers were answered."""

    throttle: str
    target_s: float
    offered: int
    admitted: int
    refused: int
    consumed: int
    p50_s: float
    p95_s: float
    max_s: float
    last_s: float
    busy: float


@dataclass(slots=True)
class SlowConsumer:
    """A consumer that takes so many messages a second; ``waits_s`` has the wait of each."""

    broker: Kafka
    topic: str
    per_s: int
    waits_s: list[float] = field(default_factory=list)
    _over: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> Self:
        """Start."""
        self._thread = Thread(target=self._consume, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._over.set()
        assert self._thread is not None  # noqa: S101 - it was started
        self._thread.join()

    def _consume(self) -> None:
        own = {"group.id": GROUP, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1_000}
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap} | own)
        consumer.subscribe([self.topic])
        due_s, allowed = time.monotonic(), 0.0
        try:
            while not self._over.is_set():
                due_s += _SLICE_S
                allowed += self.per_s * _SLICE_S
                now_s = time.time()
                for message in consumer.consume(int(allowed), 0.0) if allowed >= 1 else ():
                    if message.error() is None:
                        self.waits_s.append(now_s - message.timestamp()[1] / 1e3)
                        allowed -= 1
                # A time without messages is lost: none is taken faster afterwards.
                allowed = min(allowed, 1.0)
                self._over.wait(max(0.0, due_s - time.monotonic()))
        finally:
            consumer.close()


def measure(scratch: Path, tell: Progress, sizes: ThrottleSizes = ThrottleSizes()) -> list[ThrottleLine]:
    """Return a run without a throttle, and one with it.

    Raises:
        ServerError: the broker does not start.
        ContestantError: the gate does not start.
        WrongResultError: it answers otherwise than 201 or 429, or consumers have got what was not acknowledged.
    """
    return [_measure_run(scratch, tell, sizes, is_throttled=is_throttled) for is_throttled in (False, True)]


def _measure_run(scratch: Path, tell: Progress, sizes: ThrottleSizes, *, is_throttled: bool) -> ThrottleLine:
    what = "with" if is_throttled else "without"
    tell(f"{what} a throttle: {sizes.calm_s + sizes.seconds:.0f} s")
    own = scratch / what
    own.mkdir(exist_ok=True)
    broker = Kafka(own / "broker")
    table = f'[gate.streams.{orders.STREAM}.throttle]\ngroup = "{GROUP}"\ntarget = "{int(sizes.target_s * 1e3)}ms"\n'
    topic = server.topic(server.GATE)
    try:
        with keep_to_cores_for_children():
            broker.start()
        for name in (server.OBSERVATIONS, *server.topics(server.GATE)):
            broker.create_topic(name, PARTITIONS, _NEEDS)
        with server.run_server(server.GATE, own, broker, table if is_throttled else "") as gate:
            check_entrance(server.GATE, gate.port)
            with SlowConsumer(broker, topic, sizes.consumed_per_s) as consumer:
                asyncio.run(_send(gate.port, sizes.consumed_per_s // 2, sizes.calm_s))
                _await_first(consumer)
                begin, begin_s = len(consumer.waits_s), time.time()
                answers = asyncio.run(_send(gate.port, sizes.offered_per_s, sizes.seconds))
                end, end_s = len(consumer.waits_s), time.time()
    finally:
        broker.stop()
    if set(answers) - {CREATED, TOO_MANY}:
        raise WrongResultError(f"the gate answered 201 or 429, got {dict(answers)}")
    waits_s = np.array(consumer.waits_s[begin:end])
    admitted, refused = answers[CREATED] * BATCH, answers[TOO_MANY] * BATCH
    p50_s, p95_s, max_s = (float(one) for one in np.quantile(waits_s, (0.5, 0.95, 1.0)))
    counts = admitted + refused, admitted, refused, len(waits_s)
    busy = len(waits_s) / (sizes.consumed_per_s * (end_s - begin_s))
    return ThrottleLine(what, sizes.target_s, *counts, p50_s, p95_s, max_s, float(waits_s[-1]), busy)


def _await_first(consumer: SlowConsumer) -> None:
    """Wait until the group has got what was sent before."""
    until_s = time.monotonic() + _STARTED_S
    while not consumer.waits_s:
        if time.monotonic() > until_s:
            raise WrongResultError(f"the consumer has got nothing for {_STARTED_S:g} s")
        time.sleep(_SLICE_S)


async def _send(port: int, per_s: int, seconds: float) -> Counter[int]:
    """Send batches at their times over one connection; return how many were answered with which status."""
    connection, answers = await open_connection(port), Counter[int]()
    begin_s = time.perf_counter()
    for number in range(int(per_s * seconds / BATCH)):
        await asyncio.sleep(max(0.0, begin_s + number * BATCH / per_s - time.perf_counter()))
        body = orders.encode_batch(number, BATCH)
        answers[(await connection.ask(format_request("POST", PATH, body))).status] += 1
    connection.close()
    return answers


def build_table(lines: list[ThrottleLine]) -> Table:
    """Return the table."""
    names = ("target s", "offered", "admitted", "refused", "consumed", "p50 s", "p95 s", "max s", "last s", "busy")
    table = new_table("Waits for a consumer that takes half of what is offered", ("throttle",), names)
    for line in lines:
        counts = (f"{count:,}" for count in (line.offered, line.admitted, line.refused, line.consumed))
        waits = (format_number(wait_s, 2) for wait_s in (line.p50_s, line.p95_s, line.max_s, line.last_s))
        table.add_row(line.throttle, f"{line.target_s:g}", *counts, *waits, format_number(line.busy, 2))
    return table
