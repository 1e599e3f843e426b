"""A Spark job without Spark: micro-batches that are planned, evaluated, committed and replayed as Spark does it.

A shop sends orders to a topic; the job reads them, loses some, and is killed at any moment. Its sink may refuse
records, lose them, or be late with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np

from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.spark.micro_batch_instance import JobStamp
from hopwatch.probes.spark.spark_probe import SparkProbe
from hopwatch.probes.spark.task_stamps import MicroBatch, StampsParam, TaskStamps
from hopwatch.probes.tables.message_rows import MessageRows
from hopwatch.testing import ManualClock
from tests.support.spool import write_segment

QUERY: Final = "11111111-2222-3333-4444-555555555555"
PARTITIONS: Final = 2
JOB_STAMPS: Final = (JobStamp.IN, JobStamp.OUT)


class FlakySink:
    """Sink of a spool in which each record has a file: it takes records, or does what it is told to instead."""

    def __init__(self, spool: Path, clock: ManualClock) -> None:
        """Take all records for now."""
        self.spool, self.clock, self.mode = spool, clock, "take"
        self.late: list[bytes] = []
        self._is_settled = True

    def send(self, record: bytes) -> bool:
        """Take a record."""
        if self.mode == "refuse":
            return False
        self._is_settled &= self.mode == "take"
        if self.mode == "take":
            self._write(record)
        elif self.mode == "late":
            self.late.append(record)
        return True

    def failed(self) -> Sequence[bytes]:
        """Return nothing: what is lost is lost without a word."""
        return ()

    def tick(self) -> None:
        """Do nothing."""

    def settle(self, patience_s: float) -> bool:  # noqa: ARG002 - as a sink has it
        """Return whether all since the last call were taken."""
        is_settled, self._is_settled = self._is_settled, True
        return is_settled

    def deliver_late(self) -> None:
        """Write what was late."""
        late, self.late = self.late, []
        for record in late:
            self._write(record)

    def close(self, patience_s: float = 0.0) -> None:
        """Do nothing."""

    def _write(self, record: bytes) -> None:
        number = len(list(self.spool.glob("*.seg")))
        write_segment(self.spool / f"{number:010}.seg", record, arrival_us=self.clock.us)


class SimulatedJob:
    """Query with one source, and the probe of its process."""

    def __init__(self, sink: FlakySink, clock: ManualClock, state: Path | None, *, is_late: bool = False) -> None:
        """Start the first process; nothing is in the source yet.

        Of a job that ``is_late`` the probe hears of a micro-batch when it is committed, as with sinks of Spark's own.
        """
        self.is_late = is_late
        self.sink, self.clock, self.state = sink, clock, state
        self.orders: list[tuple[int, int, bool]] = []
        """Orders of the source: number, event time in µs, and whether the job lets it leave."""
        self.committed, self.number = 0, 0
        self.planned: tuple[int, int] | None = None
        self.tasks = 0
        self.is_unproven = False
        """Whether a process was killed, and no micro-batch has followed."""
        self.start()

    def start(self) -> None:
        """Start a process."""
        self.added: list[TaskStamps] = StampsParam().zero([])
        context = SimpleNamespace(accumulator=lambda *_: SimpleNamespace(value=self.added), applicationId="app")
        streams = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None, active=[])
        spark = cast("Any", SimpleNamespace(sparkContext=context, streams=streams))
        self.probe = SparkProbe(spark, "orders", "enrich", self.sink, state=self.state, clock=self.clock)
        for side in JOB_STAMPS:
            self.probe._points.append(side)

    def restart(self) -> None:
        """Kill the process, and start another one."""
        self.probe._is_closed.set()
        self.probe._cleanup.close()  # which frees the lock of the state, and sends nothing
        self.is_unproven = True
        self.start()

    def trigger(self, limit: int, killed: str, runs: int) -> None:
        """Run one trigger: plan at most so many orders, evaluate them so often, and commit; or die on the way."""
        planned_us = self.clock.us
        if self.planned is None:
            self.planned = self.committed, min(len(self.orders), self.committed + limit)
        first, end = self.planned
        if first == end:
            self.planned = None
            self.probe.read_through(QUERY, planned_us // 1_000 * 1_000)
            return None
        for _ in range(runs):
            self._evaluate(self.orders[first:end])
        self.clock.advance(1)
        micro_batch = MicroBatch(QUERY, self.number)
        if killed == "before sending" or (self.is_late and killed == "before commit"):
            return self.restart()
        if not self.is_late:
            self.probe.finish(micro_batch, is_committed=False)
        if killed == "before commit":
            return self.restart()
        self.committed, self.planned, self.number = end, None, self.number + 1
        if killed == "after commit":
            return self.restart()
        self.is_unproven = False
        self.probe.finish(micro_batch)
        if end == len(self.orders) or self.orders[end][1] >= planned_us:
            self.probe.read_through(QUERY, planned_us // 1_000 * 1_000)
        return None

    def _evaluate(self, orders: Sequence[tuple[int, int, bool]]) -> None:
        stage = self.tasks
        for partition in range(PARTITIONS):
            for point in range(len(JOB_STAMPS)):
                chosen = [order for order in orders[partition::PARTITIONS] if order[2] or point == 0]
                self.tasks += 1
                self.added.append(
                    TaskStamps(
                        point, MicroBatch(QUERY, self.number), stage + point, partition, self.tasks,
                        build_rows(chosen), self.clock.us, Counter(),
                    )
                )  # fmt: skip


def build_rows(orders: Sequence[tuple[int, int, bool]]) -> MessageRows:
    """Return the rows of some orders."""
    ids = np.array([(0, number) for number, _, _ in orders], ">u8").reshape(-1, 2).view(np.uint64)
    events_us = np.array([event_us for _, event_us, _ in orders], np.int64)
    return MessageRows(ids, events_us, np.full(len(orders), WireIdKind.INT, np.uint8), (), Counter())
