"""Rows of a table as messages: ids and event times as arrays, and the rows that have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hopwatch.probes.contract.limits import ID_BYTES, WINDOW_US
from hopwatch.probes.files.id_values import IdValues, read_ids
from hopwatch.probes.files.time_values import TimeValues, read_times
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit

BadRow = tuple[SkipReason, int | None]
"""Reason for which a row cannot be stamped, and the start of its window in µs since 1970 if its event time is known."""
MAX_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Columns of a table that hold id and event time, and how these are written; ``zone`` is that of local times."""

    id: str
    time: str
    id_as: IdFormat = IdFormat.AUTO
    unit: TimeUnit = TimeUnit.US
    zone: str | None = None

    @property
    def text(self) -> str:
        """Return all that decides what is read of a row."""
        return repr(tuple(str(value) for value in astuple(self)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, each once."""
        return tuple(dict.fromkeys((self.id, self.time)))

    def check(self, there: Sequence[str], table: str) -> None:
        """Check that a table has the columns.

        Raises:
            TapUsageError: it has not.
        """
        for flag, name in (("--id", self.id), ("--time", self.time)):
            if name not in there:
                named = ", ".join(there[:MAX_NAMED]) + (" …" if len(there) > MAX_NAMED else "")
                raise TapUsageError(f"{table} has no column {name!r:.80}: name one of {named} with {flag}")


class MessageRows(NamedTuple):
    """Messages of some rows: ids as pairs of 64 bits (n, 2), event times, kinds and texts of ids; and the bad rows."""

    ids: NDArray[np.uint64]
    events_us: NDArray[np.int64]
    id_kinds: NDArray[np.uint8]
    id_texts: Sequence[bytes]
    bad: Counter[BadRow]

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.ids)

    @classmethod
    def empty(cls) -> MessageRows:
        """Return no messages."""
        return cls(np.zeros((0, 2), np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint8), (), Counter())

    def with_bad(self, bad: Counter[BadRow]) -> MessageRows:
        """Return the messages, with other bad rows."""
        return MessageRows(self.ids, self.events_us, self.id_kinds, self.id_texts, bad)

    def iter_ids(self) -> Iterator[bytes]:
        """Yield the ids in wire format."""
        packed = np.ascontiguousarray(self.ids).tobytes()
        return (packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES))

    def select(self, chosen: NDArray[np.bool_ | np.int64]) -> MessageRows:
        """Return the chosen messages, given as a mask or as places in their new order, and all bad rows."""
        places = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        texts = [self.id_texts[place] for place in places.tolist()] if len(self.id_texts) else ()
        return MessageRows(self.ids[chosen], self.events_us[chosen], self.id_kinds[chosen], texts, self.bad)


def read_messages(batch: pa.RecordBatch, mapping: RowMapping) -> MessageRows:
    """Return the messages of rows; a column that they do not have is empty in all of them.

    Raises:
        MappingError: event times have no zone, and the mapping says none.
    """
    id_column, time_column = (
        batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
        for name in (mapping.id, mapping.time)
    )
    ids = read_ids(id_column, mapping.id_as)
    times = read_times(time_column, mapping.unit, mapping.zone, mapping.time)
    rows = MessageRows(ids.ids, times.moments_us, ids.kinds, ids.texts, _count_bad(ids, times))
    good = ids.is_valid & times.is_valid
    return rows if good.all() else rows.select(good)


def concatenate_rows(parts: Sequence[MessageRows]) -> MessageRows:
    """Return the rows of all parts, of which there is at least one."""
    has_texts = any(len(rows.id_texts) for rows in parts)
    texts = [text for rows in parts for text in (rows.id_texts or [b""] * len(rows))] if has_texts else ()
    bad: Counter[BadRow] = Counter()
    for rows in parts:
        bad += rows.bad
    ids, events_us, kinds = (np.concatenate([rows[place] for rows in parts]) for place in range(3))
    return MessageRows(ids, events_us, kinds, texts, bad)


def _count_bad(ids: IdValues, times: TimeValues) -> Counter[BadRow]:
    """Count the rows that cannot be stamped; a bad id is the reason where both are bad."""
    bad: Counter[BadRow] = Counter()
    windows_us = times.moments_us // WINDOW_US * WINDOW_US
    is_unknown = ~ids.is_absent & ~ids.is_valid
    for reason, rows in ((SkipReason.NO_ID, ids.is_absent), (SkipReason.BAD_ID, is_unknown)):
        starts, counts = np.unique(windows_us[rows & times.is_valid], return_counts=True)
        bad.update({(reason, start): count for start, count in zip(starts.tolist(), counts.tolist(), strict=True)})
        bad[reason, None] += int((rows & ~times.is_valid).sum())
    bad[SkipReason.NO_TIME, None] += int((ids.is_valid & times.is_absent).sum())
    bad[SkipReason.BAD_TIME, None] += int((ids.is_valid & ~times.is_absent & ~times.is_valid).sum())
    return +bad
