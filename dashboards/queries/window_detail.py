"""Query of everything about one window of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection, func, select

from hopwatch.dashboards.queries.models import Graph
from hopwatch.dashboards.queries.stream_queries import WindowQuery, build_graph, query_times
from hopwatch.dashboards.queries.window_models import AgedOutRecords, NodeLostIds, WindowDetail, WindowHole
from hopwatch.display.bursts import BEHIND_US
from hopwatch.display.markers import BEFORE_US
from hopwatch.monitor.accounting.holes import find_touched_windows
from hopwatch.monitor.kernel.books import Book, judge_book
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import LabelCounts, Revision, SecondCounts, WindowResult
from hopwatch.monitor.store import lost_messages, pathway_versions, reader, tables
from hopwatch.monitor.store.label_counts import read_label_counts
from hopwatch.monitor.store.markers import query_markers
from hopwatch.monitor.store.second_counts import read_second_counts
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import ID_BYTES, WINDOW_US

MAX_INSTANCES: Final = 50
"""Most probe instances with holes that are listed one by one."""


@dataclass(frozen=True, slots=True)
class WindowDetailQuery:
    """All details of one window, with all lost ids of one node: ``node``, or the one that lost most.

    ``terms`` is the stream's configured policy, which counts where the store does not know that of the window; None
    where the stream is not configured any more: its probes then had to report no more than the window itself.
    """

    stream: str
    start_us: int
    node: str
    terms: WindowPolicy | None

    def run(self, connection: Connection) -> WindowDetail | None:
        """Return it; None where the store has no such window."""
        result = WindowQuery(self.stream, self.start_us).run(connection)
        if result is None:
            return None
        column = tables.windows.c
        here = (column.stream == self.stream, column.window_start_us == self.start_us)
        is_live, sighted_us = connection.execute(
            select(column.is_live, column.last_first_sighting_us).where(*here)
        ).one()
        config = pathway_versions.read_stream(connection, self.stream)
        graph, terms = build_graph(config, self.start_us), self._select_terms(config)
        holes = sorted(self._query_holes(connection, terms, sighted_us, is_final=result.status.is_final), key=_sort_key)
        return WindowDetail(
            result,
            graph,
            *self._query_neighbours(connection),
            is_live,
            self._query_lost_ids(connection, graph),
            tuple(_query_revisions(connection, self.stream, self.start_us)),
            tuple(holes[:MAX_INSTANCES]),
            len(holes),
            tuple(self._query_aged_out(connection, terms, sighted_us)),
            self._query_labels(connection, result),
            self._query_seconds(connection, result),
            query_times(connection, self.stream, graph, (self.start_us, self.start_us + WINDOW_US)),
            tuple(self._query_markers(connection)),
        )

    def _query_labels(self, connection: Connection, result: WindowResult) -> dict[str, tuple[LabelCounts, ...]]:
        here = self.stream, self.start_us
        found = read_label_counts(connection, self.stream, self.start_us, self.start_us + 1)
        return {node.node: found[*here, node.node] for node in result.nodes if (*here, node.node) in found}

    def _query_seconds(self, connection: Connection, result: WindowResult) -> dict[str, SecondCounts]:
        found = read_second_counts(connection, self.stream, self.start_us, self.start_us + 1)
        keys = {node.node: (self.start_us, node.node) for node in result.nodes}
        return {node: found[key] for node, key in keys.items() if key in found}

    def _query_markers(self, connection: Connection) -> list[Marker]:
        end_us = self.start_us + WINDOW_US + BEHIND_US
        return query_markers(connection, self.stream, self.start_us - BEFORE_US, end_us)

    def _query_neighbours(self, connection: Connection) -> tuple[int | None, int | None]:
        start = tables.windows.c.window_start_us
        of_stream = tables.windows.c.stream == self.stream
        before = select(func.max(start)).where(of_stream, start < self.start_us).scalar_subquery()
        after = select(func.min(start)).where(of_stream, start > self.start_us).scalar_subquery()
        before_us, after_us = connection.execute(select(before, after)).one()
        return before_us, after_us

    def _query_lost_ids(self, connection: Connection, graph: Graph) -> tuple[NodeLostIds, ...]:
        kept = query_lost_counts(connection, self.stream, self.start_us, graph)
        chosen = self.node if self.node in kept else max(kept, key=lambda node: kept[node], default="")
        ids = query_named_ids(connection, self.stream, self.start_us, chosen) if chosen else ()
        return tuple(NodeLostIds(node, count, ids if node == chosen else ()) for node, count in kept.items())

    def _select_terms(self, config: StreamConfig | None) -> WindowPolicy | None:
        if self.terms is None or config is None:
            return self.terms
        terms = config.at(self.start_us).terms
        return self.terms if terms == pathway_versions.UNKNOWN_TERMS else terms

    def _query_holes(
        self, connection: Connection, terms: WindowPolicy | None, sighted_us: int, *, is_final: bool
    ) -> Iterator[WindowHole]:
        horizon_us = self.start_us + WINDOW_US if terms is None else terms.horizon_us(self.start_us, sighted_us)
        for book in reader.read_window_books(connection, self.stream, self.start_us, horizon_us):
            hole = find_hole(book, self.start_us, horizon_us, is_due=is_final)
            if hole is not None:
                yield hole

    def _query_aged_out(
        self, connection: Connection, terms: WindowPolicy | None, sighted_us: int
    ) -> Iterator[AgedOutRecords]:
        if terms is None:
            return
        start, settled_at = np.array([self.start_us]), np.array([terms.settled_at_us(self.start_us, sighted_us)])
        for hole in reader.read_holes(connection):
            if find_touched_windows([hole], start, settled_at).any():
                yield AgedOutRecords(hole.place, hole.first, hole.last)


def query_lost_counts(connection: Connection, stream: str, start_us: int, graph: Graph) -> dict[str, int]:
    """Return how many ids are kept as lost at each node that has any, in the pathway's order."""
    column = tables.lost_ids.c
    wanted = select(column.node, func.length(column.message_ids)).where(
        column.stream == stream, column.window_start_us == start_us
    )
    places = {node: place for place, node in enumerate(graph.nodes)}
    found = sorted(connection.execute(wanted), key=lambda row: places.get(row[0], len(places)))
    return {node: int(size) // ID_BYTES for node, size in found if size}


def query_named_ids(connection: Connection, stream: str, start_us: int, node: str) -> tuple[tuple[bytes, str], ...]:
    """Return the ids that are kept as lost at a node in a window, each with how it is shown."""
    column = tables.lost_ids.c
    here = (column.stream == stream, column.window_start_us == start_us, column.node == node)
    wanted = select(column.message_ids, column.id_kinds, column.id_text_ends, column.id_texts).where(*here)
    return tuple(each for row in connection.execute(wanted) for each in lost_messages.read_named_ids(row))


def find_hole(book: Book, start_us: int, horizon_us: int, *, is_due: bool) -> WindowHole | None:
    """Return the hole of an instance in a window, None without one; an instance that still has time is not silent."""
    start, end = np.array([start_us]), np.array([start_us + WINDOW_US])
    judged = judge_book(book, start, end, np.array([horizon_us]))
    if not judged.has_a_say[0] or judged.complete[0]:
        return None
    missing = sum(count for count, from_us, to_us in book.holes() if from_us <= horizon_us and to_us >= start_us)
    drops = {cause: count for (start_ms, cause), count in book.drops.items() if start_ms * 1_000 == start_us}
    through_us = book.complete_through_us
    is_silent = is_due and not book.said_bye and through_us < horizon_us
    has_set_aside = dict(book.sent).get(start_us // 1_000, False)
    if not (missing or drops or is_silent or has_set_aside):
        return None
    told_through_us = through_us if is_silent else None
    return WindowHole(book.node, book.probe, book.epoch_us, missing, drops, told_through_us, has_set_aside)


def _query_revisions(connection: Connection, stream: str, start_us: int) -> list[Revision]:
    return list(reader.read_revisions(connection, stream, start_us, start_us + 1))[::-1]


def _sort_key(hole: WindowHole) -> tuple[str, str, int]:
    return hole.node, hole.probe, hole.epoch_us
