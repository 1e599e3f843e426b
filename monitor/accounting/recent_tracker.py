"""Tracker of recent figures: keeps stamps and messages of the last seconds, and says what is new of each stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from hopwatch.monitor.kernel.recent import (
    NO_TRAFFIC,
    RecentStamps,
    RecentTraffic,
    summarize_edges,
    summarize_stamps,
)
from hopwatch.monitor.kernel.recent_messages import MAX_EDGE_S, RecentMessages, measure_edges
from hopwatch.monitor.results import RECENT_SPAN_S, RecentEdge, RecentFigures, RecentNode
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

MAX_STREAMS_PER_BATCH: Final = 500
"""Streams whose figures a micro-batch renews at most, those first whose figures are the oldest."""
MARGIN_US: Final = 500_000
"""Time before the latest arrival at which the span ends at the latest, for records that arrive side by side."""
_SECOND_US: Final = 1_000_000


class _Measured(NamedTuple):
    """Traffic of nodes and times on edges of some streams, in the span up to a second."""

    through_s: int
    streams: frozenset[str]
    traffic: dict[tuple[str, str], tuple[RecentTraffic, ...]]
    edges: dict[str, list[RecentEdge]]


@dataclass(slots=True)
class RecentTracker:
    """Stamps and sampled messages of the last seconds of arrival; after a restart it begins with none."""

    parts: list[RecentStamps] = field(default_factory=list)
    messages: list[RecentMessages] = field(default_factory=list)
    renewed_s: dict[str, int] = field(default_factory=dict)
    """The end of the span of each stream's figures, s."""
    through_us: int = 0
    """The moment up to which all that arrived is read, as far as it is known."""
    _measured: _Measured | None = field(default=None, init=False, repr=False)
    """What was measured last, unless stamps came since: behind each micro-batch with data there is one without."""

    def absorb(self, parts: Iterable[RecentStamps], through_us: int) -> None:
        """Take the stamps of a micro-batch, which has read all that arrived up to a moment, if not less."""
        came = list(parts)
        if any(len(part.counts) for part in came):
            self._measured = None
        self.parts += [part for part in came if len(part.counts)]
        # Copied, as a view would keep all of the parcel, with its lags, for as long.
        self.messages += [RecentMessages(part.nodes, part.sightings.copy()) for part in came if len(part.sightings)]
        latest_us = max((part.latest_us for part in came), default=0)
        self.through_us = max(self.through_us, min(latest_us, through_us))

    def renew(
        self,
        rules: Mapping[str, StreamConfig],
        streams: Iterable[str],
        sum_backlog: Callable[[str], Mapping[str, int]],
    ) -> Iterator[RecentFigures]:
        """Yield the figures of those streams whose last ones are the oldest, up to a whole second; forget the rest.

        ``sum_backlog`` returns the messages in flight at each node of a stream that has any.
        """
        through_s = (self.through_us - MARGIN_US) // _SECOND_US
        self.parts = [part for part in self.parts if part.counts["second"].max() >= through_s - RECENT_SPAN_S]
        self.messages = [part for part in self.messages if part.sightings["second"].max() >= through_s - MAX_EDGE_S]
        due = sorted(streams, key=lambda stream: self.renewed_s.get(stream, 0))[:MAX_STREAMS_PER_BATCH]
        if not self.through_us or not due:
            return
        start_us = through_s * _SECOND_US // WINDOW_US * WINDOW_US
        configs = {stream: rules[stream].at(start_us) for stream in due}
        traffic, edges = self._measure(configs, through_s)
        for stream, config in configs.items():
            self.renewed_s[stream] = through_s
            nodes = () if config.is_removed else config.pathway.declared
            in_flight = sum_backlog(stream)
            backlog = {node: in_flight.get(node, 0) for node in config.pathway.nodes}
            figures = [_build_node(node, traffic.get((stream, node), NO_TRAFFIC), backlog.get(node)) for node in nodes]
            yield RecentFigures(stream, through_s * _SECOND_US, tuple(figures), tuple(edges.get(stream, ())))

    def _measure(
        self, configs: Mapping[str, StreamConfig], through_s: int
    ) -> tuple[dict[tuple[str, str], tuple[RecentTraffic, ...]], dict[str, list[RecentEdge]]]:
        """Return the traffic of the nodes of some streams, and the times on their edges."""
        known = self._measured
        if known is None or known.through_s != through_s or not known.streams >= configs.keys():
            streams = frozenset(configs)
            named = {stream: config.pathway.named_edges for stream, config in configs.items() if not config.is_removed}
            traffic = summarize_stamps(_select_streams(self.parts, streams), through_s)
            edges = summarize_edges(measure_edges(self.messages, named, through_s))
            known = self._measured = _Measured(through_s, streams, traffic, edges)
        return known.traffic, known.edges


def _build_node(node: str, traffic: tuple[RecentTraffic, ...], backlog: int | None) -> RecentNode:
    came, left, stopped = traffic
    return RecentNode(node, came.stamps, left.stamps, stopped.stamps, came.lag_us, left.lag_us, backlog)


def _select_streams(parts: Iterable[RecentStamps], streams: frozenset[str]) -> list[RecentStamps]:
    """Return the stamps of some streams."""
    found = []
    for part in parts:
        is_asked = np.array([stream in streams for stream, _ in part.nodes], bool)
        if is_asked.all():
            found.append(part)
            continue
        rows = is_asked[part.counts["node"]]
        lags = np.repeat(rows, part.counts["lags"])
        found.append(part._replace(counts=part.counts[rows], lags_us=part.lags_us[lags], weights=part.weights[lags]))
    return found
