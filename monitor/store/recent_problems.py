"""Recent problems with probes and configuration: sums over one span, by stream and node."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, select

from hopwatch.monitor.accounting.undeclared_names import UNKNOWN_NODE, UNKNOWN_STREAM, UndeclaredName
from hopwatch.monitor.store import instances, tables, undeclared_names
from hopwatch.probes.contract.limits import MONITOR_STREAM

REASONS_WITH_NAMES: Final = ("ignored_node", UNKNOWN_NODE, UNKNOWN_STREAM)
"""Reasons that are reported by name instead of by count, or ignored on purpose."""
_book, _aside, _node, _window = (
    tables.books.c,
    tables.set_aside.c,
    tables.node_windows.c,
    tables.windows.c,
)


class ImplausibleCount(NamedTuple):
    """Implausible observations of a node: all since the start of its instances that were active in the span."""

    stream: str
    node: str
    observations: int


class NodeSums(NamedTuple):
    """Sums over the final windows of the span at one node; ``messages`` are distinct ids at each of its stamps."""

    stream: str
    node: str
    seen: int
    dropped: int
    orphans: int
    messages: int
    duplicates: int


class RecentProblems(NamedTuple):
    """Problems of a span; ``unread`` counts records by reason, ``empty`` lists streams with windows but no message."""

    implausible: tuple[ImplausibleCount, ...]
    unread: tuple[tuple[str, int], ...]
    names: tuple[UndeclaredName, ...]
    nodes: tuple[NodeSums, ...]
    empty: tuple[str, ...]


def read_recent_problems(connection: Connection, streams: Collection[str], span_us: int) -> RecentProblems:
    """Query problems of streams: arrivals in the span up to now, and windows in the span up to the newest.

    Now is the time up to which the store was written.
    """
    since_us = instances.read_reference_time_us(connection) - span_us
    nodes: list[NodeSums] = []
    empty: list[str] = []
    for stream in sorted(streams):
        # One index lookup per stream; a single query for all streams would repeat the lookup for each row.
        newest_us = connection.execute(_select_newest(stream)).scalar()
        if newest_us is None:
            continue
        lately = _recent_windows(stream, newest_us - span_us)
        nodes += (NodeSums(row[0], row[1], *map(int, row[2:])) for row in connection.execute(_select_nodes(lately)))
        if connection.execute(select(func.sum(_window.known)).where(*lately)).scalar() == 0:
            empty.append(stream)
    return RecentProblems(
        tuple(ImplausibleCount(*row) for row in connection.execute(_select_implausible(since_us))),
        tuple((row[0], int(row[1])) for row in connection.execute(_select_unread(since_us))),
        undeclared_names.read_undeclared(connection, since_us),
        tuple(nodes),
        tuple(empty),
    )


def _select_implausible(since_us: int) -> Select[Any]:
    total = func.sum(_book.implausible)
    wanted = select(_book.stream, _book.node, total).where(
        _book.stream != MONITOR_STREAM, _book.implausible > 0, _book.last_arrival_us >= since_us
    )
    return wanted.group_by(_book.stream, _book.node).order_by(total.desc(), _book.stream, _book.node)


def _select_unread(since_us: int) -> Select[Any]:
    wanted = select(_aside.reason, func.count()).where(
        _aside.arrival_us >= since_us, _aside.reason.not_in(REASONS_WITH_NAMES)
    )
    return wanted.group_by(_aside.reason).order_by(func.count().desc(), _aside.reason)


def _select_newest(stream: str) -> Select[Any]:
    """Return the start of a stream's newest final window."""
    wanted = select(_window.window_start_us).where(_window.stream == stream, _window.status.in_(tables.FINAL_STATUSES))
    return wanted.order_by(_window.window_start_us.desc()).limit(1)


def _select_nodes(lately: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    sums = (_node.seen, _node.dropped, _node.orphans, _node.arrived + _node.departed)
    same = (_window.stream == _node.stream) & (_window.window_start_us == _node.window_start_us)
    duplicates = _node.duplicates_in + _node.duplicates_out
    return (
        select(_node.stream, _node.node, *map(func.sum, sums), func.sum(duplicates))
        .select_from(tables.windows.join(tables.node_windows, same))
        .where(*lately)
        .group_by(_node.stream, _node.node)
        .order_by(func.min(_node.place))
    )


def _recent_windows(stream: str, since_us: int) -> tuple[ColumnElement[bool], ...]:
    """Return conditions for the final windows of a stream since a time."""
    return (_window.stream == stream, _window.status.in_(tables.FINAL_STATUSES), _window.window_start_us > since_us)
