"""Tests of charts that are drawn for a document: axes with round numbers, titles and words, no markup of a name's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.dashboards.charts import axes, live_chart, time_chart
from hopwatch.dashboards.charts.time_chart import TimeChart
from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange
from hopwatch.dashboards.views import series
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.series import ChartPoint
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import Verdict
from tests.support.dashboard_stores import HOSTILE
from tests.support.windows import at, lag, window

LAGS = {"lag_in_us": lag(5_000), "process_duration_p95_us": 1_000}


def picture(minutes: int = 4, high: int = time_chart.HEIGHT) -> TimeChart:
    """Return a chart of so many minutes in which nothing is drawn yet."""
    return TimeChart("a title", "what is in it", at(0), at(minutes), 60_000_000, high)


def stretch(*names: str) -> StreamRange:
    """Return four minutes of which the third has no lag and the last is not known."""
    steps = tuple(
        window(minute, names=names, lost={names[-1]: 5 * minute}, nodes={names[0]: LAGS}) for minute in range(4)
    )
    bare = window(2, names=names)
    blind = replace(steps[3], verdict=Verdict.UNKNOWN, lost_lower=0, lost_upper=None)
    graph = Graph(names, tuple(Edge(place, place + 1, is_required=True) for place in range(len(names) - 1)))
    return StreamRange("orders", graph, (steps[0], steps[1], bare, blind), 60_000_000, None)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_round_numbers_hold_all_values(low: float, more: float) -> None:
    """In order, evenly, and few of them."""
    made = axes.build_value_ticks(low, low + more)
    assert made[0] <= low + 1e-6 * max(1, abs(low))
    assert made[-1] >= low + more - 1e-6 * max(1, abs(low + more))
    assert 2 <= len(made) <= axes.VALUE_TICKS + 3
    assert all(one < other for one, other in pairwise(made))


@given(st.integers(0, 4 * 10**15), st.integers(1, 4 * 10**15))
def test_round_moments_are_few_and_in_the_range(from_us: int, length_us: int) -> None:
    """Ticks are few and within the range, whatever its length is."""
    made = axes.build_time_ticks(from_us, from_us + length_us)
    assert len(made) <= axes.MAX_TICKS
    assert all(from_us <= one <= from_us + length_us for one in made)


@given(
    st.integers(0, 4 * 10**15), st.integers(1, 60 * axes.DAY_US), st.sampled_from(("Asia/Kathmandu", "Europe/Berlin"))
)
def test_moments_are_round_by_the_clocks_of_who_looks(from_us: int, length_us: int, name: str) -> None:
    """On both sides of a day on which they are moved: whole hours where these are the step, else midnights."""
    zone = ZoneInfo(name)
    made = axes.build_time_ticks(from_us, from_us + length_us, zone)
    assert len(made) <= axes.MAX_TICKS
    assert all(from_us <= one <= from_us + length_us for one in made)
    wall = [datetime.fromtimestamp(one // 1_000_000, zone) for one in made]
    assert all((at.second, at.minute % (5 if length_us > 10 * axes.HOUR_US else 1)) == (0, 0) for at in wall)
    if length_us >= axes.MAX_TICKS * axes.DAY_US:
        assert all((at.hour, at.minute) == (0, 0) for at in wall)


def test_a_moment_is_told_by_the_clock_of_who_looks() -> None:
    """The day where one begins there."""
    assert axes.format_tick(at(61), 2 * axes.HOUR_US, ZoneInfo("Asia/Kathmandu")) == "06:46"
    assert axes.format_tick(at(18 * 60 + 15), 2 * axes.HOUR_US, ZoneInfo("Asia/Kathmandu")) == "Jan 02"


def test_a_moment_is_told_as_its_range_needs() -> None:
    """The time within hours, the day where one begins, days alone in weeks."""
    assert axes.format_tick(at(61), 2 * axes.HOUR_US) == "01:01"
    assert axes.format_tick(at(0), 2 * axes.HOUR_US) == "Jan 01"
    assert axes.format_tick(at(60), 30 * axes.DAY_US) == "Jan 01"


def test_a_line_has_a_gap_where_nothing_is_known() -> None:
    """Two pieces a percentile, where one minute of four has no lag."""
    told = stretch("a", "b")
    made = time_chart.draw_lags(picture(), series.build_lag_points(told, "a", UTC), (), ())
    drawn = ET.fromstring(made.to_svg())  # noqa: S314 - it was drawn here
    lines = [one for one in drawn.iter("path") if "stroke-width:2;" in (one.get("style") or "")]
    assert len(lines) == 2


def test_every_picture_has_a_title_and_is_told_in_words() -> None:
    """For whoever sees none of them; and each axis has its unit."""
    told = stretch("a", "b")
    cells = series.build_heat_cells(told, HeatMeasure.LOSS, UTC)
    bands = series.build_bands(told)
    drawn = [
        time_chart.draw_heat(picture(), cells, ("end to end", "a", "b"), "loss %"),
        time_chart.draw_arrivals(
            picture(), series.build_arrival_points(series.select_finished(told), "", UTC), bands, "minute"
        ),
        time_chart.draw_lags(picture(), series.build_lag_points(told, "a", UTC), (), bands),
        time_chart.draw_durations(picture(), series.build_duration_pieces(told, ("a",), UTC), ("a",), bands),
    ]
    figures = [one.to_figure() for one in drawn]
    for made in figures:
        svg = ET.fromstring(made).find("svg")  # noqa: S314 - it was drawn here
        assert svg is not None
        assert (svg.get("role"), svg.findtext("title"), svg.findtext("desc")) == ("img", "a title", "what is in it")
        assert "var(--hw-" in made
    assert "messages a minute" in figures[1]
    assert ">lag in, ms<" in figures[2]


def test_an_axis_of_lags_has_the_unit_of_its_longest() -> None:
    """4,000,000 ms are 66.7 min; where a line lies does not depend on it."""

    def lags(*values_ms: float) -> str:
        points = [ChartPoint(at(place), "", "lag in", "p95", value, "") for place, value in enumerate(values_ms)]
        return time_chart.draw_lags(picture(), points, (), ()).to_svg()

    long = lags(1_000_000, 4_000_000)
    assert ">lag in, min<" in long
    assert ">80<" in long
    assert ",000<" not in long
    assert ">lag in, µs<" in lags(0.5)
    axis = picture().draw_duration_axis(0, 4_000_000, "lag in")
    assert (axis.low, axis.high) == (0, 80 * 60_000)
    assert axis.position(40 * 60_000) == (axis.start + axis.end) / 2


def test_what_is_pointed_at_is_told_step_by_step() -> None:
    """Each step when it is and what its lines say; each cell of a heat map its row and how it is judged."""
    told = stretch("a", "b")
    drawn = time_chart.draw_lags(
        picture(), [one for one in series.build_lag_points(told, "a", UTC) if one.line == "lag in"], (), ()
    )
    steps = live_chart.build_live_chart(drawn).steps
    assert len(steps) == 4
    assert steps[0].splitlines()[0] == "2026-01-01 00:00 UTC"
    assert [line.partition(":")[0] for line in steps[0].splitlines()[1:]] == ["p50", "p95", "p99"]
    assert steps[2] == ""
    rows = ("end to end", "a", "b")
    sent = live_chart.build_live_chart(
        time_chart.draw_heat(picture(), series.build_heat_cells(told, HeatMeasure.LOSS, UTC), rows, "loss %"), "click"
    )
    assert sent.steps[1] == "2026-01-01 00:01 UTC"
    assert [len(row) for row in sent.cells] == [4, 4, 4]
    assert sent.cells[0][3] == "end to end: ? UNKNOWN, 0% to ? lost, unknown"
    assert (sent.gesture, sent.from_us, sent.to_us) == ("click", at(0), at(4))


def test_a_lag_below_0_has_no_colour_of_a_value() -> None:
    """Skewed clocks make one: its cell is as plain as one without a figure, and its words tell it."""
    lags = {"lag_out_us": lag(-10_000, low=-20_000)}
    steps = tuple(window(minute, names=("a",), nodes={"a": lags}) for minute in range(3))
    told = StreamRange("orders", Graph(("a",), ()), steps, 60_000_000, None)
    cells = series.build_heat_cells(told, HeatMeasure.LAG, UTC)
    assert any(cell.value is not None and cell.value < 0 for cell in cells)
    drawn = time_chart.draw_heat(picture(3), cells, (series.END_TO_END, "a"), "lag out p95, ms")
    assert {one.attrib["style"] for one in drawn.plane.iter("path")} == {"fill:var(--hw-blank)"}


def test_a_report_tells_steps_and_cells_without_a_script() -> None:
    """As titles, which a browser shows under the pointer."""
    told = stretch("a", "b")
    rows = ("end to end", "a", "b")
    map_ = time_chart.draw_heat(
        picture(), series.build_heat_cells(told, HeatMeasure.LOSS, UTC), rows, "loss %"
    ).to_figure()
    assert "<title>2026-01-01 00:03 UTC\nend to end: ? UNKNOWN, 0% to ? lost, unknown</title>" in map_
    drawn = time_chart.draw_arrivals(
        picture(), series.build_arrival_points(series.select_finished(told), "", UTC), (), "minute"
    ).to_figure()
    assert "<title>2026-01-01 00:01 UTC\nexpected: " in drawn


def test_cells_that_look_alike_are_one_shape() -> None:
    """Cells of one colour are one shape, however many they are."""
    names = tuple(f"n{number}" for number in range(20))
    steps = tuple(window(minute, names=names) for minute in range(60))
    told = StreamRange("orders", Graph(names, ()), steps, 60_000_000, None)
    drawn = time_chart.draw_heat(
        picture(60), series.build_heat_cells(told, HeatMeasure.LOSS, UTC), (series.END_TO_END, *names), "loss %"
    )
    shapes = list(drawn.plane.iter("path"))
    assert len(shapes) == 1
    assert shapes[0].attrib["d"].count("M") == 60 * 21


@pytest.mark.parametrize(("zone", "whose"), [(UTC, "UTC"), (ZoneInfo("Europe/Berlin"), "local time")])
def test_the_axis_of_time_says_whose_clock_it_tells(zone: tzinfo, whose: str) -> None:
    """In the words of the switch above."""
    made = TimeChart("a title", "what is in it", at(0), at(4), 60_000_000, time_chart.HEIGHT, zone)
    assert f">{whose}<" in made.to_svg()


def test_a_single_step_is_seen() -> None:
    """A line of one point is a short one."""
    told = stretch("a", "b")
    one = replace(told, steps=told.steps[:1])
    made = time_chart.draw_arrivals(
        picture(1), series.build_arrival_points(series.select_finished(one), "", UTC), (), "minute"
    )
    lines = [path.attrib["d"] for path in made.plane.iter("path") if "fill:none" in path.attrib["style"]]
    assert len(lines) == 2
    assert all(len(set(line[1:].split("L"))) == 2 for line in lines)


def test_many_names_have_room_in_a_legend() -> None:
    """Each is cut, and none is written over another or beyond the picture."""
    names = [(f"a-node-with-a-long-name-{number}", "--hw-s0", "") for number in range(8)]
    made = picture()
    made.draw_legend(names)
    words = [one for one in made.root.iter("text") if one.text and one.text.startswith("a-")]
    starts = [float(one.attrib["x"]) for one in words]
    assert len(words) == 8
    assert all((one.text or "").endswith("…") for one in words)
    assert all(other - one >= time_chart.LETTER_PX * len(words[0].text or "") for one, other in pairwise(starts))
    assert starts[-1] + time_chart.LETTER_PX * len(words[-1].text or "") <= time_chart.WIDTH


def test_no_name_is_markup() -> None:
    """Not in a row, not in a legend, not in what is told of a cell."""
    told = stretch(*HOSTILE)
    rows = (series.END_TO_END, *HOSTILE)
    made = time_chart.draw_heat(
        picture(), series.build_heat_cells(told, HeatMeasure.LOSS, UTC), rows, "loss %"
    ).to_svg()
    made += time_chart.draw_durations(
        picture(), series.build_duration_pieces(told, HOSTILE[:1], UTC), HOSTILE[:1], ()
    ).to_svg()
    assert "<img" not in made
    assert "&lt;img" in made


def test_a_marker_is_a_line_with_its_words() -> None:
    """At its moment, in a group that keeps its form, with moment, text, labels and name as the tooltip; no markup."""
    marker = Marker(at(2), HOSTILE[0], "ada", labels={"version": "1.4.2"})
    lines = series.build_marker_lines(replace(stretch("a", "b"), markers=(marker,)), UTC)
    made = picture()
    made.draw_marker_lines(lines)
    (group,) = (one for one in made.root.iter("g") if one.get("class") == "hw-moment" and one.find("path") is not None)
    title = group.find("path/title")
    assert title is not None
    assert title.text == f"2026-01-01 00:02:00 UTC {HOSTILE[0]} (version=1.4.2), by ada"
    assert HOSTILE[0] not in made.to_svg()
    assert float(group.attrib["data-x"]) == pytest.approx(made.time_axis.position(at(2)), abs=0.1)
