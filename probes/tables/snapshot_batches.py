"""Batches of a snapshot: those of a probe instance that stamped when the snapshot was committed, and then said bye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, Self

import numpy as np

from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Outcome, WireIdKind
from hopwatch.probes.contract.limits import NOT_STAMPED
from hopwatch.probes.finished_instance import FinishedInstance, build_batch
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns
from hopwatch.probes.tables.message_rows import BadRow, MessageRows
from hopwatch.probes.tables.snapshots import SnapshotPlace
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.untimed_messages import UntimedMessages
from hopwatch.probes.values import SkipReason

_NAME_BYTES: Final = 8
_US_PER_MS: Final = 1_000


class SnapshotInstance(FinishedInstance):
    """Probe instance of one snapshot, which was stamped at its epoch."""

    __slots__ = ()

    @classmethod
    def of_snapshot(cls, stream: str, node: str, account: str, place: SnapshotPlace) -> Self:
        """Return the instance of a snapshot, which is the same wherever the table is read in the same way.

        ``account`` names the table, and the way in which its rows are read.
        """
        return cls(stream, node, f"table-{_digest(account)}.{place.number}", place.committed_us)

    @classmethod
    def of_gap(cls, stream: str, node: str, table: str, from_us: int, until: SnapshotPlace) -> Self:
        """Return the instance of the snapshots before one that the table keeps no more."""
        return cls(stream, node, f"table-{_digest(table)}.before-{until.number}", from_us)


def build_gap(instance: SnapshotInstance, until_us: int) -> list[Batch]:
    """Build the batches of an instance whose hole, one missing number, is the whole time from its epoch on."""
    end_us = max(until_us, instance.epoch_us)
    return [
        build_batch(instance, BatchKind.HEARTBEAT, instance.epoch_us, instance.epoch_us),
        build_batch(instance.after(2), BatchKind.BYE, end_us, end_us),
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


def build_columns(rows: MessageRows, stamped_us: int, side: StampSide) -> Columns:
    """Build the observations of some rows, which are all stamped at one moment."""
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
