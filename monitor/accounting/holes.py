"""Holes of the transport: records that were there and could not be read any more, as Kafka's retention leaves them.

The contents of a hole are unknown. Windows whose records may have been in it are therefore UNKNOWN, even if all books
look complete: an instance whose records are all in the hole has no book.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.kernel.window import AHEAD_US
from hopwatch.monitor.payloads import OffsetRun


class PlannedRead(NamedTuple):
    """Planned read of a batch: offsets by partition, end excluded, and the time of the plan in µs.

    ``is_limited`` says that more may have been there than a batch may read.
    """

    ranges: Mapping[str, tuple[int, int]]
    planned_us: int
    is_limited: bool = False

    @property
    def records(self) -> int:
        """Number of records in all ranges."""
        return sum(end - start for start, end in self.ranges.values())


NOTHING_PLANNED = PlannedRead({}, 0)
"""Plan of a transport that never loses records by age."""


class Hole(NamedTuple):
    """Offsets of one partition, both included, that could not be read; they arrived between two moments, µs."""

    place: str
    first: int
    last: int
    after_us: int
    before_us: int


def find_holes(expected: PlannedRead, read: Iterable[OffsetRun], last_arrivals_us: Mapping[str, int]) -> Iterator[Hole]:
    """Yield the gaps between the planned and the actual read.

    ``last_arrivals_us`` says when the last record before this batch arrived, by place; a place without had none.
    """
    by_place = sorted(read, key=attrgetter("place", "first"))
    runs = {place: list(own) for place, own in groupby(by_place, attrgetter("place"))}
    # The driver's clock, which planned the batch, may be behind that of the brokers.
    newest_us = max((run.last_arrival_us for run in by_place), default=0)
    until_us = max(expected.planned_us, newest_us, *last_arrivals_us.values(), 0)
    for place, (start, end) in expected.ranges.items():
        yield from _find_holes_of_partition(
            place, start, end, runs.get(place, ()), last_arrivals_us.get(place, 0), until_us
        )


def _find_holes_of_partition(  # noqa: PLR0913, PLR0917 - one place's part of each
    place: str, start: int, end: int, runs: Sequence[OffsetRun], after_us: int, until_us: int
) -> Iterator[Hole]:
    at = start
    for run in runs:
        if run.first > at:
            yield Hole(place, at, run.first - 1, after_us, run.first_arrival_us)
        at, after_us = max(at, run.last + 1), max(after_us, run.last_arrival_us)
    if end > at:
        yield Hole(place, at, end - 1, after_us, until_us)


def read_through_us(expected: PlannedRead, read: Iterable[OffsetRun]) -> int:
    """Return the moment up to which all that arrived is read, as far as it is known: µs, NEVER_US without a limit.

    In a batch of limited size partitions advance unevenly; a partition that returned no record has an unknown position
    in time.
    """
    if not expected.is_limited:
        return NEVER_US
    latest_us = {place: 0 for place, (start, end) in expected.ranges.items() if end > start}
    for run in read:
        latest_us[run.place] = max(run.last_arrival_us, latest_us.get(run.place, 0))
    return min(latest_us.values(), default=NEVER_US)


def find_touched_windows(
    holes: Iterable[Hole], starts: NDArray[np.int64], settled_at_us: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which windows a record in one of the holes may have been of; shape of ``starts``, µs.

    ``settled_at_us`` is when settle has passed since the horizon of each window. Its records arrive from five minutes
    before its start, where clocks are ahead, until then; those that come later amend it, and are known by the numbers
    of the batches around them.
    """
    spans = np.array([(hole.before_us, hole.after_us) for hole in holes], np.int64).reshape(-1, 2)
    # There may be a hundred thousand: of all that end at some moment or later the one that begins first decides.
    before_us, after_us = spans[np.argsort(spans[:, 0])].T
    first_us = np.append(np.minimum.accumulate(after_us[::-1])[::-1], NEVER_US)
    return np.asarray(settled_at_us >= first_us[np.searchsorted(before_us, starts - AHEAD_US)])
