"""Query of the service map: pathways and recent figures of all streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from hopwatch.dashboards.queries.models import Graph
from hopwatch.dashboards.queries.stream_queries import build_graph
from hopwatch.monitor.results import RecentFigures
from hopwatch.monitor.store import pathway_versions, reader, recent_figures


@dataclass(frozen=True, slots=True)
class StreamGraphs:
    """By stream the pathway of its newest window, and its recent figures if it has any."""

    graphs: Mapping[str, Graph]
    recent: Mapping[str, RecentFigures]


@dataclass(frozen=True, slots=True)
class ServiceMapQuery:
    """Query of what a map of all streams is made of, beside their newest windows."""

    def run(self, connection: Connection) -> StreamGraphs:
        """Return it; of a stream without a window the pathway is the newest one."""
        ranges = reader.read_stream_ranges(connection)
        versions = pathway_versions.read_versions(connection)
        graphs = {
            stream: build_graph(config, ranges[stream][1] if stream in ranges else config.valid_from_us)
            for stream, config in versions.items()
        }
        return StreamGraphs(graphs, recent_figures.read_all_recent(connection))
