"""Rows of a file as columns: ids, moments and servers, and why a row cannot be counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hopwatch.probes.contract.limits import NOT_STAMPED
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.id_values import read_ids
from hopwatch.probes.files.time_values import TimeValues, read_times
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.values import SkipReason

GOOD: Final = 0
REASONS: Final = tuple(SkipReason)
"""Reasons by their codes, which count from 1."""
UNTIMED: Final = -1
"""Event time of a row that has none that can be read."""

RawColumns = Mapping[str, Any]
"""Columns of some rows by name: Arrow arrays, or lists of what JSON has."""


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows of which nothing could be read."""

    reason: SkipReason
    count: int


@dataclass(slots=True, eq=False)
class RowColumns:
    """Rows in wire format; ``faults`` holds GOOD or the code of a reason."""

    ids: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    texts: Sequence[bytes]
    event_us: NDArray[np.int64]
    in_us: NDArray[np.int64]
    out_us: NDArray[np.int64]
    faults: NDArray[np.uint8]
    servers: pa.Array | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.faults)

    def select(self, chosen: NDArray[np.int64]) -> RowColumns:
        """Return the rows at some places."""
        texts = [self.texts[place] for place in chosen.tolist()] if len(self.texts) else ()
        arrays = (getattr(self, name)[chosen] for name in ("ids", "kinds", "event_us", "in_us", "out_us", "faults"))
        ids, kinds, event_us, in_us, out_us, faults = arrays
        return RowColumns(ids, kinds, texts, event_us, in_us, out_us, faults)


def build_bad_rows(bad: BadRows) -> RowColumns:
    """Return rows of which nothing is known but why."""
    count = bad.count
    nothing = np.zeros(count, np.int64)
    faults = np.full(count, REASONS.index(bad.reason) + 1, np.uint8)
    ids, kinds = np.zeros((count, 2), np.uint64), np.zeros(count, np.uint8)
    return RowColumns(ids, kinds, (), nothing + UNTIMED, nothing, nothing, faults)


def read_rows(raw: RawColumns, mapping: FileMapping) -> RowColumns:
    """Return rows in wire format; what cannot be read of one is its fault, and no error.

    Raises:
        MappingError: times have no zone.
    """
    found = read_ids(as_array(raw[mapping.id]), mapping.id_as)
    event = _read_times(raw, mapping.time, mapping)
    stamps = [_read_times(raw, name, mapping) for name in (mapping.arrived, mapping.departed) if name]
    moments = _choose_stamps(event, stamps, mapping)
    faults = np.zeros(len(found.kinds), np.uint8)
    is_stamped = np.logical_or.reduce([one.is_valid for one in stamps]) if stamps else event.is_valid
    # The last that applies is what is told.
    for reason, applies in (
        (SkipReason.NO_TIME, ~is_stamped),
        (SkipReason.BAD_TIME, ~event.is_valid),
        (SkipReason.NO_TIME, event.is_absent),
        (SkipReason.BAD_ID, ~found.is_valid),
        (SkipReason.NO_ID, found.is_absent),
    ):
        faults[applies] = REASONS.index(reason) + 1
    event_us = np.where(event.is_valid, event.moments_us, UNTIMED)
    servers = as_array(raw[mapping.server]) if mapping.server else None
    return RowColumns(found.ids, found.kinds, found.texts, event_us, *moments, faults, servers)


def _read_times(raw: RawColumns, name: str, mapping: FileMapping) -> TimeValues:
    return read_times(as_array(raw[name]), mapping.unit, mapping.zone, name)


def _choose_stamps(
    event: TimeValues, stamps: Sequence[TimeValues], mapping: FileMapping
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    absent = np.full(len(event.is_valid), NOT_STAMPED)
    if not stamps:
        given = np.where(event.is_valid, event.moments_us, NOT_STAMPED)
        return (given, absent) if mapping.side is StampSide.IN else (absent, given)
    found = [np.where(one.is_valid, one.moments_us, NOT_STAMPED) for one in stamps]
    if mapping.arrived and mapping.departed:
        return found[0], found[1]
    return (found[0], absent) if mapping.arrived else (absent, found[0])


def as_array(column: Any) -> pa.Array:  # noqa: ANN401 - Arrow's, or a list
    """Return a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, list):
        return pa.array(column)
    return column


def split_by_type(documents: Sequence[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Yield runs of rows whose values have the same types, so that each run makes columns."""
    run: list[Sequence[Any]] = []
    types: list[type | None] = []
    for row in documents:
        own = [None if value is None else type(value) for value in row]
        if run and any(one and other and one is not other for one, other in zip(types, own, strict=True)):
            yield run
            run, types = [], []
        types = [one or other for one, other in zip(types, own, strict=True)] if types else own
        run.append(row)
    if run:
        yield run
