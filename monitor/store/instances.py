"""Queries for probe instances, page by page: those with problems come first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from hopwatch.monitor.accounting.instances import (
    AHEAD_US,
    ALIVE_WITHIN_US,
    BYE_LISTED_US,
    OFF_US,
    SILENT_LISTED_US,
    Instance,
    InstanceClock,
    InstancePage,
    InstanceState,
)
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US, ClockOffset
from hopwatch.monitor.store import fencing, reader, tables
from hopwatch.monitor.texts.read_progress import ReadProgress
from hopwatch.probes.contract.limits import MONITOR_STREAM

_book = tables.books.c
_KEY: Final = tuple(tables.books.primary_key)


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """Filter of instances: by stream, by text in stream, node or probe; ``include_gone`` includes long gone ones."""

    stream: str = ""
    search: str = ""
    include_gone: bool = False


def query_instances(connection: Connection, asked: InstanceFilter, first: int, most: int) -> InstancePage:
    """Query a page of instances: skip the ``first`` ones, return at most ``most``."""
    moment = read_reference_time_us(connection)
    state, is_gone = _state_column(moment), _gone_column(moment)
    counts: dict[InstanceState, int] = {}
    folded: dict[InstanceState, int] = {}
    chosen = list(_filter_conditions(asked))
    wanted = select(state, is_gone, func.count()).where(*chosen).group_by(state, is_gone)
    for name, gone, count in connection.execute(wanted):
        of = folded if gone and not asked.include_gone else counts
        of[InstanceState(name)] = of.get(InstanceState(name), 0) + int(count)
    listed = select(tables.books, state).where(*chosen)
    listed = listed if asked.include_gone else listed.where(~is_gone)
    # Of two in the same state the one that was heard last comes first.
    ordered = listed.order_by(_state_rank(state), _book.last_arrival_us.desc(), *_KEY).offset(first).limit(most)
    found = tuple(
        Instance(reader.parse_book(row), InstanceState(row["state"])) for row in connection.execute(ordered).mappings()
    )
    return InstancePage(found, counts, sum(counts.values()), folded, moment)


def read_wrong_clocks(connection: Connection, stream: str = "") -> tuple[InstanceClock, ...]:
    """Query the clocks of reporting instances, of one stream or all, that are surely OFF_US from the brokers' or more.

    Those whose clock is farthest off come first.
    """
    bounds_us = _book.clock_low_us, _book.clock_high_us
    off_us = case((_book.clock_low_us > 0, _book.clock_low_us), else_=-_book.clock_high_us)
    is_reporting = _book.complete_through_us >= read_reference_time_us(connection) - ALIVE_WITHIN_US
    chosen = [off_us >= OFF_US, ~_book.said_bye, is_reporting, *_filter_conditions(InstanceFilter(stream))]
    wanted = select(_book.stream, _book.node, _book.probe, *bounds_us).where(*chosen).order_by(off_us.desc(), *_KEY)
    return tuple(
        InstanceClock(name, node, probe, ClockOffset(low_us, high_us))
        for name, node, probe, low_us, high_us in connection.execute(wanted)
    )


def read_reference_time_us(connection: Connection) -> int:
    """Return the time that instances are judged at, in arrival time: a monitor that lags behind calls none silent."""
    return read_progress(connection).through_us


def read_progress(connection: Connection) -> ReadProgress:
    """Return how far the transport was read, whether by a --once run, and when the monitor was stopped."""
    noted = fencing.read_notes(connection)
    if noted.query_id != fencing.ONCE:
        return ReadProgress(noted.watermark_us, stopped_us=noted.stopped_us, config_problem=noted.config_problem)
    newest_us = select(func.max(_book.last_arrival_us)).where(_book.stream != MONITOR_STREAM)
    return ReadProgress(int(connection.execute(newest_us).scalar() or 0), is_once=True, stopped_us=noted.stopped_us)


def _filter_conditions(asked: InstanceFilter) -> Iterator[ColumnElement[bool]]:
    # The monitor's own pulse is no probe of anybody's.
    yield _book.stream != MONITOR_STREAM
    if asked.stream:
        yield _book.stream == asked.stream
    if asked.search:
        names = (_book.stream, _book.node, _book.probe)
        yield or_(*(name.icontains(asked.search, autoescape=True) for name in names))


def _state_column(moment_us: int) -> ColumnElement[str]:
    told_us = _book.complete_through_us
    is_off = or_(
        _book.missing_batches > 0,
        _book.drops != "[]",
        _book.too_late > 0,
        _book.implausible > 0,
        _book.skew_us > AHEAD_US,
    )
    return case(
        (_book.said_bye, InstanceState.BYE.value),
        (told_us < moment_us - RETIRED_AFTER_US, InstanceState.RETIRED.value),
        (told_us < moment_us - ALIVE_WITHIN_US, InstanceState.SILENT.value),
        (is_off, InstanceState.TROUBLED.value),
        else_=InstanceState.ALIVE.value,
    ).label("state")


def _state_rank(state: ColumnElement[str]) -> ColumnElement[int]:
    return case({one.value: place for place, one in enumerate(InstanceState)}, value=state)


def _gone_column(moment_us: int) -> ColumnElement[bool]:
    told_us = _book.complete_through_us
    gone = (
        and_(_book.said_bye, told_us < moment_us - BYE_LISTED_US),
        and_(~_book.said_bye, told_us < moment_us - SILENT_LISTED_US),
    )
    return or_(*gone).label("is_gone")
