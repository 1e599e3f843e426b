"""Tests of the tables of detectors and alerts: each figure in its column, and what was not measured is not made up."""

from __future__ import annotations

from bench import detection_tables
from bench.alert_cost import AlertCost, BudgetCost
from bench.nab import MarkedSeries, Profile
from bench.noise import PIPELINE, STATIONARY, FalseOutliers
from bench.outliers import Detector
from bench.series_cost import SeriesCost, WarmUp
from tests.bench.table_cells import cells


def test_detectors_stand_above_the_goal() -> None:
    """Each with how many series its minute was timed with, and what it includes below the table."""
    table = cells(detection_tables.outliers([Detector("ours", "all of it", 1.25, 0.5, 7_560, 100_000)]))
    assert table["ours"] == ["1.2", "0.50", "100,000", "7,560"]
    assert table["goal"] == ["40.0", "60.00", "100,000", "8,192"]
    assert table["ours: all of it"] == []


def test_what_is_followed_stands_beside_its_peers() -> None:
    """A peer that cannot take a value back has no figure there; the first value is told below."""
    lines: list[SeriesCost | WarmUp] = [
        SeriesCost("ours", 20, 250, 200.0, 300_000_000, 1.0, 9_000.0, 20.0, 5_000.0),
        SeriesCost("theirs", 20, 250, 100.0, 14_400_000, 0.5),
        WarmUp(7.25, 0.5),
    ]
    table = cells(detection_tables.watch(lines))
    assert table["ours"] == ["5,000", "20", "200.0", "1.00", "9,000.0", "20.0", "5,000.0", "300.0"]
    assert table["theirs"] == ["5,000", "20", "100.0", "0.50", "-", "-", "-", "14.4"]
    assert table["The first value of a process: 7.2 s with compiling, 0.5 s once that is kept"] == []


def test_a_profile_has_a_score_at_each_threshold() -> None:
    """The best, the shipped one, and that of the folders left out; marks are told below."""
    lines: list[Profile | MarkedSeries] = [
        Profile("standard", 79.41, 3.7612, 78.69, 3.7, 74.58, 3.7, 3.84),
        MarkedSeries("outlier", 57, 18, 5),
    ]
    table = cells(detection_tables.nab(lines))
    assert table["standard"] == ["3.761", "79.4", "3.7", "78.7", "3.7 to 3.84", "74.6"]
    assert table["outlier: in 18 of 57 labelled windows, 5 outside of them"] == []


def test_noise_has_a_goal_where_it_is_stationary() -> None:
    """A pipeline has none."""
    lines = [
        FalseOutliers(STATIONARY, "normal", 20, 4, 0.18, 0.013, 5.9),
        FalseOutliers(PIPELINE, "messages", 20, 4, 0.5, 0.3, 9.0),
    ]
    table = cells(detection_tables.noise(lines))
    assert table["normal"] == [STATIONARY, "0.18", "0.01", "1", "5.9", "20", "4"]
    assert table["messages"] == [PIPELINE, "0.50", "0.30", "-", "9.0", "20", "4"]


def test_decisions_stand_beside_the_windows() -> None:
    """Sums in a table of their own."""
    decided = AlertCost(20, 250, "all breaks", 900.0, 1_500.5, 40.0, 1)
    table = cells(detection_tables.alerts([decided, BudgetCost("30 d", 43_200, 432_000, 19.9)]))
    assert table["all breaks"] == ["20", "5,000", "900.0", "1,500.5", "40.0", "1"]
    assert table["30 d"] == ["43,200", "432,000", "19.90"]
