"""Batches of an instance whose stamps are all known before its first batch is sent: it says hello, stamps and bye.

Its name and epoch come from what was stamped, so that whoever sends it again sends the same numbers, which count once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, WireIdKind
from hopwatch.probes.contract.limits import MAX_DROPS, WINDOW_MS, WINDOW_US
from hopwatch.probes.packing import Columns, pack_batches


@dataclass(frozen=True, slots=True)
class FinishedInstance:
    """Instance of a probe; ``seq`` is the number of its next batch."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    seq: int = 0

    def after(self, count: int) -> Self:
        """Return the instance when so many numbers more are used."""
        return replace(self, seq=self.seq + count)


def build_batch(instance: FinishedInstance, kind: BatchKind, complete_through_us: int, sent_at_us: int) -> Batch:
    """Build the next batch, without observations."""
    return Batch(
        instance.probe, instance.epoch_us, instance.seq, kind, instance.stream, instance.node,
        sent_at_us // WINDOW_US * WINDOW_MS, sent_at_us, complete_through_us, id_kind=WireIdKind.BYTES,
    )  # fmt: skip


def build_hello(instance: FinishedInstance, sent_at_us: int) -> Batch:
    """Build the first batch, which completes nothing."""
    return build_batch(instance, BatchKind.HEARTBEAT, 0, sent_at_us)


def build_observations(
    instance: FinishedInstance, columns: Columns, id_texts: Sequence[bytes], sent_at_us: int
) -> list[Batch]:
    """Build the batches of some observations, none if there are none."""
    if not len(columns.event_us):
        return []
    return [
        replace(
            build_batch(instance.after(place), BatchKind.OBSERVATIONS, 0, sent_at_us),
            window_start_ms=part.window_start_ms,
            count=part.count,
            **part.fields,
        )
        for place, part in enumerate(pack_batches(columns, [], id_texts))
    ]


def build_end(instance: FinishedInstance, drops: Sequence[Drop], sent_at_us: int) -> list[Batch]:
    """Build the last batches: the drops, and the bye, which completes the account."""
    told = [drops[first : first + MAX_DROPS] for first in range(0, len(drops), MAX_DROPS)]
    heartbeats = [
        replace(build_batch(instance.after(place), BatchKind.HEARTBEAT, 0, sent_at_us), drops=tuple(part))
        for place, part in enumerate(told)
    ]
    return [*heartbeats, build_batch(instance.after(len(heartbeats)), BatchKind.BYE, sent_at_us, sent_at_us)]
