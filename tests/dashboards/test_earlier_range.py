"""Tests of the comparison of a range with the same range a day or a week before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from hopwatch.dashboards.charts import time_chart
from hopwatch.dashboards.charts.time_chart import TimeChart
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.queries.stream_queries import StreamRangeQuery
from hopwatch.dashboards.views import series
from hopwatch.dashboards.views.address import ComparedPeriod
from hopwatch.dashboards.views.display_range import DAY_US, HOUR_US, DisplayRange
from hopwatch.dashboards.views.earlier_range import EarlierRange, describe_difference, shift_range
from hopwatch.monitor.results import RollUp
from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.dashboard_stores import build_windows, clock, fill, open_page, plain, read_page, store_url
from tests.support.windows import at, lag, window

DAY_MINUTES = 24 * 60
TIMED: Any = {"a": {"lag_in_us": lag(2_000), "lag_out_us": lag(5_000)}}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return a store with ten minutes of 1,000 messages, and as many a day later of which 20 of 500 are lost."""
    url = store_url(tmp_path)
    before = build_windows(10, nodes=TIMED)
    now = [window(DAY_MINUTES + minute, known=500, lost={"b": 20}, nodes=TIMED) for minute in range(10)]
    fill(url, *before, *now)
    return url


def ask(url: str, first: int, last: int) -> StreamRange:
    """Return a range of minutes."""
    with schema.open_snapshot(dialect.create_engine(url)) as connection:
        return StreamRangeQuery("orders", at(first), at(last), WINDOW_US).run(connection)


def get_total(url: str, first: int, last: int) -> RollUp:
    """Return the sums over a range of minutes."""
    total = ask(url, first, last).total
    assert total is not None
    return total


def test_a_range_is_compared_with_the_one_a_day_or_a_week_before() -> None:
    """A range of a day in whole hours is compared too; no message is in both, and a longer one has no day before."""
    hour = DisplayRange(at(0), at(0) + HOUR_US, WINDOW_US, "a notice")
    assert shift_range(hour, ComparedPeriod.NONE) is None
    assert shift_range(hour, ComparedPeriod.DAY) == DisplayRange(at(0) - DAY_US, at(0) + HOUR_US - DAY_US, WINDOW_US)
    assert shift_range(hour, ComparedPeriod.WEEK) == DisplayRange(
        at(0) - 7 * DAY_US, at(0) + HOUR_US - 7 * DAY_US, WINDOW_US
    )
    day = DisplayRange(at(0), at(0) + DAY_US + HOUR_US, HOUR_US)
    assert shift_range(day, ComparedPeriod.DAY) == DisplayRange(at(0) - DAY_US, at(0), HOUR_US)
    assert shift_range(replace(day, to_us=day.to_us + HOUR_US), ComparedPeriod.DAY) is None


def test_the_difference_is_told_by_messages_loss_and_lag(url: str) -> None:
    """Messages are those of a window on average, so that the number of windows changes nothing of them."""
    now, before = get_total(url, DAY_MINUTES, DAY_MINUTES + 10), get_total(url, 0, 10)
    told = describe_difference(now, before, "the day before")
    assert told == (
        "Compared with the day before: 500 messages a minute, were 1,000 (50.0% fewer); lost 4.00%, was 0%; "
        "lag p95 end to end –, was –."  # noqa: RUF001 - as what is not known is shown
    )
    fewer = describe_difference(before, get_total(url, 0, 4), "the day before")
    assert "1,000 messages a minute, were 1,000;" in fewer
    assert fewer.endswith("; 10 final windows, were 4.")
    assert "(100% more)" in describe_difference(before, now, "the week before")


def test_a_range_without_final_windows_is_compared_with_nothing(url: str) -> None:
    """Neither is silence a drop to 0, nor is a store that is younger than the range."""
    now = get_total(url, 0, 10)
    assert describe_difference(now, None, "the day before") == (
        "Compared with the day before: no final window of it is kept."
    )
    assert describe_difference(None, now, "the day before") == (
        "Compared with the day before: no window of this range is final yet."
    )


def test_an_earlier_range_without_messages_has_no_percentage(url: str) -> None:
    """Nothing is a number of times nothing."""
    now = get_total(url, 0, 10)
    assert "1,000 messages a minute, were 0; lost 0%, was 0%" in describe_difference(
        now, replace(now, known=0), "the day before"
    )


def test_the_earlier_range_is_a_line_of_its_own(url: str) -> None:
    """Each of its points stands at the step that it is compared with, under its own name."""
    now, earlier = ask(url, DAY_MINUTES, DAY_MINUTES + 10), EarlierRange("the day before", DAY_US, ask(url, 0, 10))
    arrived = earlier.build_arrival_points("b", UTC)
    assert {(one.line, one.value) for one in arrived} == {("the day before", 1_000)}
    assert [one.start_us for one in arrived] == [
        one.start_us for one in series.build_arrival_points(now.steps, "b", UTC)[::2]
    ]
    lags = earlier.build_lag_points("a", "lag out", UTC)
    assert [one.value for one in lags] == [5.0] * 10
    picture = TimeChart("a title", "what is in it", at(DAY_MINUTES), at(DAY_MINUTES + 10), WINDOW_US)
    points = series.build_arrival_points(now.steps, "b", UTC)
    drawn = time_chart.draw_arrivals(picture, points, (), "minute", arrived)
    assert (
        drawn.step_tooltips[at(DAY_MINUTES)]
        == "2026-01-02 00:00 UTC\nexpected: 480\narrived: 480\nthe day before: 1,000"
    )
    svg = drawn.to_svg()
    assert ">the day before<" in svg
    assert svg.count("stroke:var(--hw-muted);stroke-width:1.4") == 1
    picture = TimeChart("a title", "what is in it", at(DAY_MINUTES), at(DAY_MINUTES + 10), WINDOW_US)
    mine = [one for one in series.build_lag_points(now, "a", UTC) if one.line == "lag out"]
    assert ">p95, the day before<" in time_chart.draw_lags(picture, mine, (), (), lags).to_svg()


def read_stream(url: str, **query: str) -> str:
    """Return the text of the page of the stream."""
    page = open_page(url, clock(DAY_MINUTES + 12), page="stream", stream="orders", **query)
    assert not page.exception
    return plain(read_page(page))


def test_the_page_says_the_difference(url: str) -> None:
    """Of the range that is shown, whatever node is chosen."""
    assert "Compared with" not in read_stream(url)
    told = "Compared with the day before: 500 messages a minute, were 1,000 (50.0% fewer); lost 4.00%, was 0%"
    assert told in read_stream(url, compare="day")
    assert told in read_stream(url, compare="day", node="b")
    assert "the week before: no final window of it is kept." in read_stream(url, compare="week")


def test_a_range_that_is_longer_than_a_day_has_no_day_before(tmp_path: Path) -> None:
    """The two would be the same messages in part."""
    url = store_url(tmp_path)
    fill(url, window(0), window(2 * DAY_MINUTES))
    told = read_stream(url, compare="day", range="7d")
    assert "Compared with nothing: the day before would be a part of this range." in told
