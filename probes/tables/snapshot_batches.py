"""Batches of a snapshot: those of a probe instance that stamped when the snapshot was committed, and then said bye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

import numpy as np

from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Outcome, WireIdKind
from hopwatch.probes.contract.limits import MAX_DROPS, NOT_STAMPED, WINDOW_MS, WINDOW_US
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, pack_batches
from hopwatch.probes.tables.message_rows import BadRow, MessageRows
from hopwatch.probes.tables.snapshots import SnapshotPlace
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.untimed_messages import UntimedMessages
from hopwatch.probes.values import SkipReason

_NAME_BYTES: Final = 8
_US_PER_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SnapshotInstance:
    """Probe instance of one snapshot; ``seq`` is the number of its next batch."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    seq: int = 0

    @classmethod
    def of_snapshot(cls, stream: str, node: str, account: str, place: SnapshotPlace) -> SnapshotInstance:
        """Return the instance of a snapshot, which is the same wherever the table is read in the same way.

        ``account`` names the table, and the way in which its rows are read.
        """
        return cls(stream, node, f"table-{_digest(account)}.{place.number}", place.committed_us)

    @classmethod
    def of_gap(cls, stream: str, node: str, table: str, from_us: int, until: SnapshotPlace) -> SnapshotInstance:
        """Return the instance of the snapshots before one that the table keeps no more."""
        return cls(stream, node, f"table-{_digest(table)}.before-{until.number}", from_us)

    def after(self, count: int) -> SnapshotInstance:
        """Return the instance when so many numbers more are used."""
        return replace(self, seq=self.seq + count)


def build_hello(instance: SnapshotInstance) -> Batch:
    """Build the first batch."""
    return _build(instance, BatchKind.HEARTBEAT, 0, instance.epoch_us)


def build_observations(
    instance: SnapshotInstance, rows: MessageRows, side: StampSide, *, id_text: bool = True
) -> list[Batch]:
    """Build the batches of some rows; all are stamped at the instance's epoch."""
    if not len(rows):
        return []
    packed = pack_batches(_build_columns(rows, instance.epoch_us, side), [], rows.id_texts if id_text else ())
    return [
        replace(
            _build(instance.after(place), BatchKind.OBSERVATIONS, 0, instance.epoch_us),
            window_start_ms=part.window_start_ms,
            count=part.count,
            **part.fields,
        )
        for place, part in enumerate(packed)
    ]


def build_end(instance: SnapshotInstance, drops: Sequence[Drop] = ()) -> list[Batch]:
    """Build the last batches: the drops, and the bye, which completes the account."""
    told = [drops[first : first + MAX_DROPS] for first in range(0, len(drops), MAX_DROPS)]
    heartbeats = [
        replace(_build(instance.after(place), BatchKind.HEARTBEAT, 0, instance.epoch_us), drops=tuple(part))
        for place, part in enumerate(told)
    ]
    bye = instance.after(len(heartbeats))
    return [*heartbeats, _build(bye, BatchKind.BYE, instance.epoch_us, instance.epoch_us)]


def build_gap(instance: SnapshotInstance, until_us: int) -> list[Batch]:
    """Build the batches of an instance whose hole, one missing number, is the whole time from its epoch on."""
    end_us = max(until_us, instance.epoch_us)
    return [
        _build(instance, BatchKind.HEARTBEAT, instance.epoch_us, instance.epoch_us),
        _build(instance.after(2), BatchKind.BYE, end_us, end_us),
    ]


def find_drops(bad: Counter[BadRow], span_us: tuple[int, int] | None, committed_us: int) -> list[Drop]:
    """Return the drops of rows that cannot be stamped.

    Rows without an event time may be of all minutes of their snapshot's messages, ``span_us``, and near these; without
    any, of those before the snapshot was committed.
    """
    drops: Counter[tuple[int, str]] = Counter()
    untimed = UntimedMessages()
    if span_us is not None:
        list(untimed.add_good(span_us[0]))
    for (reason, window_us), count in bad.items():
        if window_us is None:
            untimed.add_bad(reason, count)
        else:
            drops[window_us // _US_PER_MS, reason] += count
    missed = untimed.flush(committed_us) if span_us is None else untimed.add_good(span_us[1])
    for reason, count, window_us in missed:
        drops[window_us // _US_PER_MS, reason] += count
    return [Drop(window_ms, count, cause) for (window_ms, cause), count in sorted(drops.items())]


def count_reasons(bad: Counter[BadRow]) -> Iterator[tuple[SkipReason, int]]:
    """Yield the reasons of bad rows with their numbers."""
    counts: Counter[SkipReason] = Counter()
    for (reason, _), count in bad.items():
        counts[reason] += count
    yield from counts.items()


def _build(instance: SnapshotInstance, kind: BatchKind, complete_through_us: int, sent_at_us: int) -> Batch:
    return Batch(
        instance.probe, instance.epoch_us, instance.seq, kind, instance.stream, instance.node,
        sent_at_us // WINDOW_US * WINDOW_MS, sent_at_us, complete_through_us, id_kind=WireIdKind.BYTES,
    )  # fmt: skip


def _build_columns(rows: MessageRows, stamped_us: int, side: StampSide) -> Columns:
    count = len(rows)
    stamped, absent = np.full(count, stamped_us), np.full(count, NOT_STAMPED)
    is_in = side is StampSide.IN
    has_text = (rows.id_kinds == WireIdKind.TEXT) & bool(len(rows.id_texts))
    return Columns(
        rows.ids,
        rows.events_us,
        stamped if is_in else absent,
        absent if is_in else stamped,
        np.full(count, Outcome.PASSED, np.uint8),
        np.full(count, NO_TEXT),
        rows.id_kinds,
        np.where(has_text, np.arange(count), NO_TEXT),
        np.zeros(count, np.int64),
        np.full(count, NO_LABELS),
    )


def _digest(table: str) -> str:
    return blake2b(table.encode(), digest_size=_NAME_BYTES).hexdigest()
