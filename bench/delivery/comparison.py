"""Messages a second from a topic to a receiver: ``hopwatch deliver`` beside others, over one broker, in turns.

Broker, receiver and program share two cores. The backlog is in the topic before a program starts. Its rate is that of
the messages that the receiver had not seen before, behind a warm-up; no message may come twice, as nothing is killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import orjson
from confluent_kafka import Producer

from bench.contestant import ContestantError, keep_to_cores
from bench.delivery.programs import (
    FASTSTREAM,
    HOPWATCH,
    KINDS,
    PLAIN,
    STOP_S,
    TOPIC,
    CountingReceiver,
    Terms,
    create_topics,
    start_program,
)
from bench.footprint import cpu_s, memory_bytes
from bench.speed import Progress
from bench.truth import WrongResultError
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S, Process, ServerError

PARTITIONS: Final = 4
GOAL_PER_S: Final = 20_000.0
BATCH: Final = 100
PARALLEL: Final = 16
ROUND_TRIP_S: Final = 0.05
WHO: Final = {
    HOPWATCH: "hopwatch deliver",
    PLAIN: "a loop of consume, requests.post, commit",
    FASTSTREAM: "FastStream, confluent broker, aiohttp",
}
_LOOK_S: Final = 0.05
_STARTS_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class BenchSizes:
    """Messages of the backlog, repetitions of each run, and its duration."""

    messages: int = 400_000
    rounds: int = 3
    warm_s: float = 1.5
    seconds: float = 4.0
    batches: tuple[int, ...] = (1, 10, 100, 1_000)
    parallels: tuple[int, ...] = (1, 8, 64)


class Run(NamedTuple):
    """Run of one program: messages a second, processor time of its process for one, and its memory at most."""

    rate: float
    cpu_us: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """Runs under one set of terms, in the order of rounds."""

    terms: Terms
    rates: tuple[float, ...]
    cpu_us: float
    memory_bytes: int

    @property
    def rate(self) -> float:
        """Median of messages a second."""
        return median(self.rates)


def list_terms(sizes: BenchSizes) -> list[Terms]:
    """Return the terms of all runs of a round: without a wait, of all programs, then with a round trip's."""
    without = [Terms(kind, BATCH, PARALLEL if kind == HOPWATCH else 1, 0.0) for kind in KINDS]
    table = [Terms(HOPWATCH, batch, parallel, ROUND_TRIP_S) for batch in sizes.batches for parallel in sizes.parallels]
    others = [Terms(kind, BATCH, 1, ROUND_TRIP_S) for kind in (PLAIN, FASTSTREAM)]
    return [*without, *table, *others]


def measure(scratch: Path, tell: Progress, sizes: BenchSizes = BenchSizes()) -> list[DeliveryLine]:
    """Return what was measured; rounds go through all terms, each beginning further on.

    Raises:
        ServerError: the broker or the receiver does not start.
        ContestantError: a program ended, or delivered nothing.
        WrongResultError: a message came twice.
    """
    broker = Kafka(scratch / "broker")
    try:
        with _on_cores():
            tell(f"a broker with {sizes.messages:,} messages")
            broker.start()
            broker.create_topic(TOPIC, PARTITIONS, {})
            fill_topic(broker, sizes.messages)
            create_topics(scratch, broker)
            every = list_terms(sizes)
            runs: dict[Terms, list[Run]] = {terms: [] for terms in every}
            for number in range(sizes.rounds):
                begun = number * len(every) // sizes.rounds
                for terms in (*every[begun:], *every[:begun]):
                    tell(f"round {number + 1} of {sizes.rounds}: {describe(terms)}")
                    runs[terms].append(run_program(scratch, broker, terms, sizes))
        return [summarize(terms, found) for terms, found in runs.items()]
    finally:
        broker.stop()


