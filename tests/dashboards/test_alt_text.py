"""Tests of charts in words: what is in them, over which time, and what stands out."""

from __future__ import annotations

from datetime import UTC

from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange
from hopwatch.dashboards.views import series
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.alt_text import AltTextWriter
from hopwatch.monitor.results import Verdict
from tests.support.windows import lag, window

TOLD = AltTextWriter(UTC, "minute")
STEPS = (
    window(0, nodes={"a": {"lag_in_us": lag(5_000), "process_duration_p95_us": 1_000}}),
    window(1, lost={"b": 20}, nodes={"a": {"lag_in_us": lag(9_000), "process_duration_p95_us": 3_000}}),
    window(2, verdict=Verdict.UNKNOWN),
)
STRETCH = StreamRange("orders", Graph(("a", "b"), (Edge(0, 1, is_required=True),)), STEPS, 60_000_000, None)
OVER = "By the minute from 2026-01-01 00:00 UTC to 2026-01-01 00:02 UTC."


def test_arrivals_say_how_many_are_missing_and_where_most() -> None:
    """In all, and at the worst step."""
    said = TOLD.describe_arrivals(series.build_arrival_points(series.select_finished(STRETCH), "", UTC), "end to end")
    worst = "3,000 expected, 2,980 arrived; most are missing at 2026-01-01 00:01 UTC: 20."
    assert said == f"Expected and arrived messages, end to end. {OVER} {worst}"


def test_lags_say_how_far_each_percentile_goes() -> None:
    """And when it is highest."""
    said = TOLD.describe_lags(series.build_lag_points(STRETCH, "a", UTC), (), "lag in", "a")
    assert said.startswith("lag in of a. By the minute from 2026-01-01 00:00 UTC to 2026-01-01 00:01 UTC.")
    assert "p95 5.0 ms to 9.0 ms, highest at 2026-01-01 00:01 UTC" in said


def test_durations_and_heat_say_what_is_highest_and_what_is_not_known() -> None:
    """Row by row."""
    assert "a 1.0 ms to 3.0 ms" in TOLD.describe_durations(series.build_duration_pieces(STRETCH, ("a",), UTC))
    said = TOLD.describe_heat(series.build_heat_cells(STRETCH, HeatMeasure.LOSS, UTC), "loss %")
    assert "end to end: highest 2.00% lost at 2026-01-01 00:01 UTC, 1 not known" in said
    assert "a: no figure, 1 not known" in said


def test_a_chart_of_nothing_says_so() -> None:
    """Rather than a range from nowhere."""
    assert TOLD.describe_arrivals((), "orders") == "Expected and arrived messages, orders. There is nothing to show."
    assert "There is nothing to show." in TOLD.describe_durations(())
