"""How all streams stand: a few statements for all of them, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, FromClause, Row, and_, column, or_, select, values

from hopwatch.alerts import recorded
from hopwatch.dashboards.reading.told import Minute, Standing, StreamNow
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.store import instances, reader, rollups, tables
from hopwatch.monitor.store.tables import ExactText
from hopwatch.probes.contract.limits import WINDOW_US

LATELY_US: Final = rollups.HOUR_US
"""How far back the overview looks."""

MOST_MOMENTS: Final = 200
"""As many at once; SQLite takes conditions of less than a thousand parts."""

Start = tuple[str, int]
"""A window: stream and start, µs."""


def read(connection: Connection) -> Standing:
    """Return how all streams stand; one of which nothing came is there too."""
    ranges = reader.read_stream_ranges(connection)
    names = reader.read_stream_names(connection, None)
    newest_us = max((ranges[name][1] for name in names if name in ranges), default=0)
    # A stream of which nothing came for long has its newest windows further back than the last hour of all.
    minutes = _minutes(connection, {name: ranges[name][1] - LATELY_US for name in names if name in ranges})
    newest = _windows(connection, _finals(connection, minutes))
    since_us, until_us = newest_us - LATELY_US, newest_us + WINDOW_US
    streams = tuple(
        StreamNow(
            name,
            newest.get(name),
            tuple(minute for minute in minutes[name] if since_us < minute.start_us <= until_us),
            *ranges.get(name, (None, None)),
        )
        for name in names
    )
    return Standing(streams, instances.read_progress(connection), recorded.firing(connection))


def _minutes(connection: Connection, since_us: dict[str, int]) -> dict[str, list[Minute]]:
    """Return the windows of each stream that start after a moment, in short and in order."""
    found: dict[str, list[Minute]] = defaultdict(list)
    if not since_us:
        return found
    window = tables.windows.c
    names: dict[int, list[str]] = defaultdict(list)
    for stream, at_us in since_us.items():
        names[at_us].append(stream)
    chosen = select(
        window.stream, window.window_start_us, window.status, window.verdict, window.known, window.lost_lower
    )
    # Said with values, not by a join with them: of a join a database believes that a third of all windows is late.
    late = [and_(window.stream.in_(some), window.window_start_us > at_us) for at_us, some in names.items()]
    for begin in range(0, len(late), MOST_MOMENTS):
        for row in connection.execute(chosen.where(or_(*late[begin : begin + MOST_MOMENTS]))):
            found[row.stream].append(_minute(row))
    for minutes in found.values():
        minutes.sort(key=lambda minute: minute.start_us)
    return found


def _minute(row: Row[*tuple[Any, ...]]) -> Minute:
    verdict = Verdict(row.verdict) if row.verdict else None
    return Minute(row.window_start_us, Status(row.status), verdict, row.known, row.lost_lower)


def _finals(connection: Connection, minutes: dict[str, list[Minute]]) -> list[Start]:
    """Return the newest final window of each stream that has one, by those that are read where one of them is."""
    found = []
    for stream, of_stream in minutes.items():
        newest_us = max((minute.start_us for minute in of_stream if minute.status.is_final), default=None)
        if newest_us is None:
            newest_us = reader.read_newest_final_us(connection, stream)
        found += [] if newest_us is None else [(stream, newest_us)]
    return found


def _windows(connection: Connection, starts: list[Start]) -> dict[str, WindowResult]:
    """Return one window of each of some streams."""
    return {one.stream: one for one in reader.read_named_windows(connection, _table(starts))} if starts else {}


def _table(rows: Iterable[Start]) -> FromClause:
    """Return streams and moments as a table to join with."""
    names = column("stream", ExactText()), column("at_us", tables.windows.c.window_start_us.type)
    return values(*names).data(list(rows)).cte("wanted")
