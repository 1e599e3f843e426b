"""Tests of what was set aside and what was stopped: sums of hours are those of windows, in either database."""

from __future__ import annotations

from sqlalchemy import Engine

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.quality import Quality, SetAsideReason, StoppedMessages
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import fencing, quality, retention, rollups, schema, writer
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.monitor.store.writer import Changes
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.clock import ManualClock
from tests.support.conclusions import PATHWAY, build_conclusion
from tests.support.conclusions import write_conclusions as conclude
from tests.support.health_data import record, write
from tests.support.spool import STREAM_CONFIGS
from tests.support.windows import at, window


def windows(engine: Engine, *minutes: int, rejected: int = 1, status: Status = Status.FINAL) -> None:
    """Write windows that reject at b and filter at a."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, STREAM_CONFIGS)
    for minute in minutes:
        nodes = {"a": {"filtered": 2, "seen": 10}, "b": {"rejected": rejected, "deferred": 3, "seen": 8}}
        made = window(minute, nodes=nodes, names=PATHWAY.nodes, status=status)
        conclude(engine, build_conclusion(made))
        with engine.execution_options(writes=True).begin() as connection:
            writer.write_changes(connection, Changes(0, streams={"orders": (at(0), at(minute))}))


def roll_all(engine: Engine) -> None:
    """Roll up every hour."""
    with engine.execution_options(writes=True).begin() as connection:
        for stream, hour_us in rollups.read_stale_hours(connection):
            rollups.roll_up_hour(connection, stream, hour_us)


def stopped(engine: Engine, step_us: int, stream: str = "") -> list[StoppedMessages]:
    """Return what nodes stopped in three hours."""
    with schema.open_snapshot(engine) as connection:
        found = quality.sum_stopped(connection, stream, at(0), at(180), step_us)
    return sorted(found, key=lambda one: one.node)


def test_sums_are_the_same_by_windows_and_by_hours(engine: Engine) -> None:
    """Rolled up or not, and when a window is written again after its hour was rolled up."""
    expected = [StoppedMessages("orders", "a", 50, 10, 0), StoppedMessages("orders", "b", 40, 0, 5, 15)]
    windows(engine, 0, 1, 59, 60, 179)
    assert stopped(engine, WINDOW_US) == stopped(engine, HOUR_US) == expected
    roll_all(engine)
    assert stopped(engine, WINDOW_US) == stopped(engine, HOUR_US) == expected
    windows(engine, 1, rejected=4)
    assert (
        stopped(engine, WINDOW_US)
        == stopped(engine, HOUR_US)
        == [expected[0], StoppedMessages("orders", "b", 40, 0, 8, 15)]
    )


def test_hours_outlive_their_windows(engine: Engine) -> None:
    """Pruned windows stay counted in their hour, also after a late window."""
    windows(engine, 0, 1, 61)
    roll_all(engine)
    before = stopped(engine, HOUR_US)
    with engine.execution_options(writes=True).begin() as connection:
        writer.drop_all_tallies(connection)
    list(retention.prune(engine, at(60), ManualClock()))
    assert stopped(engine, HOUR_US) == before
    windows(engine, 2)
    assert stopped(engine, HOUR_US) == before


def test_only_final_windows_of_the_stream_count(engine: Engine) -> None:
    """Windows of the stream count once they are final."""
    windows(engine, 0)
    windows(engine, 1, status=Status.PROVISIONAL)
    assert [one.rejected for one in stopped(engine, WINDOW_US)] == [0, 1]
    assert stopped(engine, WINDOW_US, "orders") == stopped(engine, WINDOW_US)
    assert stopped(engine, WINDOW_US, "refunds") == stopped(engine, HOUR_US, "refunds") == []


def of(engine: Engine, from_us: int, to_us: int, most: int = 10, summed: tuple[StoppedMessages, ...] = ()) -> Quality:
    """Return what was set aside in a range."""
    with schema.open_snapshot(engine) as connection:
        return quality.read_quality(connection, summed, from_us, to_us, most)


def test_records_are_counted_by_reason_and_the_newest_are_named(engine: Engine) -> None:
    """In the range and ever, those that were pruned included."""
    records = [record(n, arrival_us=at(n)) for n in range(100)]
    write(engine, set_aside=[*records, record(7, reason="torn_tail", arrival_us=at(61), path="other")])
    list(retention.prune(engine, at(60), ManualClock()))
    found = of(engine, at(61), at(200), most=2)
    assert found.reasons == (SetAsideReason("bad_crc", 39, 100), SetAsideReason("torn_tail", 1, 1))
    assert [one.position for one in found.newest] == [99, 98]


def test_holes_are_those_that_meet_the_range(engine: Engine) -> None:
    """Counted all, named some, the newest first."""
    write(engine, holes=[Hole("t/0", n * 10, n * 10 + 3, at(n), at(n + 1)) for n in range(5)])
    found = of(engine, at(1.5), at(4), most=1)
    assert (found.hole_count, [hole.first for hole in found.holes]) == (3, [30])


def test_nodes_that_reject_most_come_first(engine: Engine) -> None:
    """Of those that stop nothing only the number is told."""
    summed = (
        StoppedMessages("o", "a", 9, 5, 0),
        StoppedMessages("o", "b", 9, 0, 0),
        StoppedMessages("o", "c", 9, 0, 1),
    )
    found = of(engine, 0, 1, most=1, summed=summed)
    assert [one.node for one in found.stopped] == ["c"]
    assert (found.stopped_count, found.node_count) == (2, 3)


def test_a_node_that_only_defers_is_listed(engine: Engine) -> None:
    """Behind those that stop messages, as what waits there has not ended."""
    figures = {"a": (9, 0, 0, 9), "b": (9, 1, 0, 0), "c": (9, 0, 0, 0)}
    summed = tuple(StoppedMessages("o", node, *counts) for node, counts in figures.items())
    found = of(engine, 0, 1, most=9, summed=summed)
    assert [one.node for one in found.stopped] == ["b", "a"]
    assert (found.stopped_count, found.node_count) == (2, 3)
