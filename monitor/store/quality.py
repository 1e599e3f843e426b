"""Data quality of a range: records set aside and messages stopped, by reason and node, with the newest examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, select

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.quality import Quality, SetAsideReason, StoppedMessages
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.store import reader, tables, undeclared_names
from hopwatch.monitor.store.rollups import HOUR, HOUR_US
from hopwatch.probes.contract.limits import MONITOR_STREAM

_set_aside, _holes = tables.set_aside.c, tables.holes.c
_windows, _nodes = tables.windows.c, tables.node_windows.c
_hours, _of_hours, _stale = tables.rollups.c, tables.node_rollups.c, tables.stale_hours.c
_SUMMED: Final = ("seen", "filtered", "rejected", "deferred")

StopCounts = Counter[tuple[str, str, str]]
"""Sums by stream, node and field."""


def read_quality(
    connection: Connection, summed: Sequence[StoppedMessages], from_us: int, to_us: int, most: int
) -> Quality:
    """Query the records set aside in ``[from_us, to_us)``; ``summed`` is the result of :func:`sum_stopped`.

    Each list has at most ``most`` entries.
    """
    meets = (_holes.before_us >= from_us) & (_holes.after_us < to_us)
    aged = select(tables.holes).where(meets).order_by(_holes.before_us.desc(), _holes.place, _holes.first_offset)
    records = select(tables.set_aside).where(*_arrived_between(from_us, to_us))
    records = records.order_by(_set_aside.arrival_us.desc(), _set_aside.path, _set_aside.position)
    stopping = [one for one in summed if one.rejected or one.filtered or one.deferred]
    stopping.sort(key=lambda one: (-one.rejected, -one.filtered, -one.deferred, one.stream, one.node))
    return Quality(
        _count_reasons(connection, from_us, to_us),
        undeclared_names.read_undeclared(connection, from_us),
        tuple(SetAside(**row) for row in connection.execute(records.limit(most)).mappings()),
        tuple(Hole(*row) for row in connection.execute(aged.limit(most))),
        int(connection.execute(select(func.count()).select_from(tables.holes).where(meets)).scalar_one()),
        tuple(stopping[:most]),
        len(stopping),
        len(summed),
    )


def sum_stopped(connection: Connection, stream: str, from_us: int, to_us: int, step_us: int) -> list[StoppedMessages]:
    """Sum seen, filtered, rejected and deferred messages of final windows in ``[from_us, to_us)``, by node."""
    sums: StopCounts = Counter()
    if step_us < HOUR_US:
        _add_rows(connection, sums, _sum_windows(stream, from_us, to_us))
    else:
        _add_rows(connection, sums, _sum_hours(stream, from_us, to_us))
        # Windows that were written since their hour was rolled up are summed as they stand.
        for name, start_us in connection.execute(_select_stale_hours(stream, from_us, to_us)).all():
            _add_rows(connection, sums, _sum_windows(name, start_us, start_us + HOUR_US))
    nodes = dict.fromkeys((of_stream, node) for of_stream, node, _ in sums)
    found = (StoppedMessages(*one, *(sums[*one, what] for what in _SUMMED)) for one in nodes)
    return [one for one in found if one.seen or one.filtered or one.rejected or one.deferred]


def _count_reasons(connection: Connection, from_us: int, to_us: int) -> tuple[SetAsideReason, ...]:
    of_range = (
        select(_set_aside.reason, func.count()).where(*_arrived_between(from_us, to_us)).group_by(_set_aside.reason)
    )
    lately = {name: int(count) for name, count in connection.execute(of_range)}
    ever = reader.count_set_aside(connection)
    made = (SetAsideReason(name, lately.get(name, 0), count) for name, count in ever.items())
    return tuple(sorted(made, key=lambda one: (-one.in_range, -one.ever, one.name)))


def _arrived_between(from_us: int, to_us: int) -> tuple[Any, Any]:
    return _set_aside.arrival_us >= from_us, _set_aside.arrival_us < to_us


def _add_rows(connection: Connection, sums: StopCounts, wanted: Select[Any]) -> None:
    for row in connection.execute(wanted).mappings():
        for name in _SUMMED:
            sums[row["stream"], row["node"], name] += int(row[name])


def _sum_windows(stream: str, from_us: int, to_us: int) -> Select[Any]:
    same = (_windows.stream == _nodes.stream) & (_windows.window_start_us == _nodes.window_start_us)
    wanted = (
        select(_nodes.stream, _nodes.node, *(func.sum(_nodes[name]).label(name) for name in _SUMMED))
        .select_from(tables.node_windows.join(tables.windows, same))
        .where(_nodes.stream != MONITOR_STREAM, _windows.status.in_(tables.FINAL_STATUSES))
        .where(_nodes.window_start_us >= from_us, _nodes.window_start_us < to_us)
        .group_by(_nodes.stream, _nodes.node)
    )
    return wanted.where(_nodes.stream == stream) if stream else wanted


def _sum_hours(stream: str, from_us: int, to_us: int) -> Select[Any]:
    """Return a query for the sums of hours that are up to date or frozen."""
    is_stale = exists().where(_stale.stream == _of_hours.stream, _stale.start_us == _of_hours.start_us)
    wanted = (
        select(_of_hours.stream, _of_hours.node, *(func.sum(_of_hours[name]).label(name) for name in _SUMMED))
        .where(_of_hours.span == HOUR, _of_hours.start_us >= from_us, _of_hours.start_us < to_us)
        .where(~is_stale | _is_frozen(_of_hours.stream, _of_hours.start_us))
        .group_by(_of_hours.stream, _of_hours.node)
    )
    return wanted.where(_of_hours.stream == stream) if stream else wanted


def _select_stale_hours(stream: str, from_us: int, to_us: int) -> Select[Any]:
    wanted = select(_stale.stream, _stale.start_us).where(_stale.start_us >= from_us, _stale.start_us < to_us)
    wanted = wanted.where(~_is_frozen(_stale.stream, _stale.start_us), _stale.stream != MONITOR_STREAM)
    return wanted.where(_stale.stream == stream) if stream else wanted


def _is_frozen(stream: Any, start_us: Any) -> Any:  # noqa: ANN401 - columns
    chosen = (_hours.stream == stream) & (_hours.start_us == start_us) & (_hours.span == HOUR)
    return exists().where(chosen, _hours.is_frozen)
