"""Retention of digests: the minutes of an old hour lose theirs, once it is rolled up, and keep all figures.

The digests are most of what a minute takes in the store. An hour that has lost them is frozen, as a pruned one is: it
cannot be built from its minutes again.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, exists, select, update

from hopwatch.monitor.store import rollups, tables
from hopwatch.monitor.store.rollups import HOUR, HOUR_US
from hopwatch.monitor.store.tables import DISPLACEMENT, NODE_LAGS

_DROPPED: Final = (
    (
        tables.node_windows,
        {f"{name}_digest": tables.DROPPED_DIGEST for name in NODE_LAGS} | {f"{DISPLACEMENT}_digest": None},
    ),
    (tables.windows, {"count_digests": "[]"}),
)
"""Columns of digests, and what stands in them when they were dropped."""


def drop_digests(connection: Connection, before_us: int, max_hours: int) -> int:
    """Drop the digests of the oldest hours that end by a time, some at once; return of how many hours.

    Hours that are not rolled up yet, or one of whose windows can still change, keep theirs.
    """
    hours = _find_hours(connection, before_us, max_hours)
    for stream, hour_us in hours:
        rollups.freeze_hour(connection, stream, hour_us)
        for table, dropped in _DROPPED:
            column = table.c
            of_hour = (column.stream == stream) & (column.window_start_us >= hour_us)
            rows = update(table).where(of_hour, column.window_start_us < hour_us + HOUR_US)
            connection.execute(rows.values(dropped))
    return len(hours)


def _find_hours(connection: Connection, before_us: int, max_hours: int) -> list[tuple[str, int]]:
    """Query stream and start of the oldest hours whose minutes can lose their digests."""
    column, stale, window = tables.rollups.c, tables.stale_hours.c, tables.windows.c
    is_stale = exists().where(stale.stream == column.stream, stale.start_us == column.start_us)
    in_hour = (window.window_start_us >= column.start_us) & (window.window_start_us < column.start_us + HOUR_US)
    is_live = exists().where(window.stream == column.stream, in_hour, window.is_live)
    old = column.start_us <= before_us - HOUR_US
    wanted = select(column.stream, column.start_us).where(column.span == HOUR, ~column.is_frozen, old)
    found = connection.execute(wanted.where(~is_stale, ~is_live).order_by(column.start_us).limit(max_hours))
    return [(row.stream, row.start_us) for row in found]
