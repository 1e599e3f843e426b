"""Self-test in time that is set by hand: the injector, a transport in memory, and a monitor over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, select

from hopwatch.monitor.micro_batch import BatchFollower
from hopwatch.monitor.selftest.injector import MinuteInjector
from hopwatch.monitor.selftest.stream import SELFTEST_CONFIG, SELFTEST_STREAM
from hopwatch.monitor.store import schema, selftest, tables
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store
from tests.support.spool import write_segment
from tests.support.spool_traffic import pulse

HOUR_US: Final = 3_600_000_000
FLUSH_S: Final = 5.0
BATCH_S: Final = 20.0
BEGIN_US: Final = EPOCH_US - EPOCH_US % HOUR_US + HOUR_US * 3 // 4
"""A quarter to some hour: the next probe dies 45 minutes later."""


@dataclass
class SelftestWorld:
    """Injector and monitor; ``damage`` may change the records that an instance sent, before they arrive."""

    folder: Path
    messages: int = 60
    begin_us: int = BEGIN_US
    settling_us: int = 0
    follower: BatchFollower | None = None
    damage: Callable[[str, list[bytes]], list[bytes]] = field(default=lambda _, records: records)
    clock: ManualClock = field(init=False)
    store: Engine = field(init=False)
    batches: MicroBatches = field(init=False)
    injector: MinuteInjector = field(init=False)
    sinks: dict[str, MemorySink] = field(init=False)
    segments: list[Path] = field(default_factory=list, init=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False)

    def __post_init__(self) -> None:
        """Start the injector."""
        self.clock = ManualClock(self.begin_us)
        self.store = prepared_store(self.folder, "selftest.db")
        self.batches = MicroBatches({SELFTEST_STREAM: SELFTEST_CONFIG}, self.store, follower=self.follower)
        self.start("a-run")

    def start(self, run: str) -> None:
        """Start an injector, as a monitor does that starts; probes of the process before send nothing any more."""
        self.sinks = {}
        selftest.record_start(self.store, self.clock.us)
        record = partial(selftest.record_minute, self.store)
        self.injector = MinuteInjector(
            self._open_sink, record, self.messages, run, clock=self.clock, settling_us=self.settling_us
        )

    def _open_sink(self, instance: str) -> MemorySink:
        return self.sinks.setdefault(instance, MemorySink())

    def run(self, minutes: float) -> SelftestWorld:
        """Let time pass, with a flush of the probes every five seconds and a micro-batch every twenty."""
        until_us = self.clock.monotonic_us + round(minutes * WINDOW_US)
        flush_us = batch_us = self.clock.monotonic_us
        while self.clock.monotonic_us < until_us:
            wait_s = self.injector.step()
            if self.clock.monotonic_us >= flush_us + FLUSH_S * 1e6:
                flush_us = self.clock.monotonic_us
                self.injector.flush()
                self.deliver()
            if self.clock.monotonic_us >= batch_us + BATCH_S * 1e6:
                batch_us = self.clock.monotonic_us
                self.conclude()
            self.clock.advance(max(wait_s, 1e-6))
        return self

    def deliver(self) -> None:
        """Let all records arrive that were sent."""
        for instance, sink in self.sinks.items():
            records, sink.records = sink.records, []
            if arriving := self.damage(instance, records):
                path = self.folder / "spool" / instance / f"{next(self._numbers):06}.seg"
                self.segments.append(write_segment(path, *arriving, arrival_us=self.clock.us))

    def conclude(self) -> None:
        """End a micro-batch."""
        name = f"at{self.clock.monotonic_us}"
        segments, self.segments = [*self.segments, pulse(self.clock.us, name).write(self.folder / "spool")], []
        self.batches.run(segments)

    def outcomes(self) -> list[tuple[int, bool, int, int, int, str]]:
        """Return the minutes that are compared: minute, whether exact, lost, found, false, and kinds of problems."""
        with schema.open_snapshot(self.store) as connection:
            rows = connection.execute(select(tables.selftest_minutes).order_by("window_start_us")).mappings().all()
            failures = {
                one.start_us: " ".join(sorted({problem.kind for problem in one.problems}))
                for one in selftest.read_failures(connection, 0, 2**62)
            }
        return [
            (
                (row["window_start_us"] - self.begin_us) // WINDOW_US,
                row["is_exact"],
                *(row[name] for name in ("lost", "found", "false")),
                failures.get(row["window_start_us"], ""),
            )
            for row in rows
            if row["checked_us"] is not None
        ]

    def problems(self) -> dict[int, str]:
        """Return the kinds of problems of each minute that failed."""
        return {minute: kinds for minute, *_, kinds in self.outcomes() if kinds}
