"""Tests of charts over time: what of their specification a person would miss."""

from __future__ import annotations

import pytest

from dashboards.charts import times
from dashboards.charts.times import Frame
from dashboards.views.colours import LIGHT
from dashboards.views.series import Point
from dashboards.views.span import Span

MINUTE_US = 60_000_000


def drawn(steps: int, *, is_utc: bool = True) -> str:
    """Return the specification of a chart of what arrived in so many minutes."""
    frame = Frame(Span(0, 60 * MINUTE_US, MINUTE_US), is_utc, LIGHT, ())
    points = [
        Point(number * MINUTE_US, "then", line, "", 10.0, "10")
        for number in range(steps)
        for line in ("expected", "arrived")
    ]
    specification: str = times.arrivals(frame, points, "minute").to_json(indent=None)
    return specification


def test_a_single_step_is_a_dot() -> None:
    """A line or an area of one point is invisible; one of many needs no dots."""
    assert drawn(1).count('"point": {"size": 36}') == 2
    assert '"point": {' not in drawn(30)


@pytest.mark.parametrize(("is_utc", "whose"), [(True, "UTC"), (False, "local time")])
def test_the_axis_of_time_says_whose_clock_it_tells(is_utc: bool, whose: str) -> None:  # noqa: FBT001 - a parameter of the test
    """In the words of the switch above."""
    assert f'"title": "{whose}"' in drawn(1, is_utc=is_utc)
