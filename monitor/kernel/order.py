"""Order: how many messages overtook each other on the hop to a node, and how far each was overtaken.

Two messages are compared where one probe instance stamped the departures of both, and one the arrivals of both: so each
stamp is compared only with those of its own clock. What is counted is exact, and O(n log n) in arrays.

Method: in order of arrival, the number of messages before one that left after it is counted bit by bit of the rank of
its departure, from the highest bit down, as a wavelet tree does. A run of messages that nothing leaves or enters is
ranked by itself, so that what is nearly in order costs little more than to see that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks, tdigest
from hopwatch.monitor.kernel.journeys import RecordReader
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.pathway import Pathway
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED

FAR_US: Final = 2**61
"""Moments that are farther than this from 1970 count as this far: no clock says so, and sums must not wrap."""

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class HopOrder(NamedTuple):
    """The order in which messages came to each node, against that in which they left the nodes before it.

    ``inversions`` has the shape (nodes,); ``displacement`` is of how many messages each was overtaken by.
    """

    inversions: Int64s
    displacement: tuple[tdigest.Digest, ...]


class _Stamps(NamedTuple):
    """Departures and arrivals of a window: ids, node and instance of each observation, its stamps, which it has, µs."""

    ids: Ids
    node: NDArray[np.uint8]
    instance: Int64s
    left_us: Int64s
    came_us: Int64s
    leaves: Bools
    comes: Bools


def find_order(pathway: Pathway, batches: Sequence[ObservedBatch]) -> HopOrder:
    """Return the order on all hops of a window, of which these are all batches; order and batching change nothing."""
    stamps = _read_stamps(pathway, batches)
    groups = masks.group_by_id(stamps.ids)
    sizes = np.diff(np.append(groups.starts, len(groups.order)))
    message = np.empty(len(groups.order), np.int64)
    message[groups.order] = np.repeat(np.arange(len(sizes)), sizes)
    lanes = int(stamps.instance.max(initial=0)) + 1
    inversions = np.zeros(len(pathway.nodes), np.int64)
    found: list[list[Int64s]] = [[] for _ in pathway.nodes]
    left_of: dict[int, Int64s] = {}
    for target in np.flatnonzero(pathway.edges.any(axis=0)).tolist():
        came = _find_single(message, stamps.comes & (stamps.node == target), len(sizes))
        for source in np.flatnonzero(pathway.edges[:, target]).tolist():
            if source not in left_of:
                left_of[source] = _find_single(message, stamps.leaves & (stamps.node == source), len(sizes))
            both = np.flatnonzero((came >= 0) & (left_of[source] >= 0))
            start, end = left_of[source][both], came[both]
            lane = stamps.instance[start] * lanes + stamps.instance[end]
            found[target].append(count_overtakers(lane, stamps.left_us[start], stamps.came_us[end]))
            inversions[target] += found[target][-1].sum()
    return HopOrder(inversions, tuple(_build_digest(parts) for parts in found))


def count_overtakers(lane: Int64s, left_us: Int64s, came_us: Int64s) -> Int64s:
    """Return for each message how many of its lane left after it and came before it; all of shape (messages,).

    What left, or came, at the same moment has not overtaken.
    """
    left, came = _join(lane, left_us), _join(lane, came_us)
    by_departure = np.argsort(left)
    rank = np.zeros(len(lane), np.int64)
    np.cumsum(np.diff(left[by_departure]) != 0, out=rank[1:])
    # What came at once stays in the order of departure; the sort is quick where nearly all is in order.
    by_arrival = np.argsort(came[by_departure], kind="stable")
    counts = np.empty(len(lane), np.int64)
    counts[by_departure[by_arrival]] = _count_greater_before(rank[by_arrival])
    return counts


def _join(lane: Int64s, moments_us: Int64s) -> Int64s:
    """Return numbers that are in the order of lanes, and in each lane in that of the moments."""
    if not len(lane):
        return moments_us
    first_us, lanes = int(moments_us.min()), int(lane.max()) + 1
    if lanes * (int(moments_us.max()) - first_us + 1) >= NEVER_US:
        moments_us, first_us = np.unique(moments_us, return_inverse=True)[1], 0
    since = moments_us - first_us
    return lane * (int(since.max()) + 1) + since


def _count_greater_before(ranks: Int64s) -> Int64s:
    """Return for each rank how many before it are greater."""
    counts = np.zeros(len(ranks), np.int64)
    if len(ranks) < 2:  # noqa: PLR2004 - two can be out of order
        return counts
    least = np.minimum.accumulate(ranks[::-1])[::-1]
    is_start = np.append(True, np.maximum.accumulate(ranks)[:-1] <= least[1:])
    run = np.cumsum(is_start) - 1
    is_mixed = np.bincount(run)[run] > 1
    at = np.flatnonzero(is_mixed)
    if not len(at):
        return counts
    # The least of all that is left stands where a run starts.
    within = ranks[at] - least[np.flatnonzero(is_start)][run[at]]
    bits = int(within.max()).bit_length()
    keys = run[at] << bits | within
    for bit in range(bits - 1, -1, -1):
        is_one = (keys >> bit & 1).astype(bool)
        ones = np.cumsum(is_one) - is_one
        begins = np.flatnonzero(np.append(True, np.diff(keys >> bit + 1) != 0))
        sizes = np.diff(np.append(begins, len(keys)))
        ones -= np.repeat(ones[begins], sizes)
        zeros = np.flatnonzero(~is_one)
        counts[at[zeros]] += ones[zeros]
        # Zeros before ones in each group, both in the order that they had.
        begin = np.repeat(begins, sizes)
        zeros_in_group = np.repeat(np.add.reduceat(~is_one, begins, dtype=np.int64), sizes)
        place = np.where(is_one, begin + zeros_in_group + ones, np.arange(len(keys)) - ones)
        moved = np.empty_like(keys)
        moved[place] = keys
        keys, moved = moved, np.empty_like(at)
        moved[place] = at
        at = moved
    return counts


def _find_single(message: Int64s, chosen: Bools, messages: int) -> Int64s:
    """Return for each message the one chosen observation of it; -1 where there is none, or more than one."""
    at = np.flatnonzero(chosen)
    of_message = message[at]
    is_single = np.bincount(of_message, minlength=messages)[of_message] == 1
    found = np.full(messages, -1, np.int64)
    found[of_message[is_single]] = at[is_single]
    return found


def _build_digest(parts: Sequence[Int64s]) -> tdigest.Digest:
    return tdigest.build(np.concatenate(parts)) if parts else tdigest.EMPTY


def _read_stamps(pathway: Pathway, batches: Sequence[ObservedBatch]) -> _Stamps:
    """Read the stamps of all observations; a batch whose record cannot be read again has none."""
    numbers: dict[tuple[int, str], int] = {}
    parts = [
        _read_stamps_of_batch(pathway, batch, read, numbers.setdefault((batch.node, batch.instance), len(numbers)))
        for batch in batches
        if (read := batch.record) is not None
    ]
    if not parts:
        nothing, never = np.empty(0, np.int64), np.empty(0, bool)
        return _Stamps(np.empty((0, 2), np.uint64), np.empty(0, np.uint8), nothing, nothing, nothing, never, never)
    return _Stamps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _read_stamps_of_batch(pathway: Pathway, batch: ObservedBatch, read: RecordReader, instance: int) -> _Stamps:
    count = len(batch.message_ids)
    told = read(np.arange(count) if batch.rows is None else batch.rows)
    lag_in_us, lag_out_us = told.lag_in_us, told.lag_out_us
    if pathway.stamps[batch.node] != "both":
        lag_in_us, lag_out_us = (
            np.where(own == NOT_STAMPED, other, own)
            for own, other in ((lag_in_us, lag_out_us), (lag_out_us, lag_in_us))
        )
    left_us, came_us = (_add(told.event_time_us, lag_us) for lag_us in (lag_out_us, lag_in_us))
    leaves = (lag_out_us != NOT_STAMPED) & (told.outcome == Outcome.PASSED)
    comes = (lag_in_us != NOT_STAMPED) & (told.outcome != Outcome.DEFERRED)
    node = np.full(count, batch.node, np.uint8)
    return _Stamps(batch.message_ids, node, np.full(count, instance), left_us, came_us, leaves, comes)


def _add(event_us: Int64s, lag_us: Int64s) -> Int64s:
    return np.clip(event_us + np.clip(lag_us, -2 * FAR_US, 2 * FAR_US), -FAR_US, FAR_US)
