"""First stamps of a window's messages at every node, or of an even sample of them, from which times are measured.

Order and batching change nothing, and shards merge. Method: messages are in the order of a hash of their ids, so that
one of each few in a row is a fair sample. The observations of a message are in the order of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.pathway import Pathway
from hopwatch.probes.contract.limits import NOT_STAMPED

MAX_SAMPLES: Final = 1_024
"""Messages of a window, or of one shard of it, whose stamps are kept at most."""
MAX_LAG_US: Final = 2**43
"""Farthest stamp from an event time that is kept, some 100 days: one beyond it is of a broken clock."""
MISSING_US: Final = np.iinfo(np.int64).max
"""In place of a stamp that a message does not have."""

_NARROW_MISSING: Final = np.iinfo(np.int32).max

Int64s = NDArray[np.int64]


class StampSample(NamedTuple):
    """First arrivals and departures of messages as lags, µs, each of shape (nodes, messages), MISSING_US without one.

    ``weights`` says how many messages of the window each one stands for, shape (messages,).
    """

    arrivals_us: Int64s
    departures_us: Int64s
    weights: Int64s


class NodeStamps(NamedTuple):
    """Observations of one node, laid end to end: lags at arrival and departure, µs or NOT_STAMPED, empty without any.

    ``observations`` is how many they are.
    """

    node: int
    observations: int
    lag_in_us: Int64s
    lag_out_us: Int64s


class LaidStamps(NamedTuple):
    """Observations of a window, node after node, and of each its node and code, shape (observations,)."""

    parts: Sequence[NodeStamps]
    node_of: NDArray[np.uint8]
    code: NDArray[np.uint8]


def sample_stamps(pathway: Pathway, stamps: LaidStamps, groups: Groups) -> StampSample | None:
    """Take the first stamps of a window's messages, or of an even sample of them; None of a path with one node."""
    nodes, messages = len(pathway.nodes), len(groups.starts)
    if nodes == 1:
        return None
    samples = min(messages, MAX_SAMPLES)
    bounds = np.arange(samples + 1) * messages // max(1, samples)
    which, at = masks.find_observations(groups, bounds[:-1])
    node = stamps.node_of[at]
    # Node after node, and message after message: a stable sort of bytes is one pass.
    order = np.argsort(node, kind="stable")
    node, at = node[order], at[order]
    lags_us, code = _take_lags(stamps.parts, node, at), stamps.code[at]
    one_sided = [place for place, side in enumerate(pathway.stamps) if side != "both"]
    if one_sided:
        # One stamp stands for both sides.
        lags_us = np.where(np.isin(node, one_sided) & (lags_us == NOT_STAMPED), lags_us[::-1], lags_us)
    is_stamped = np.stack((code & np.uint8(masks.IN), code & np.uint8(masks.OUT))).astype(bool)
    is_stamped &= (lags_us >= -MAX_LAG_US) & (lags_us <= MAX_LAG_US)
    cell = node.astype(np.int64) * samples + which[order]
    arrivals_us, departures_us = _find_least(cell, lags_us, is_stamped, nodes * samples).reshape(2, nodes, samples)
    if one_sided:
        own = departures_us[one_sided]
        arrivals_us[one_sided] = np.where(own == MISSING_US, arrivals_us[one_sided], own)
    return StampSample(arrivals_us, departures_us, bounds[1:] - bounds[:-1])


def merge_samples(parts: Iterable[StampSample | None]) -> StampSample | None:
    """Merge the samples of shards, whose messages are apart; None where one of them has none."""
    taken = []
    for part in parts:
        if part is None:
            return None
        taken.append(part)
    arrivals_us, departures_us, weights = (np.concatenate(column, axis=-1) for column in zip(*taken, strict=True))
    # In whatever order the shards are given.
    order = np.lexsort((weights, *departures_us, *arrivals_us))
    return StampSample(arrivals_us[:, order], departures_us[:, order], weights[order])


def _take_lags(parts: Sequence[NodeStamps], node: NDArray[np.uint8], at: Int64s) -> Int64s:
    """Return the lags at arrival and departure of observations at some places, in the order of nodes; shape (2, n)."""
    lags_us, end = np.full((2, len(at)), NOT_STAMPED, np.int64), 0
    of_nodes = [part.node for part in parts]
    first, last = (np.searchsorted(node, of_nodes, side).tolist() for side in ("left", "right"))
    for part, start, stop in zip(parts, first, last, strict=True):
        begin, end = end, end + part.observations
        chosen: Any = slice(start, stop)
        places = at[chosen] - begin
        if of_nodes.count(part.node) > 1:
            is_own = (places >= 0) & (places < part.observations)
            chosen, places = start + np.flatnonzero(is_own), places[is_own]
        for side, told_us in enumerate((part.lag_in_us, part.lag_out_us)):
            if len(told_us):
                lags_us[side, chosen] = told_us[places]
    return lags_us


def _find_least(cell: Int64s, lags_us: Int64s, is_stamped: NDArray[np.bool_], cells: int) -> Int64s:
    """Return the least lag of each cell, first at arrival and then at departure; cells are in order."""
    every = np.concatenate((cell, cell + cells))[is_stamped.ravel()]
    stamped_us = lags_us[is_stamped]
    least_us = np.full(2 * cells, MISSING_US)
    is_first = every[1:] != every[:-1]
    if is_first.all():
        least_us[every] = stamped_us
    else:
        starts = np.append(0, np.flatnonzero(is_first) + 1)
        least_us[every[starts]] = np.minimum.reduceat(stamped_us, starts)
    return least_us


def narrow_stamps(sample: StampSample) -> NDArray[Any]:
    """Return both stamps as one array of shape (2, nodes, messages), of half the width where they fit into it."""
    stamps_us = np.stack(sample[:2])
    # What is missing is the least of all numbers then.
    above_us = stamps_us + 1
    if above_us.max(initial=0) > _NARROW_MISSING or stamps_us.min(initial=0) < -_NARROW_MISSING:
        return stamps_us
    return np.minimum(stamps_us, _NARROW_MISSING).astype(np.int32)


def widen_stamps(stamps_us: NDArray[Any], weights: Int64s) -> StampSample:
    """Return the sample whose stamps :func:`narrow_stamps` gave."""
    wide = stamps_us.astype(np.int64)
    wide[stamps_us == np.iinfo(stamps_us.dtype).max] = MISSING_US
    return StampSample(wide[0], wide[1], weights)
