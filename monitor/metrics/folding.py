"""Folding of series: streams and nodes beyond the limit share one series, ``__other__``.

It is decided once, from the configuration alone, in its order: so no series ever changes between the two, and whoever
wants another choice moves a stream up in ``hopwatch.toml``. All streams come before the first node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hopwatch.monitor.metrics.catalog import MONITOR_METRICS, NODE_METRICS, STREAM_METRICS
from hopwatch.probes.metrics.metric import Metric


def _count_series(metrics: Iterable[Metric]) -> int:
    return sum(metric.series for metric in metrics)


SERIES_PER_NODE: Final = _count_series(NODE_METRICS)
SERIES_PER_STREAM: Final = _count_series(STREAM_METRICS)
MONITOR_SERIES: Final = _count_series(MONITOR_METRICS)
"""Series of a node, a stream and the monitor itself at most."""


@dataclass(frozen=True, slots=True)
class FoldingPlan:
    """Streams and nodes with series of their own, and the number of series folded into one."""

    streams: frozenset[str]
    nodes: Mapping[str, frozenset[str]]
    folded_series: int


def plan_folding(nodes: Mapping[str, Sequence[str]], most_series: int) -> FoldingPlan:
    """Return what is shown by its name, so that there are at most ``most_series`` in all.

    ``nodes`` are those of each stream, in the order of the configuration.
    """
    room = most_series - MONITOR_SERIES - SERIES_PER_STREAM - SERIES_PER_NODE
    streams = list(nodes)[: room // SERIES_PER_STREAM]
    room_for_nodes = (room - len(streams) * SERIES_PER_STREAM) // SERIES_PER_NODE
    named: dict[str, frozenset[str]] = {}
    for stream in streams:
        of_stream = nodes[stream][:room_for_nodes]
        room_for_nodes -= len(of_stream)
        named[stream] = frozenset(of_stream)
    folded_nodes = sum(map(len, nodes.values())) - sum(map(len, named.values()))
    folded = (len(nodes) - len(streams)) * SERIES_PER_STREAM + folded_nodes * SERIES_PER_NODE
    return FoldingPlan(frozenset(streams), named, folded)
