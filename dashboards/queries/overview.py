"""Query of the overview: the state of all streams in a fixed number of statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, FromClause, Row, and_, column, or_, select, values

from hopwatch.alerts.storage import history_queries
from hopwatch.dashboards.queries.models import StreamsOverview, StreamSummary, WindowSummary
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.selftest.summary import SUMMARY_US
from hopwatch.monitor.store import instances, reader, rollups, selftest, tables
from hopwatch.monitor.store.tables import ExactText
from hopwatch.probes.contract.limits import WINDOW_US

RECENT_US: Final = rollups.HOUR_US
"""Time range of the overview, back from now."""

MAX_CONDITIONS: Final = 200
"""As many at once; SQLite takes conditions of less than a thousand parts."""

WindowStart = tuple[str, int]
"""A window: stream and start, µs."""


def query_overview(connection: Connection) -> StreamsOverview:
    """Return how all streams stand; one of which nothing came is there too."""
    ranges = reader.read_stream_ranges(connection)
    names = [*reader.read_stream_names(connection, None), *reader.read_stream_names(connection, SELFTEST_STREAM)]
    newest_us = max((ranges[name][1] for name in names if name in ranges), default=0)
    # A stream of which nothing came for long has its newest windows further back than the last hour of all.
    minutes = _query_recent_windows(connection, {name: ranges[name][1] - RECENT_US for name in names if name in ranges})
    newest = _query_windows(connection, _query_newest_final_starts(connection, minutes))
    since_us, until_us = newest_us - RECENT_US, newest_us + WINDOW_US
    streams = tuple(
        StreamSummary(
            name,
            newest.get(name),
            tuple(minute for minute in minutes[name] if since_us < minute.start_us <= until_us),
            *ranges.get(name, (None, None)),
        )
        for name in names
    )
    reached = instances.read_progress(connection)
    is_tested = selftest.read_start_us(connection) is not None
    return StreamsOverview(
        streams,
        reached,
        history_queries.count_open_incidents(connection),
        selftest.read_summary(connection, reached.through_us - SUMMARY_US) if is_tested else None,
    )


def _query_recent_windows(connection: Connection, since_us: dict[str, int]) -> dict[str, list[WindowSummary]]:
    """Return the windows of each stream that start after a moment, in short and in order."""
    found: dict[str, list[WindowSummary]] = defaultdict(list)
    if not since_us:
        return found
    window = tables.windows.c
    names: dict[int, list[str]] = defaultdict(list)
    for stream, at_us in since_us.items():
        names[at_us].append(stream)
    chosen = select(
        window.stream, window.window_start_us, window.status, window.verdict, window.known, window.lost_lower
    )
    # Literal predicates, not a join: planners estimate a join at a third of all rows.
    late = [and_(window.stream.in_(some), window.window_start_us > at_us) for at_us, some in names.items()]
    for begin in range(0, len(late), MAX_CONDITIONS):
        for row in connection.execute(chosen.where(or_(*late[begin : begin + MAX_CONDITIONS]))):
            found[row.stream].append(_parse_window(row))
    for minutes in found.values():
        minutes.sort(key=lambda minute: minute.start_us)
    return found


def _parse_window(row: Row[*tuple[Any, ...]]) -> WindowSummary:
    verdict = Verdict(row.verdict) if row.verdict else None
    return WindowSummary(row.window_start_us, Status(row.status), verdict, row.known, row.lost_lower)


def _query_newest_final_starts(connection: Connection, minutes: dict[str, list[WindowSummary]]) -> list[WindowStart]:
    """Return the newest final window of each stream that has one, by those that are read where one of them is."""
    found = []
    for stream, of_stream in minutes.items():
        newest_us = max((minute.start_us for minute in of_stream if minute.status.is_final), default=None)
        if newest_us is None:
            newest_us = reader.read_newest_final_us(connection, stream)
        found += [] if newest_us is None else [(stream, newest_us)]
    return found


def _query_windows(connection: Connection, starts: list[WindowStart]) -> dict[str, WindowResult]:
    """Return one window of each of some streams."""
    return (
        {one.stream: one for one in reader.read_named_windows(connection, _build_start_table(starts))} if starts else {}
    )


def _build_start_table(rows: Iterable[WindowStart]) -> FromClause:
    """Return streams and moments as a table to join with."""
    names = column("stream", ExactText()), column("at_us", tables.windows.c.window_start_us.type)
    return values(*names).data(list(rows)).cte("wanted")
