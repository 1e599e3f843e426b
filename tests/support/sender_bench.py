"""A sender to test with, stepped by hand on a manual clock."""

from __future__ import annotations

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.recorder import Stamp, StampKind
from hopwatch.probes.sender import FLUSH_EVERY_S, Sender
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink


class Bench:
    """A sender with its clock and sink, and no thread."""

    def __init__(
        self,
        sink: MemorySink | None = None,
        labels: dict[str, str] | None = None,
        flush_every_s: float | None = FLUSH_EVERY_S,
    ) -> None:
        """Put them together as a probe does, which sends few stamps as often as many; None for its own intervals."""
        self.clock = ManualClock()
        self.sink = sink or MemorySink()
        who = ProbeInstance("orders", "router", "host-1", EPOCH_US, labels or {})
        self.sender = Sender(who, self.sink, self.clock, flush_every_s=flush_every_s)

    def arrive(self, *numbers: int, event_us: int = EPOCH_US) -> None:
        """Stamp some messages, now."""
        for number in numbers:
            self.sender.queue.append(Stamp(StampKind.ARRIVED, number, event_us, self.clock.wall_ns()))

    def batches(self) -> list[Batch]:
        """Return what was sent."""
        return [decode(record) for record in self.sink.records]

    def said(self) -> list[tuple[int, BatchKind, int, int]]:
        """Return of each batch its number, kind, count and complete_through in µs since the start."""
        return [(b.seq, b.kind, b.count, b.complete_through_us - EPOCH_US) for b in self.batches()]
