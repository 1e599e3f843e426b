"""Retention of the store: delete old windows hour by hour, while a monitor runs.

Only whole hours are deleted, and only when none of their windows can change: so the roll-up of an hour covers all of
its windows, and stays when they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, Select, delete, exists, func, select, tuple_

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store import dialect, label_counts, rollups, schema, tables, undeclared_names
from hopwatch.monitor.store.markers import prune_markers
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.monitor.store.told_spans import prune_told_spans

SET_ASIDE_PER_STEP: Final = 1_000
MIN_REST_S: Final = 0.02
_WINDOW_TABLES: Final = (
    tables.node_windows,
    tables.lost_ids,
    tables.label_counts,
    tables.second_counts,
    tables.path_times,
    tables.revisions,
    tables.tallies,
    tables.windows,
)


Result = TypeVar("Result")


class PruneStep(NamedTuple):
    """Rows that one transaction deleted."""

    windows: int = 0
    set_aside: int = 0


def cutoff_us(now_us: int, keep_us: int) -> int:
    """Return the time before which rows are deleted, rounded down to a whole hour."""
    moment_us = now_us - keep_us
    return moment_us - moment_us % HOUR_US


def prune(engine: Engine, before_us: int, clock: Clock) -> Iterator[PruneStep]:
    """Delete windows, told spans, markers and records set aside from before a whole hour.

    Yields after each transaction, and pauses as long as it took, so that other writers get the store.

    Raises:
        StoreError: the store fails; what was deleted before is deleted.
    """
    for stream in _read_streams(engine):
        from_us: int | None = None
        while (hour_us := _next_hour(engine, stream, from_us, before_us)) is not None:
            yield run_and_rest(engine, clock, partial(_prune_hour, stream=stream, hour_us=hour_us))
            from_us = hour_us + HOUR_US
    while (step := run_and_rest(engine, clock, partial(_prune_set_aside, before_us=before_us))).set_aside:
        yield step


def count_due(engine: Engine, before_us: int) -> PruneStep:
    """Count the rows that :func:`prune` would delete.

    Raises:
        StoreError: the store cannot be read.
    """
    column, records = tables.windows.c, tables.set_aside.c
    with schema.open_snapshot(engine) as connection:
        old = connection.execute(select(func.count()).where(column.window_start_us < before_us)).scalar() or 0
        live = select(column.stream, column.window_start_us).where(column.window_start_us < before_us, column.is_live)
        held = {(row.stream, row.window_start_us // HOUR_US * HOUR_US) for row in connection.execute(live)}
        kept = sum(int(connection.execute(_count_in_hour(stream, hour_us)).scalar() or 0) for stream, hour_us in held)
        set_aside = connection.execute(select(func.count()).where(records.arrival_us < before_us)).scalar() or 0
    return PruneStep(int(old) - kept, int(set_aside))


def run_and_rest(engine: Engine, clock: Clock, work: Callable[[Connection], Result]) -> Result:
    """Run some work in its own transaction, then pause as long as it took."""
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        began_s = clock.monotonic_s()
        step = work(connection)
    clock.wait(max(clock.monotonic_s() - began_s, MIN_REST_S))
    return step


def _read_streams(engine: Engine) -> list[str]:
    with schema.open_snapshot(engine) as connection:
        return list(connection.execute(select(tables.streams.c.stream).order_by(tables.streams.c.stream)).scalars())


def _next_hour(engine: Engine, stream: str, from_us: int | None, before_us: int) -> int | None:
    """Return the start of the next hour of a stream that has windows before a moment."""
    column = tables.windows.c
    wanted = select(func.min(column.window_start_us)).where(column.stream == stream, column.window_start_us < before_us)
    wanted = wanted if from_us is None else wanted.where(column.window_start_us >= from_us)
    with schema.open_snapshot(engine) as connection:
        start_us = connection.execute(wanted).scalar()
    return None if start_us is None else int(start_us) // HOUR_US * HOUR_US


def _count_in_hour(stream: str, hour_us: int) -> Select[int]:
    column = tables.windows.c
    until_us = hour_us + HOUR_US
    return select(func.count()).where(
        column.stream == stream, column.window_start_us >= hour_us, column.window_start_us < until_us
    )


def _prune_hour(connection: Connection, stream: str, hour_us: int) -> PruneStep:
    if connection.execute(_count_in_hour(stream, hour_us).where(tables.windows.c.is_live)).scalar():
        return PruneStep()
    rollups.freeze_hour(connection, stream, hour_us)
    gone = 0
    for table in _WINDOW_TABLES:
        column = table.c
        chosen = (column.stream == stream) & (column.window_start_us >= hour_us)
        gone = connection.execute(delete(table).where(chosen, column.window_start_us < hour_us + HOUR_US)).rowcount
    _prune_outliers(connection, stream, hour_us + HOUR_US)
    label_counts.delete_values(connection, stream, hour_us + HOUR_US)
    return PruneStep(windows=gone)


def _prune_outliers(connection: Connection, stream: str, before_us: int) -> None:
    """Delete findings before a time, except the latest outlier of each series, whose episode may continue."""
    column, later = tables.outliers.c, tables.outliers.alias("later").c
    of_series = (later.stream == column.stream) & (later.node == column.node) & (later.quantity == column.quantity)
    is_over = exists().where(of_series, later.is_outlier, later.window_start_us > column.window_start_us)
    spent = (column.stream == stream) & (column.window_start_us < before_us) & (~column.is_outlier | is_over)
    connection.execute(delete(tables.outliers).where(spent))


def _prune_set_aside(connection: Connection, before_us: int) -> PruneStep:
    """Delete some records, the oldest first, and add them to the counts of pruned records."""
    undeclared_names.delete_undeclared(connection, before_us)
    prune_told_spans(connection, before_us)
    prune_markers(connection, before_us)
    column, key = tables.set_aside.c, tuple(tables.set_aside.primary_key)
    oldest = select(*key, column.reason).where(column.arrival_us < before_us).order_by(column.arrival_us)
    found = connection.execute(oldest.limit(SET_ASIDE_PER_STEP)).all()
    if not found:
        return PruneStep()
    for reason in sorted({row.reason for row in found}):
        _add_pruned(connection, reason, sum(row.reason == reason for row in found))
    connection.execute(delete(tables.set_aside).where(tuple_(*key).in_([tuple(row)[: len(key)] for row in found])))
    return PruneStep(set_aside=len(found))


def _add_pruned(connection: Connection, reason: str, records: int) -> None:
    column = tables.pruned_set_aside.c
    before = connection.execute(select(column.records).where(column.reason == reason)).scalar() or 0
    row = {"reason": reason, "records": before + records}
    connection.execute(dialect.upsert(connection, tables.pruned_set_aside), [row])
