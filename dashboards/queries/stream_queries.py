"""Queries of the pages; each is a value that reads its result from the store at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from hopwatch.dashboards.queries import node_selection, overview
from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange, StreamsOverview, VersionSeam, list_nodes
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.results import RollUp, SpanTimes, WindowResult
from hopwatch.monitor.store import (
    fencing,
    label_counts,
    outliers,
    pathway_versions,
    ranges,
    reader,
    rollups,
    tables,
    writer,
)
from hopwatch.monitor.store.markers import query_markers
from hopwatch.monitor.store.path_times import query_span_times
from hopwatch.monitor.store.range_cache import MAX_PIECES
from hopwatch.monitor.store.ranges import RangeQuery
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import SCHEMA_LABEL, WINDOW_US

HOUR_US: Final = rollups.HOUR_US
DAY_US: Final = rollups.DAY_US
MAX_NEW_SCHEMAS: Final = 5
"""Schemas that are named which were never seen before a range."""
MAX_NODES: Final = 255
"""As many nodes as a stream may have."""


_RANGE_CACHE: Final = Memo(MAX_PIECES)
"""Cache of ranges, shared by all queries of this process."""


@dataclass(frozen=True, slots=True)
class StreamsOverviewQuery:
    """Query of the state of every stream."""

    def run(self, connection: Connection) -> StreamsOverview:
        """Return it; a stream of which nothing came is there too."""
        return overview.query_overview(connection)


@dataclass(frozen=True, slots=True)
class StreamRangeQuery:
    """Query of a stream in ``[from_us, to_us)``, by windows, hours or days.

    Its steps are told with ``most`` nodes that lost most, those that take longest, the last one and the one that is
    looked at; and with those of the window that is looked at.
    """

    stream: str
    from_us: int
    to_us: int
    step_us: int
    node: str = ""
    window_us: int | None = None
    max_nodes: int = MAX_NODES
    is_timed: bool = True
    """Whether times on the path are read."""

    def run(self, connection: Connection) -> StreamRange:
        """Return it; a stream that the store does not know has no node."""
        config = pathway_versions.read_stream(connection, self.stream)
        of_stream = build_graph(config, self.to_us - 1)
        window = None if self.window_us is None else WindowQuery(self.stream, self.window_us).run(connection)

        def nodes(whole: RollUp | None) -> set[str]:
            seen = [one for one in (whole, window) if one is not None]
            slow = (
                name
                for one in seen
                for name in node_selection.select_slowest(one, min(self.max_nodes, node_selection.MAX_SLOW))
            )
            lossy = (
                name
                for one in (whole, window)
                for name in node_selection.select_lossiest(list_nodes(of_stream, whole), one, self.max_nodes)
            )
            return {self.node, *slow, *lossy, *of_stream.nodes[-1:]}

        where = RangeQuery(self.stream, self.from_us, self.to_us, self.step_us)
        found = ranges.read_range(connection, where, nodes, _RANGE_CACHE)
        odd = tuple(outliers.read_findings(connection, self.stream, self.from_us, self.to_us))
        running_us = query_running_from_us(connection, self.stream, self.step_us)
        span_us = self.from_us, self.to_us
        new = tuple(label_counts.read_new_values(connection, self.stream, SCHEMA_LABEL, span_us, MAX_NEW_SCHEMAS))
        marked = tuple(query_markers(connection, self.stream, self.from_us, self.to_us))
        seam = None if config is None else query_seam(connection, self.stream, config, span_us)
        timed_us = span_us if self.window_us is None else (self.window_us, self.window_us + WINDOW_US)
        times = query_times(connection, self.stream, of_stream, timed_us) if self.is_timed else None
        return StreamRange(
            *(self.stream, of_stream, found.steps, self.step_us, found.whole, odd, window, running_us),
            *(new, marked, seam, times, found.has_digests),
        )


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """Query of one window of a stream."""

    stream: str
    start_us: int

    def run(self, connection: Connection) -> WindowResult | None:
        """Return it; None where the store has no such window."""
        found = reader.read_windows(connection, self.stream, self.start_us, self.start_us + 1)
        return found[0] if found else None


def query_running_from_us(connection: Connection, stream: str, step_us: int) -> int | None:
    """Return the start of the first hour or day of a stream that is not over for the monitor, µs.

    More of it comes as long as the watermark lies in it, or a window of it is not final. None of windows, whose status
    says it, and of a store that was filled once: all of it is over.
    """
    if step_us < HOUR_US or writer.read_value(connection, "query_id") == fencing.ONCE:
        return None
    final_us = reader.read_newest_final_us(connection, stream)
    until_us = max(fencing.read_watermark_us(connection), 0 if final_us is None else final_us + WINDOW_US)
    column = tables.windows.c
    # Windows are final in their order: those behind the newest one are not.
    behind = (column.stream == stream, column.window_start_us > (-1 if final_us is None else final_us))
    waiting_us = connection.execute(select(func.min(column.window_start_us)).where(*behind)).scalar()
    first_us = until_us if waiting_us is None else min(until_us, int(waiting_us))
    return first_us // step_us * step_us


def query_seam(
    connection: Connection, stream: str, config: StreamConfig, span_us: tuple[int, int]
) -> VersionSeam | None:
    """Return the latest seam between two versions of a stream in a range ``[from_us, to_us)``; None without one."""
    from_us, to_us = span_us
    seams_us = sorted(one.valid_from_us for one in config.versions[:-1] if from_us < one.valid_from_us < to_us)
    if not seams_us:
        return None
    begin_us, at_us = [from_us, *seams_us][-2:]
    before = ranges.read_total(connection, stream, begin_us, at_us, _RANGE_CACHE)
    return VersionSeam(at_us, before, ranges.read_total(connection, stream, at_us, to_us, _RANGE_CACHE))


def query_times(connection: Connection, stream: str, graph: Graph, span_us: tuple[int, int]) -> SpanTimes | None:
    """Return the times on a stream's path in a range ``[from_us, to_us)``; None where nothing was timed."""
    return query_span_times(connection, stream, *span_us, 2 * len(graph.nodes) + len(graph.edges))


def query_graph(connection: Connection, stream: str, at_us: int) -> Graph:
    """Return the pathway by which the store's window of a moment is judged; empty of a stream that it does not know."""
    return build_graph(pathway_versions.read_stream(connection, stream), at_us)


def build_graph(config: StreamConfig | None, at_us: int) -> Graph:
    """Return the pathway of the version of a moment; empty without one."""
    if config is None:
        return Graph((), ())
    pathway = config.at(at_us).pathway
    edges = [Edge(group.source, target, group.is_must) for group in pathway.groups for target in group.targets]
    return Graph(pathway.nodes, tuple(edges))
