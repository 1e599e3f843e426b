"""Number of probe instances that a monitor keeps up with: each has a message a second, and sends as a probe does.

All through a broker, with default settings and with a fixed number of records a trigger, one after the other. Beside it
the age of the recent figures in the store, and how soon it is told that messages are overdue: in each flush one lane
loses those before the last node.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from confluent_kafka import Producer
from rich.table import Table
from sqlalchemy import func, select

from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.spark.sources.kafka import FIRST_RECORDS_PER_TRIGGER
from hopwatch.monitor.store import dialect, fencing, reader, recent_figures, schema, tables
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.limits import WINDOW_MS
from hopwatch.probes.sender import FEW_EVERY_S
from servers.kafka import Kafka
from servers.process import Process

STREAM: Final = "orders"
NODES: Final = ("gate", "router", "norm", "sink")
FLUSH_S: Final = int(FEW_EVERY_S)
"""Interval at which a probe sends so few stamps."""
PARTITIONS: Final = 8
MINUTES: Final = 3
STEPS_PER_FLUSH: Final = 50
STOP_S: Final = 60.0
START_S: Final = 30.0
"""Time for the broker and the monitor to start, before the first record is sent."""
ENCODE_S: Final = 200e-6
"""Time that a record takes to be made, at most: all are made before the first is sent."""
DEADLINE_S: Final = 5
SETTLE_S: Final = 30
"""Settle by default."""
OVERDUE_WITHIN_S: Final = 15
LOOK_S: Final = 0.5
"""Pause between two looks at what is overdue."""
LAST_S: Final = 60.0
"""End of a run by which it is judged."""


@dataclass(frozen=True, slots=True)
class IntakeRun:
    """Run of a monitor: records sent and read, and seconds that it was behind, the most in the last minute, at the end.

    ``recent_s`` is the age of recent figures, the most in the last minute; ``limit`` is the fixed number of records a
    trigger, 0 for the default settings. ``overdue_s`` says how long after deadline and settle the messages that a lane
    had lost in a flush were told, s; of what was due 15 s before the end or earlier, None where it was not told.
    """

    instances: int
    limit: int
    sent: int
    read: int
    behind_s: float
    behind_at_end_s: float
    recent_s: float
    overdue_s: tuple[float | None, ...]

    @property
    def worst_overdue_s(self) -> float | None:
        """Return the longest time until it was told, None where something was not."""
        told_s = [one for one in self.overdue_s if one is not None]
        return max(told_s, default=None) if len(told_s) == len(self.overdue_s) else None


def measure(scratch: Path, tell: Progress, instances: int) -> list[IntakeRun]:
    """Return what a monitor did with a fixed number of records, and with the default settings.

    Raises:
        ServerError: broker or monitor do not start.
    """
    runs = []
    for limit in (FIRST_RECORDS_PER_TRIGGER, 0):
        tell(f"{instances:,} probe instances, {f'{limit:,} records a trigger' if limit else 'default settings'}")
        runs.append(_measure(scratch / f"limit-{limit}", instances, limit))
    return runs


def _measure(folder: Path, instances: int, limit: int) -> IntakeRun:
    folder.mkdir(parents=True)
    flushes = int(MINUTES * 60 / FLUSH_S)
    start_s, lanes = int(time.time() + START_S + flushes * instances * ENCODE_S), instances // len(NODES)
    records = [list(_make_records(instances, start_s + number * FLUSH_S, number)) for number in range(flushes)]
    broker = Kafka(folder / "broker")
    broker.start()
    try:
        broker.create_topic("observations", PARTITIONS)
        store_url = f"sqlite:///{folder / 'store.db'}"
        config = folder / "hopwatch.toml"
        fixed = f"records_per_trigger = {limit}\n" if limit else ""
        config.write_text(
            f'[transport]\nurl = "{broker.url("observations")}"\n{fixed}[store]\nurl = "{store_url}"\n'
            f'[monitor]\nworkdir = "{folder / "work"}"\n[streams.{STREAM}]\npath = "{" -> ".join(NODES)}"\n'
            f'deadline = "{DEADLINE_S}s"\n'
        )
        command = [sys.executable, "-m", "hopwatch", "run", "--config", str(config)]
        monitor = Process(command, folder / "monitor.log")
        try:
            with _watch_overdue(store_url) as told_s:
                read, behind_s, at_end_s, recent_s = _send(broker, store_url, records, start_s)
            overdue_s = find_overdue_latencies(told_s, start_s, lanes)
            return IntakeRun(instances, limit, sum(map(len, records)), read, behind_s, at_end_s, recent_s, overdue_s)
        finally:
            monitor.stop(STOP_S)
    finally:
        broker.stop()


def _make_records(instances: int, sent_s: int, number: int) -> Iterator[bytes]:
    """Yield a batch of each instance, those of a lane through all nodes one after the other."""
    lags = np.full(FLUSH_S, 10_000, "<i8").tobytes()
    random = np.random.default_rng(number)
    lanes = instances // len(NODES)
    for lane in range(lanes):
        sent_us = int(_find_sent_s(sent_s, lane, lanes) * 1e6)
        ids = random.bytes(16 * FLUSH_S)
        for node in NODES:
            is_lost = node == NODES[-1] and lane == number % lanes
            kind = BatchKind.HEARTBEAT if is_lost else BatchKind.OBSERVATIONS
            count, message_ids, lags_us = (0, b"", b"") if is_lost else (FLUSH_S, ids, lags)
            window_start_ms = (sent_us // 1_000 - (0 if is_lost else 1_000)) // WINDOW_MS * WINDOW_MS
            yield encode(
                Batch(
                    f"{node}-{lane}", (sent_s - (number + 1) * FLUSH_S) * 1_000_000, number, kind,
                    STREAM, node, window_start_ms, sent_us, sent_us - 50_000,
                    count=count, message_ids=message_ids, lag_in_us=lags_us, lag_out_us=lags_us,
                )
            )  # fmt: skip


def _find_sent_s(flush_s: float, lane: int, lanes: int) -> float:
    """Return when a lane sends in the flush that begins then."""
    return flush_s + lane / lanes * FLUSH_S


@contextmanager
def _watch_overdue(store_url: str) -> Iterator[list[float]]:
    """Yield the moments at which the messages of each flush were told as overdue or lost, as they are."""
    told_s: list[float] = []
    ended = threading.Event()

    def watch() -> None:
        node, engine = tables.node_windows.c, dialect.create_engine(store_url)
        wanted = select(func.sum(node.overdue + node.loss_lower)).where(node.node == NODES[-1])
        while not ended.wait(LOOK_S):
            with suppress(StoreError), schema.open_snapshot(engine) as connection:
                told = int(connection.execute(wanted).scalar() or 0) // FLUSH_S
                told_s.extend([time.time()] * (told - len(told_s)))
        engine.dispose()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield told_s
    finally:
        ended.set()
        thread.join()


def find_overdue_latencies(told_s: Sequence[float], start_s: float, lanes: int) -> tuple[float | None, ...]:
    """Return how long after deadline and settle the loss of each flush was told, in their order."""
    flushes = int(MINUTES * 60 / FLUSH_S)
    due_s = [
        _find_sent_s(start_s + number * FLUSH_S, number % lanes, lanes) + DEADLINE_S + SETTLE_S
        for number in range(flushes)
    ]
    due_s = [one for one in due_s if one <= start_s + MINUTES * 60 - OVERDUE_WITHIN_S]
    told = [*told_s, *[None] * len(due_s)]
    return tuple(None if at_s is None else at_s - one for at_s, one in zip(told, due_s, strict=False))


def _send(broker: Kafka, store_url: str, records: list[list[bytes]], start_s: int) -> tuple[int, float, float, float]:
    """Send each record when it is due, and look at the monitor's clock all the while.

    Returns how many records were read, how far the monitor was behind, s, at most in the last minute and at the end,
    and how old its recent figures were at most in the last minute.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "log_level": 0})
    engine = dialect.create_engine(store_url)
    behind: list[tuple[float, float, float]] = []
    for number, flush in enumerate(records):
        for step in range(STEPS_PER_FLUSH):
            due_s = start_s + (number + step / STEPS_PER_FLUSH) * FLUSH_S
            time.sleep(max(0.0, due_s - time.time()))
            first, last = (len(flush) * part // STEPS_PER_FLUSH for part in (step, step + 1))
            for record in flush[first:last]:
                producer.produce("observations", record)
            producer.poll(0)
        with schema.open_snapshot(engine) as connection:
            recent = recent_figures.read_recent(connection, STREAM)
            late_s = time.time() - fencing.read_watermark_us(connection) / 1e6
            recent_s = time.time() - (recent.through_us / 1e6 if recent else 0.0)
            behind.append((time.time() - start_s, late_s, recent_s))
    producer.flush(STOP_S)
    with schema.open_snapshot(engine) as connection:
        read = reader.read_accounts(connection)["batches"]
    engine.dispose()
    end_s, at_end_s, _ = behind[-1]
    worst_s, recent_s = (max(one[place] for one in behind if one[0] > end_s - LAST_S) for place in (1, 2))
    return int(read), worst_s, at_end_s, recent_s


def build_table(runs: list[IntakeRun]) -> Table:
    """Return what was sent and read, and how far behind the monitor was."""
    behind = "behind in the last minute, at most, s", "behind at the end, s"
    columns = ("sent", "read", *behind, "age of recent figures, at most, s", "overdue told after, at most, s")
    title = f"Probe instances with a message a second each, {MINUTES} minutes"
    table = new_table(title, ("instances", "records a trigger"), columns)
    for run in runs:
        counts = (format_number(run.sent, 0), format_number(run.read, 0))
        late = (format_number(one, 0) for one in (run.behind_s, run.behind_at_end_s, run.recent_s, run.worst_overdue_s))
        table.add_row(f"{run.instances:,}", f"{run.limit:,}" if run.limit else "by default", *counts, *late)
    return table
