"""Times of a final window's messages on the edges of its pathway and inside its nodes.

The law: along the whole path of a message its times add up to its lag at the end, and so do their totals.

Method: the path of a message is found back from where it left the pathway last. Before each node of it comes the
neighbour that the message left last, which is the one that the node had to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.centroids import EMPTY, Digest, group_equal
from hopwatch.monitor.kernel.figures import quantiles_of
from hopwatch.monitor.kernel.stamp_sample import MISSING_US, Int64s, StampSample
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import PathTime

EVENT_TIME: Final = ""
"""Source of the time from a message's event time to its arrival at an origin."""

_NEVER_LEFT: Final = np.iinfo(np.int64).min
_NOWHERE: Final = -1

Bools = NDArray[np.bool_]


class _Paths(NamedTuple):
    """Whole paths of messages: ``source`` is the node before each node of a path, and an origin itself.

    ``source`` has the shape (nodes, messages), _NOWHERE off the path; ``is_whole`` the shape (messages,).
    """

    source: Int64s
    is_whole: Bools


def tabulate_times(pathway: Pathway, sample: StampSample | None) -> tuple[tuple[PathTime, ...], ...]:
    """Return the times of each node in order: up to an origin, on each edge to the node, and inside it.

    Each is there if a message of the sample has both of its stamps. What a node that stamps one side takes is unknown,
    and nothing in the totals.
    """
    if sample is None:
        return ((),) * len(pathway.nodes)
    paths = _find_paths(pathway, sample)
    return tuple(tuple(_build_times(pathway, node, sample, paths)) for node in range(len(pathway.nodes)))


def _build_times(pathway: Pathway, node: int, sample: StampSample, paths: _Paths) -> Iterator[PathTime]:
    arrivals_us, departures_us = sample.arrivals_us[node], sample.departures_us[node]
    source, weights = paths.source[node], sample.weights
    looked_at = len(weights), int(weights.sum()), int(weights[paths.is_whole].sum())
    parts: list[tuple[str, Int64s, Int64s, Bools]] = []
    if pathway.origins[node]:
        parts.append((EVENT_TIME, np.zeros_like(arrivals_us), arrivals_us, source == node))
    parts += [
        (pathway.nodes[before], sample.departures_us[before], arrivals_us, source == before)
        for before in np.flatnonzero(pathway.edges[:, node]).tolist()
    ]
    if pathway.stamps[node] == "both":
        parts.append((pathway.nodes[node], arrivals_us, departures_us, source != _NOWHERE))
    for name, since_us, until_us, is_on_path in parts:
        is_timed = (since_us != MISSING_US) & (until_us != MISSING_US)
        time_us, weight = (until_us - since_us)[is_timed], weights[is_timed]
        figures = quantiles_of(_build_digest(time_us, weight))
        if figures is not None:
            is_counted = (is_on_path & paths.is_whole)[is_timed]
            total_us = _add_up(time_us[is_counted], weight[is_counted])
            yield PathTime(name, replace(figures, count=len(time_us)), *looked_at, total_us)


def _find_paths(pathway: Pathway, sample: StampSample) -> _Paths:
    has_arrived, has_left = sample.arrivals_us != MISSING_US, sample.departures_us != MISSING_US
    left_us = np.where(has_left, sample.departures_us, _NEVER_LEFT)
    source = np.full(has_left.shape, _NOWHERE)
    is_on_path = np.zeros_like(has_left)
    is_whole = has_left[pathway.terminals].any(axis=0)
    last = np.where(pathway.terminals[:, None], left_us, _NEVER_LEFT).argmax(axis=0)
    is_on_path[last, np.arange(len(last))] = is_whole
    for node in reversed(range(len(pathway.nodes))):
        # The order is topological: all that comes behind the node is known.
        own = np.flatnonzero(is_on_path[node])
        before = np.flatnonzero(pathway.edges[:, node]) if not pathway.origins[node] else np.array([node])
        from_us = left_us[before[:, None], own]
        is_known = has_arrived[node, own] & (from_us.max(axis=0, initial=_NEVER_LEFT) != _NEVER_LEFT)
        is_whole[own[~is_known]] = False
        own, chosen = own[is_known], before[from_us[:, is_known].argmax(axis=0)]
        source[node, own] = chosen
        is_on_path[chosen, own] = True
    return _Paths(source, is_whole)


def _build_digest(time_us: Int64s, weights: Int64s) -> Digest:
    if not len(time_us):
        return EMPTY
    order = np.argsort(time_us)
    laid_us = time_us[order]
    is_pure = np.ones(len(order), bool)
    return group_equal(Digest(laid_us.astype(np.float64), weights[order], is_pure, int(laid_us[0]), int(laid_us[-1])))


def _add_up(time_us: Int64s, weights: Int64s) -> int:
    """Return the sum of times by their weights, of which there are few different ones; it may be beyond 64 bits."""
    return sum(int(weight) * int(time_us[weights == weight].sum()) for weight in np.unique(weights))
