"""First stamps of a window's messages at every node, or of an even sample of them, from which times are measured.

Order and batching change nothing, and shards merge. Method: messages are in the order of a hash of their ids, so that
one of each few in a row is a fair sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.pathway import Pathway
from hopwatch.probes.contract.limits import NOT_STAMPED

MAX_SAMPLES: Final = 2_048
"""Messages of a window, or of one shard of it, whose stamps are kept at most."""
MAX_LAG_US: Final = 2**43
"""Farthest stamp from an event time that is kept, some 100 days: one beyond it is of a broken clock."""
MISSING_US: Final = np.iinfo(np.int64).max
"""In place of a stamp that a message does not have."""

Int64s = NDArray[np.int64]


class StampSample(NamedTuple):
    """First arrivals and departures of messages as lags, µs, each of shape (messages, nodes), MISSING_US without one.

    ``weights`` says how many messages of the window each one stands for, shape (messages,).
    """

    arrivals_us: Int64s
    departures_us: Int64s
    weights: Int64s


class WindowLags(NamedTuple):
    """Observations of a window: their nodes, codes, and lags on both sides, µs or NOT_STAMPED; all of one shape."""

    node_of: NDArray[np.uint8]
    code: NDArray[np.uint8]
    lag_in_us: Int64s
    lag_out_us: Int64s


def sample_stamps(pathway: Pathway, lags: WindowLags, groups: Groups) -> StampSample | None:
    """Take the first stamps of a window's messages, or of an even sample of them; None of a path with one node."""
    nodes, messages = len(pathway.nodes), len(groups.starts)
    if nodes == 1:
        return None
    step = max(1, -(-messages // MAX_SAMPLES))
    chosen = np.arange(0, messages, step)
    which, at = masks.find_observations(groups, chosen)
    node, code = lags.node_of[at], lags.code[at]
    lag_in, lag_out = lags.lag_in_us[at], lags.lag_out_us[at]
    one_sided = np.array([side != "both" for side in pathway.stamps])
    if one_sided.any():
        # One stamp stands for both sides.
        lag_in = np.where(one_sided[node] & (lag_in == NOT_STAMPED), lag_out, lag_in)
        lag_out = np.where(one_sided[node] & (lag_out == NOT_STAMPED), lag_in, lag_out)
    cell, shape = which * nodes + node, (len(chosen), nodes)
    arrivals_us = _find_least(cell, lag_in, (code & masks.IN) != 0, shape)
    departures_us = _find_least(cell, lag_out, (code & masks.OUT) != 0, shape)
    if one_sided.any():
        is_same = one_sided & (departures_us != MISSING_US)
        arrivals_us = np.where(is_same, departures_us, arrivals_us)
    return StampSample(arrivals_us, departures_us, np.minimum(step, messages - chosen))


def merge_samples(parts: Iterable[StampSample | None]) -> StampSample | None:
    """Merge the samples of shards, whose messages are apart; None where one of them has none."""
    taken = []
    for part in parts:
        if part is None:
            return None
        taken.append(part)
    arrivals_us, departures_us, weights = (np.concatenate(column) for column in zip(*taken, strict=True))
    # In whatever order the shards are given.
    order = np.lexsort((weights, *departures_us.T, *arrivals_us.T))
    return StampSample(arrivals_us[order], departures_us[order], weights[order])


def _find_least(cell: Int64s, lag_us: Int64s, is_stamped: NDArray[np.bool_], shape: tuple[int, int]) -> Int64s:
    """Return the least lag of each cell, of those that are stamped and within bounds."""
    chosen = np.flatnonzero(is_stamped & (lag_us >= -MAX_LAG_US) & (lag_us <= MAX_LAG_US))
    least_us = np.full(shape[0] * shape[1], MISSING_US)
    np.minimum.at(least_us, cell[chosen], lag_us[chosen])
    return least_us.reshape(shape)
