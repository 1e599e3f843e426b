"""Last sightings of missing messages: since when nothing was heard of each, by which it is overdue or not.

Only a window that is not final has them, of a stream with deadlines. Whole seconds keep their rows few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.deferrals import NEVER_US
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


class MissingMessages(NamedTuple):
    """Messages of a window that are missing at some node, and that no node keeps for a later try; shape (messages,).

    ``messages`` are their places among all of the window, ascending, and ``last_us`` is the last sighting of each.
    """

    messages: Int64s
    last_us: Int64s

    def find_last_us(self, messages: Int64s) -> Int64s:
        """Return the last sightings of some messages, NEVER_US of each that is not among these."""
        at = np.searchsorted(self.messages, messages)
        is_known = at < len(self.messages)
        is_known[is_known] = self.messages[at[is_known]] == messages[is_known]
        last_us = np.full(len(messages), NEVER_US)
        last_us[is_known] = self.last_us[at[is_known]]
        return last_us


NOTHING_MISSING: Final = MissingMessages(np.empty(0, np.int64), np.empty(0, np.int64))
"""Where nothing is missing, or nobody asks."""


class ArrivedObservations(NamedTuple):
    """All observations of a window: arrival and number of those of each batch, and which are deferred, if any is."""

    arrival_us: Int64s
    counts: Int64s
    is_deferred: Bools | None
    groups: Groups


def find_missing(is_missing: Bools, seen: ArrivedObservations) -> MissingMessages:
    """Find the last sightings of those messages of a window that are missing; ``is_missing`` says which are."""
    messages = np.flatnonzero(is_missing)
    if not len(messages):
        return NOTHING_MISSING
    which, at = masks.find_observations(seen.groups, messages)
    begins = np.searchsorted(which, np.arange(len(messages)))
    arrival_us = seen.arrival_us[np.searchsorted(np.cumsum(seen.counts), at, side="right")]
    last_us = -(-np.maximum.reduceat(arrival_us, begins) // STEP_US) * STEP_US
    if seen.is_deferred is not None:
        is_kept = ~np.logical_or.reduceat(seen.is_deferred[at], begins)
        messages, last_us = messages[is_kept], last_us[is_kept]
    return MissingMessages(messages, last_us)


def count_last_sightings(distinct: NDArray[np.uint64], place: Int64s, missing: MissingMessages) -> LastSightings:
    """Count missing messages by mask and last sighting; ``place`` is the mask of each message of the window."""
    if not len(missing.messages):
        return LastSightings(distinct[:0], np.empty(0, np.int64), np.empty(0, np.int64))
    return _count_rows(distinct, place[missing.messages], missing.last_us)


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
