"""Last sightings of missing messages: since when nothing was heard of each, by which it is overdue or not.

Only a window that is not final has them, of a stream with deadlines. Whole seconds keep their rows few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups

STEP_US: Final = 1_000_000
"""Last sightings count as the next multiple of this."""

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class LastSightings(NamedTuple):
    """Messages that are missing at some node and that no node keeps for a later try.

    ``masks`` has the shape (rows, words), ``counts`` and ``last_us`` the shape (rows,): how many messages have the
    row's mask, and a last sighting, the latest arrival of an observation of them, in the second that ends then.
    """

    masks: NDArray[np.uint64]
    counts: Int64s
    last_us: Int64s


class ArrivedObservations(NamedTuple):
    """All observations of a window: arrival and number of those of each batch, and which are deferred, if any is."""

    arrival_us: Int64s
    counts: Int64s
    is_deferred: Bools | None
    groups: Groups


def find_last_sightings(
    distinct: NDArray[np.uint64], is_missing: Bools, place: Int64s, seen: ArrivedObservations
) -> LastSightings:
    """Return the last sightings of the messages whose mask is missing somewhere; ``place`` is the mask of each."""
    messages = np.flatnonzero(is_missing[place])
    if not len(messages):
        return LastSightings(distinct[:0], np.empty(0, np.int64), np.empty(0, np.int64))
    which, at = masks.find_observations(seen.groups, messages)
    begins = np.searchsorted(which, np.arange(len(messages)))
    arrival_us = seen.arrival_us[np.searchsorted(np.cumsum(seen.counts), at, side="right")]
    last_us = -(-np.maximum.reduceat(arrival_us, begins) // STEP_US) * STEP_US
    of_mask = place[messages]
    if seen.is_deferred is not None:
        is_kept = ~np.logical_or.reduceat(seen.is_deferred[at], begins)
        of_mask, last_us = of_mask[is_kept], last_us[is_kept]
    return _count_rows(distinct, of_mask, last_us)


def merge_last_sightings(parts: Iterable[LastSightings | None]) -> LastSightings | None:
    """Merge those of a window's shards, whose messages are apart; None where a shard has none."""
    kept = []
    for part in parts:
        if part is None:
            return None
        kept.append(part)
    words, place = masks.find_distinct(np.concatenate([part.masks for part in kept]))
    counts, last_us = (np.concatenate([part[column] for part in kept]) for column in (1, 2))
    return _count_rows(words, place, last_us, counts)


def _count_rows(
    distinct: NDArray[np.uint64], place: Int64s, last_us: Int64s, counts: Int64s | None = None
) -> LastSightings:
    moments_us, moment = np.unique(last_us, return_inverse=True)
    return LastSightings(*masks.count_rows(distinct, place, moments_us, moment, counts))
