"""Tests of markers of what the monitor sees: one of a node in some minutes, whatever probes are called."""

from __future__ import annotations

from sqlalchemy import Engine

from hopwatch.monitor.accounting.clock_steps import ClockStep, StepKind
from hopwatch.monitor.accounting.late_heartbeats import LateHeartbeat
from hopwatch.monitor.accounting.partition_moves import PartitionMove
from hopwatch.monitor.accounting.restarts import MAX_SPAN_US, Restart
from hopwatch.monitor.markers import MAX_CHARS, Marker
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store.markers import add_marker, query_markers
from hopwatch.monitor.store.seen_markers import (
    MAX_MARKED,
    mark_clock_steps,
    mark_late_heartbeats,
    mark_moves,
    mark_restarts,
)
from tests.support.spool import START_US, at_us

HOSTILE = "%_\0<script>\n"


def mark(engine: Engine, *restarts: Restart) -> list[tuple[int, str, str]]:
    """Mark restarts, and return all markers of all streams: second, stream and text."""
    with engine.execution_options(writes=True).begin() as connection:
        mark_restarts(connection, restarts)
        found = query_markers(connection, None, 0, 2**62)
    return [((one.at_us - START_US) // 1_000_000, one.stream, one.text) for one in found]


def test_a_restart_is_marked_in_its_stream(engine: Engine) -> None:
    """With the names of three probes; each on one line, however it is called."""
    found = mark(engine, Restart("orders", "a", at_us(7), (HOSTILE, "p", "q", "r", "s")))
    assert found == [(7, "orders", "restart at a: %_\\x00<script>\\n, p, q and 2 more")]


def test_a_node_that_starts_again_and_again_has_one_marker(engine: Engine) -> None:
    """Within ten minutes before and behind; other nodes and streams have their own, as have people."""
    add_marker(engine, Marker(at_us(0), "restart at a: by hand", "ada", "orders"))
    mark(engine, Restart("orders", "a", at_us(0), ("p",)))
    again = [Restart("orders", "a", at_us(second), ("p",)) for second in (-500, 30, 600)]
    others = [Restart("orders", "a_", at_us(1), ("p",)), Restart("trades", "a", at_us(2), ("p",))]
    later = Restart("orders", "a", at_us(1) + MAX_SPAN_US, ("p",))
    assert mark(engine, *again, *others, later) == [
        (0, "orders", "restart at a: by hand"),
        (0, "orders", "restart at a: p"),
        (1, "orders", "restart at a_: p"),
        (2, "trades", "restart at a: p"),
        (601, "orders", "restart at a: p"),
    ]


def test_markers_of_restarts_are_bounded(engine: Engine) -> None:
    """By number and by length; the self-test, whose probes die on purpose, has none."""
    many = [Restart("orders", f"n{number}", at_us(number), ("p" * 300,)) for number in range(MAX_MARKED + 5)]
    found = mark(engine, *many, Restart(SELFTEST_STREAM, "router", at_us(99), ("p",)))
    assert [second for second, _, _ in found] == list(range(5, MAX_MARKED + 5))
    assert {len(text) for _, _, text in found} == {MAX_CHARS}


def test_steps_of_clocks_are_marked(engine: Engine) -> None:
    """By how much at least; one of each kind at a node within ten minutes."""
    steps = [
        ClockStep("orders", "a", StepKind.SET_BACK, at_us(7), 12_900_000, ("p", "q")),
        ClockStep("orders", "a", StepKind.AHEAD, at_us(8), 5_000_000, ("p",)),
        ClockStep("orders", "b", StepKind.AHEAD, at_us(9), 6_000_000, ("p",)),
        ClockStep("orders", "a", StepKind.SET_BACK, at_us(600), 99_000_000, ("p",)),
        ClockStep(SELFTEST_STREAM, "a", StepKind.SET_BACK, at_us(10), 99_000_000, ("p",)),
    ]
    with engine.execution_options(writes=True).begin() as connection:
        mark_clock_steps(connection, steps)
        found = query_markers(connection, None, 0, 2**62)
    assert [((one.at_us - START_US) // 1_000_000, one.text) for one in found] == [
        (7, "clock at a set back by 12 s or more: p, q"),
        (8, "clock at a ahead by 5 s or more: p"),
        (9, "clock at b ahead by 6 s or more: p"),
    ]


def test_moves_of_partitions_are_marked(engine: Engine) -> None:
    """By the names of three partitions; one of a node within ten minutes."""
    moves = [
        PartitionMove("orders", "a", at_us(7), ("0", "1", "10", "11")),
        PartitionMove("orders", "a", at_us(60), ("0",)),
        PartitionMove("orders", "b", at_us(8), (HOSTILE,)),
    ]
    with engine.execution_options(writes=True).begin() as connection:
        mark_moves(connection, moves)
        found = query_markers(connection, None, 0, 2**62)
    assert [((one.at_us - START_US) // 1_000_000, one.text) for one in found] == [
        (7, "rebalance at a: moved partitions 0, 1, 10 and 1 more"),
        (8, "rebalance at b: moved partitions %_\\x00<script>\\n"),
    ]


def test_late_heartbeats_are_marked_for_all_streams(engine: Engine) -> None:
    """One within ten minutes: what is slow for long is late more than once."""
    late = [LateHeartbeat(at_us(second), late_us) for second, late_us in ((7, 57_900_000), (70, 30_000_000))]
    with engine.execution_options(writes=True).begin() as connection:
        mark_late_heartbeats(connection, late)
        (found,) = query_markers(connection, "orders", 0, 2**62)
    assert (found.at_us, found.stream) == (at_us(7), "")
    assert found.text == "the transport took 57 s or more for the monitor's heartbeat"
