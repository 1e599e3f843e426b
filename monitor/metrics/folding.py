"""Folding of series: streams and nodes beyond the limit share one series, ``__other__``.

It is decided once, from the configuration alone, in its order: so no series ever changes between the two, and whoever
wants another choice moves a stream up in ``hopwatch.toml``. All streams come before the first node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import Final

from hopwatch.monitor.metrics.catalog import EDGE_METRICS, MONITOR_METRICS, NODE_METRICS, STREAM_METRICS
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.metrics.metric import Metric


def _count_series(metrics: Iterable[Metric]) -> int:
    return sum(metric.series for metric in metrics)


SERIES_PER_NODE: Final = _count_series(NODE_METRICS)
SERIES_PER_EDGE: Final = _count_series(EDGE_METRICS)
SERIES_PER_STREAM: Final = _count_series(STREAM_METRICS)
MONITOR_SERIES: Final = _count_series(MONITOR_METRICS)
"""Series of a node, an edge, a stream and the monitor itself at most."""


@dataclass(frozen=True, slots=True)
class FoldingPlan:
    """Streams and nodes with series of their own, and the number of series folded into one."""

    streams: frozenset[str]
    nodes: Mapping[str, frozenset[str]]
    folded_series: int


def count_edges(config: StreamConfig) -> dict[str, int]:
    """Return the nodes of all versions of a stream, in order, with the number of edges to each."""
    targets = Counter(target for _, target in config.known_edges)
    return {node: targets[node] for node in config.known_nodes}


def plan_folding(nodes: Mapping[str, Mapping[str, int]], most_series: int) -> FoldingPlan:
    """Return what is shown by its name, so that there are at most ``most_series`` in all.

    ``nodes`` are those of each stream, in the order of the configuration, with the number of edges to each.
    """
    room = most_series - MONITOR_SERIES - SERIES_PER_STREAM - SERIES_PER_NODE
    streams = list(nodes)[: room // SERIES_PER_STREAM]
    room_for_nodes = room - len(streams) * SERIES_PER_STREAM
    series = [
        (stream, node, SERIES_PER_NODE + edges * SERIES_PER_EDGE)
        for stream, of_stream in nodes.items()
        for node, edges in of_stream.items()
    ]
    # The first node without room ends it, so that no later one is named before it.
    fits = [total <= room_for_nodes for total in accumulate(count for *_, count in series)]
    named: dict[str, set[str]] = {stream: set() for stream in streams}
    for stream, node, _ in compress(series, fits):
        named[stream].add(node)
    folded = (len(nodes) - len(streams)) * SERIES_PER_STREAM + sum(count for *_, count in series[sum(fits) :])
    return FoldingPlan(frozenset(streams), {stream: frozenset(names) for stream, names in named.items()}, folded)
