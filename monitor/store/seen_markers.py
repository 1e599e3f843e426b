"""Markers of what the monitor sees; one of a kind and node in some minutes.

They are of restarts of probes, of steps of their clocks, of partitions that went from one probe to another, and of a
transport that was slow or down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, exists, select

from hopwatch.monitor.accounting.clock_steps import ClockStep
from hopwatch.monitor.accounting.late_heartbeats import LateHeartbeat
from hopwatch.monitor.accounting.partition_moves import PartitionMove
from hopwatch.monitor.accounting.restarts import MAX_SPAN_US, Restart
from hopwatch.monitor.markers import MAX_CHARS, Marker
from hopwatch.monitor.selftest.stream import OWN_STREAMS
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.label_counts import MARKED_BY
from hopwatch.monitor.store.markers import insert_marker
from hopwatch.monitor.texts.escaping import escape_line

MAX_MARKED: Final = 20
"""Restarts, and steps of clocks, that one micro-batch marks, the latest ones."""
ALL_STREAMS: Final = ""
MAX_NAMED: Final = 3
"""Probes, or partitions, that a marker names."""
_marker: Final = tables.markers.c


class _SeenEvent(NamedTuple):
    """Event at some probes or partitions; its marker is ``beginning``, which no other near by has, and the rest."""

    stream: str
    at_us: int
    beginning: str
    rest: str
    names: tuple[str, ...]


def mark_restarts(connection: Connection, restarts: Iterable[Restart]) -> None:
    """Mark restarts in the charts of their streams, but of a node of which one is marked shortly before or after.

    So a process that starts again and again takes the place of no other marker.
    """
    _mark(
        connection, [_SeenEvent(one.stream, one.at_us, f"restart at {one.node}: ", "", one.probes) for one in restarts]
    )


def mark_clock_steps(connection: Connection, steps: Iterable[ClockStep]) -> None:
    """Mark steps of clocks in the charts of their streams, as restarts are."""
    _mark(
        connection,
        [
            _SeenEvent(
                one.stream,
                one.at_us,
                f"clock at {one.node} {one.kind} by ",
                f"{one.least_us // 1_000_000} s or more: ",
                one.probes,
            )
            for one in steps
        ],
    )


def mark_late_heartbeats(connection: Connection, late: Iterable[LateHeartbeat]) -> None:
    """Mark in the charts of all streams that heartbeats of the monitor were late, as restarts are marked."""
    rest = "{} s or more for the monitor's heartbeat"
    _mark(
        connection,
        [
            _SeenEvent(ALL_STREAMS, one.at_us, "the transport took ", rest.format(one.late_us // 1_000_000), ())
            for one in late
        ],
    )


def mark_moves(connection: Connection, moves: Iterable[PartitionMove]) -> None:
    """Mark moves of partitions in the charts of their streams, as restarts are."""
    _mark(
        connection,
        [
            _SeenEvent(one.stream, one.at_us, f"rebalance at {one.node}: ", "moved partitions ", one.partitions)
            for one in moves
        ],
    )


def _mark(connection: Connection, events: Sequence[_SeenEvent]) -> None:
    latest = sorted((one for one in events if one.stream not in OWN_STREAMS), key=lambda one: one.at_us)
    for one in latest[-MAX_MARKED:]:
        near = _marker.at_us.between(one.at_us - MAX_SPAN_US, one.at_us + MAX_SPAN_US)
        own = (_marker.stream == one.stream, _marker.by == MARKED_BY, near)
        is_marked = select(exists().where(*own, _marker.text.startswith(one.beginning, autoescape=True)))
        if not connection.execute(is_marked).scalar():
            text = f"{one.beginning}{one.rest}{_list_names(one.names)}"
            text = text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"
            insert_marker(connection, Marker(one.at_us, text, MARKED_BY, one.stream))


def _list_names(names: Sequence[str]) -> str:
    named = ", ".join(escape_line(name).strip() or "(empty)" for name in names[:MAX_NAMED])
    return named if len(names) <= MAX_NAMED else f"{named} and {len(names) - MAX_NAMED} more"
