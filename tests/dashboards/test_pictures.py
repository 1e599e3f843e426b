"""Tests of charts that are drawn for a document: axes with round numbers, titles and words, no markup of a name's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from itertools import pairwise
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from dashboards.charts import axes, pictures
from dashboards.charts.pictures import Picture
from dashboards.reading.told import Edge, Graph, Stretch
from dashboards.views import series
from dashboards.views.address import Measure
from monitor.results import Verdict
from tests.alerts.windows import at, lag, window
from tests.dashboards.places import HOSTILE

LAGS = {"lag_in_us": lag(5_000), "process_duration_p95_us": 1_000}


def picture(minutes: int = 4, high: int = pictures.HIGH) -> Picture:
    """Return a chart of so many minutes in which nothing is drawn yet."""
    return Picture("a title", "what is in it", at(0), at(minutes), 60_000_000, high)


def stretch(*names: str) -> Stretch:
    """Return four minutes of which the third has no lag and the last is not known."""
    steps = tuple(
        window(minute, names=names, lost={names[-1]: 5 * minute}, nodes={names[0]: LAGS}) for minute in range(4)
    )
    bare = window(2, names=names)
    blind = replace(steps[3], verdict=Verdict.UNKNOWN)
    graph = Graph(names, tuple(Edge(place, place + 1, is_must=True) for place in range(len(names) - 1)))
    return Stretch("orders", graph, (steps[0], steps[1], bare, blind), 60_000_000, None)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_round_numbers_hold_all_values(low: float, more: float) -> None:
    """In order, evenly, and few of them."""
    made = axes.values(low, low + more)
    assert made[0] <= low + 1e-6 * max(1, abs(low))
    assert made[-1] >= low + more - 1e-6 * max(1, abs(low + more))
    assert 2 <= len(made) <= axes.VALUES + 3
    assert all(one < other for one, other in pairwise(made))


@given(st.integers(0, 4 * 10**15), st.integers(1, 4 * 10**15))
def test_round_moments_are_few_and_in_the_range(from_us: int, length_us: int) -> None:
    """However long it is."""
    made = axes.moments(from_us, from_us + length_us)
    assert len(made) <= axes.MOST_MOMENTS
    assert all(from_us <= one <= from_us + length_us for one in made)


def test_a_moment_is_told_as_its_range_needs() -> None:
    """The time within hours, the day where one begins, days alone in weeks."""
    assert axes.clock(at(61), 2 * axes.HOUR_US) == "01:01"
    assert axes.clock(at(0), 2 * axes.HOUR_US) == "Jan 01"
    assert axes.clock(at(60), 30 * axes.DAY_US) == "Jan 01"


def test_a_line_has_a_gap_where_nothing_is_known() -> None:
    """Two pieces a percentile, where one minute of four has no lag."""
    told = stretch("a", "b")
    made = pictures.lags(picture(), series.lags(told, "a", UTC), (), ())
    drawn = ET.fromstring(made.svg())  # noqa: S314 - it was drawn here
    lines = [one for one in drawn.iter("path") if "stroke-width:2;" in (one.get("style") or "")]
    assert len(lines) == 2


def test_every_picture_has_a_title_and_is_told_in_words() -> None:
    """For whoever sees none of them; and each axis has its unit."""
    told = stretch("a", "b")
    cells = series.heat(told, Measure.LOSS, UTC)
    bands = series.bands(told)
    drawn = [
        pictures.heat(picture(), cells, ("end to end", "a", "b"), "loss, %"),
        pictures.arrivals(picture(), series.arrivals(told, "", UTC), bands, "minute"),
        pictures.lags(picture(), series.lags(told, "a", UTC), (), bands),
        pictures.durations(picture(), series.durations(told, ("a",), UTC), ("a",), bands),
    ]
    figures = [one.figure() for one in drawn]
    for made in figures:
        svg = ET.fromstring(made).find("svg")  # noqa: S314 - it was drawn here
        assert svg is not None
        assert (svg.get("role"), svg.findtext("title"), svg.findtext("desc")) == ("img", "a title", "what is in it")
        assert "var(--hw-" in made
    assert "messages a minute" in figures[1]
    assert ">lag in, ms<" in figures[2]


def test_no_name_is_markup() -> None:
    """Not in a row, not in a legend, not in what is told of a cell."""
    told = stretch(*HOSTILE)
    rows = (series.END_TO_END, *HOSTILE)
    made = pictures.heat(picture(), series.heat(told, Measure.LOSS, UTC), rows, "loss, %").svg()
    made += pictures.durations(picture(), series.durations(told, HOSTILE[:1], UTC), HOSTILE[:1], ()).svg()
    assert "<img" not in made
    assert "&lt;img" in made
