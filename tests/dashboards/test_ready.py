"""Tests of charts made ready: specifications that Vega-Lite allows, and the same names for the same tables."""

from __future__ import annotations

from datetime import UTC

import altair as alt
import pytest
from jsonschema import ValidationError  # type: ignore[import-untyped]  # it has no types

from dashboards.charts import ready, times
from dashboards.charts.times import Frame
from dashboards.reading.told import Graph, Stretch
from dashboards.views import series, span
from dashboards.views.address import Measure
from dashboards.views.colours import LIGHT
from monitor.results import Verdict
from tests.alerts.windows import at
from tests.dashboards.places import minutes

NAMES = ("a", "b")
STRETCH = Stretch(
    "orders", Graph(NAMES, ()), tuple(minutes(5, lost={"b": 20}, verdict=Verdict.LOSSY)), 60_000_000, None
)
FRAME = Frame(span.stepped(at(0), at(5)), True, LIGHT, series.bands(STRETCH))  # noqa: FBT003 - a field of a value


def charts() -> list[alt.LayerChart]:
    """Return one chart of each kind."""
    points = series.lags(STRETCH, "b", UTC)
    return [
        times.arrivals(FRAME, series.arrivals(STRETCH, "b", UTC), "minute"),
        times.lags(FRAME, points, series.outliers(STRETCH, "b", UTC), "lag in"),
        times.durations(FRAME, series.durations(STRETCH, NAMES, UTC), NAMES),
        times.heat(FRAME, series.heat(STRETCH, Measure.LOSS, UTC), NAMES, "loss, %"),
    ]


@pytest.mark.parametrize("place", range(4))
def test_what_is_written_without_a_check_is_what_one_allows(place: int) -> None:
    """Altair checks the specification of the same chart here, with all of its tables."""
    spec = ready.of(charts()[place])
    whole = spec | {"datasets": {name: [] for name in spec["datasets"]}}
    alt.LayerChart.from_dict(whole)
    with pytest.raises(ValidationError):
        alt.LayerChart.from_dict(whole | {"layer": "nothing"})


@pytest.mark.parametrize("place", range(4))
def test_the_same_points_are_the_same_specification(place: int) -> None:
    """So that a browser keeps what it has drawn; each layer names a table that is there."""
    first, again = ready.of(charts()[place]), ready.of(charts()[place])
    assert first["datasets"].keys() == again["datasets"].keys()
    assert all(first["datasets"][name].equals(again["datasets"][name]) for name in first["datasets"])
    named = [one["data"]["name"] for one in (first, *first["layer"]) if one.get("data")]
    assert {*named} == {*first["datasets"]}
