"""Tests of the tables: who is ahead can be read off, and what was not measured is not made up."""

from __future__ import annotations

from rich.table import Table

from bench import tables
from bench.growth import Growth
from bench.kafka import KafkaThroughput
from bench.live import TimeSpan
from bench.outage import Outage
from bench.scale import CurvePoint, ScalingRun
from bench.speed import ONCE_WARM, STREAM, SpeedLine
from bench.stamp_cost import Cost
from tests.bench.table_cells import cells


def test_a_ratio_below_one_is_a_contestant_ahead_of_us() -> None:
    """Ratios are our rates over theirs; a part of another line has no seconds and no footprint of its own."""
    lines = [
        SpeedLine(STREAM, "all", 20.0, 2e6, 2_000_000_000, 100_000_000, 80_000_000, 1_440_000_000),
        SpeedLine("2nd trigger on", "part", None, 5e6),
        SpeedLine(ONCE_WARM, "all", 4.0, 1e7, 1_000_000_000, 0, 0, 1_440_000_000),
        SpeedLine("DuckDB", "figures", 2.0, 2e7, 500_000_000, 0, 0, 1_000_000_000),
    ]
    table = cells(tables.speed(lines, 40_000_000))
    assert table[STREAM] == ["20.0", "2.000", "1.00", "5.00", "2.00", "0.10", "2.0", "36.0"]
    assert table["2nd trigger on"] == ["-", "5.000", "0.40", "2.00", "-", "-", "-", "-"]
    assert table["DuckDB"] == ["2.0", "20.000", "0.10", "0.50", "0.50", "0.00", "0.0", "25.0"]
    assert table["DuckDB: figures"] == []


def test_costs_stand_beside_their_goals() -> None:
    """Nanoseconds are whole; others have no goal."""
    table = cells(
        tables.probes([Cost("ours", "arrived", 340.4, 1_900.6, 1_000.0), Cost("theirs", "span", 9e3, 1e4, None)])
    )
    assert table["ours"] == ["arrived", "340", "1,000", "1,901"]
    assert table["theirs"] == ["span", "9,000", "-", "10,000"]


def test_spans_are_told_by_their_middle_and_their_worst() -> None:
    """Median and most of what was measured, and how often it was."""
    assert cells(tables.live([TimeSpan("an idle trigger", (0.1, 0.3, 0.2), 0.5)]))["an idle trigger"] == [
        "0.20",
        "0.30",
        "0.50",
        "3",
    ]


def test_growth_has_a_line_a_work() -> None:
    """Seconds and rates both ways; a backlog of one trigger has no second one."""
    line = Growth(10_000_000, 10, 256, 2.0, 5.0, 5e6, 2e6, None, 1_500_000_000)
    assert cells(tables.growth([line]))["10,000,000"] == ["10", "256", "2.0", "5.000", "5.0", "2.000", "-", "1.50"]


def test_kafka_has_a_line_for_each_way_through() -> None:
    """Rates of observations and bytes, and what one observation weighs; a goal only where there is one."""
    lines = [
        KafkaThroughput("sink", 2e6, 1e6, 72e6, 36.0, 1_500_000_000),
        KafkaThroughput("kept", 2e6, None, 50e6, 25.0),
    ]
    table = cells(tables.kafka(lines))
    assert table["sink"] == ["2.00", "1.0", "72.0", "36.0", "1.50"]
    assert table["kept"] == ["2.00", "-", "50.0", "25.0", "-"]


def test_an_outage_is_told_in_the_units_of_its_goals() -> None:
    """µs a call but ms for the longest; MB, of which the queue may be so many."""
    line = Outage(4_000_000, 0.5, 1.25, 36_300.0, 20.0, 100_000_000, 67_108_864, 4_000_000)
    assert cells(tables.outage([line]))["4,000,000"] == ["0.50", "1.25", "20.00", "36.3", "100.0", "67.1"]


def test_scaling_has_a_line_a_policy_and_a_curve_each() -> None:
    """The bars of both curves are to the same scale; a time in which nothing was received has no lag."""
    curve = CurvePoint(10, 55, 1, 400, None), CurvePoint(20, 55, 1, 800, 12.345)
    runs = [ScalingRun("cpu", 0.7, 1_100, 300, 2, 800, 0, 1, 1, 12.345, curve)]
    runs += [ScalingRun("lag", 40, 9, 9, 0, 0, 0, 4, 2, 5.0, ())]
    totals, first, _ = tables.scale(runs + runs).renderables
    assert isinstance(totals, Table)
    assert isinstance(first, Table)
    assert cells(totals)["cpu"] == ["0.7", "1,100", "300", "2", "800", "0", "1", "1", "12.35", "no"]
    assert cells(totals)["lag"] == ["40", "9", "9", "0", "0", "0", "4", "2", "5.00", "yes"]
    assert cells(first)["10"] == ["55", "1", "-", "400", "#" * 12]
    assert cells(first)["20"] == ["55", "1", "12.35", "800", "#" * 24]