def describe(terms: Terms) -> str:
    """Return the terms in words."""
    waits = f", {terms.wait_s * 1e3:g} ms" if terms.wait_s else ""
    return f"{WHO[terms.kind]}, {terms.batch:,} x {terms.parallel}{waits}"


def summarize(terms: Terms, runs: Sequence[Run]) -> DeliveryLine:
    """Return the line of some terms: medians, and the most memory."""
    rates, cpu_us, memory = zip(*runs, strict=True)
    return DeliveryLine(terms, tuple(rates), median(cpu_us), max(memory))


def fill_topic(broker: Kafka, messages: int) -> None:
    """Write messages, with their numbers as ids.

    Raises:
        ServerError: the broker did not take all of them.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "log_level": 0})
    now_us = time.time_ns() // 1_000
    for number in range(messages):
        value = orjson.dumps(
            {"order": number, "customer": f"customer-{number % 5_000}", "items": [number % 97], "note": "-" * 80}
        )
        headers: list[tuple[str, str | bytes]] = [(ID_HEADER, str(number)), (TIME_HEADER, str(now_us))]
        while True:
            try:
                producer.produce(TOPIC, value, str(number % 5_000), headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(PATIENCE_S):
        raise ServerError(f"the broker did not take all of {messages:,} messages")


def run_program(scratch: Path, broker: Kafka, terms: Terms, sizes: BenchSizes) -> Run:
    """Run one program against a receiver of its own.

    Raises:
        ContestantError: it ended, or delivered nothing.
        WrongResultError: a message came twice.
    """
    with TemporaryDirectory(dir=scratch, prefix="run-", ignore_cleanup_errors=True) as own:
        folder = Path(own)
        receiver = CountingReceiver(folder, terms.wait_s, sizes.messages)
        program = start_program(folder, broker, receiver.url, folder.name, terms)
        try:
            found = _observe(receiver, program, terms, sizes)
        finally:
            program.stop(STOP_S)
        try:
            counts = receiver.read_counts()
        finally:
            receiver.stop()
    if counts.messages != counts.distinct:
        raise WrongResultError(f"{describe(terms)}: no message comes twice, got {counts.messages - counts.distinct:,}")
    return found


def _observe(receiver: CountingReceiver, program: Process, terms: Terms, sizes: BenchSizes) -> Run:
    """Return the figures of a program from the end of the warm-up until the time is over or all is delivered."""
    _await_first(receiver, program, terms)
    time.sleep(sizes.warm_s)
    before, cpu_before_s = receiver.read_counts(), cpu_s(program.pid)
    end_s = time.monotonic() + sizes.seconds
    after = before
    while time.monotonic() < end_s and after.distinct < sizes.messages:
        time.sleep(_LOOK_S)
        after = receiver.read_counts()
    cpu_after_s = cpu_s(program.pid)
    _check(program, terms)
    ended_s = after.last_s if after.distinct == sizes.messages else after.now_s
    count = after.distinct - before.distinct
    if not count:
        raise ContestantError(f"{describe(terms)}: nothing was delivered behind the warm-up")
    cpu_us = (cpu_after_s - cpu_before_s) / count * 1e6
    return Run(count / (ended_s - before.now_s), cpu_us, memory_bytes("VmHWM", program.pid))


def _await_first(receiver: CountingReceiver, program: Process, terms: Terms) -> None:
    end_s = time.monotonic() + _STARTS_WITHIN_S
    while not receiver.read_counts().messages:
        _check(program, terms)
        if time.monotonic() > end_s:
            raise ContestantError(f"{describe(terms)}: nothing was delivered within {_STARTS_WITHIN_S:g} s")
        time.sleep(_LOOK_S)


def _check(program: Process, terms: Terms) -> None:
    try:
        program.check(describe(terms))
    except ServerError as error:
        raise ContestantError(str(error)) from None


@contextmanager
def _on_cores() -> Iterator[None]:
    """Let what is started meanwhile have the cores of a contestant."""
    before = os.sched_getaffinity(0)
    keep_to_cores()
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
