"""Tests of the panel of error budgets on the page of a stream, and of the chart in it."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import insert

from hopwatch.alerts.decision.budgets import DAY_US
from hopwatch.alerts.decision.rules import Objective
from hopwatch.alerts.storage.objectives import StreamObjective, read_objectives, save_objectives
from hopwatch.dashboards.charts import burn_chart
from hopwatch.display.colours import LIGHT
from hopwatch.monitor.store import tables
from tests.support.dashboard_stores import build_windows, fill, open_page, plain, read_page, store_url
from tests.support.windows import at

TITLE: Final = "Error budgets"
OBJECTIVES: Final = [
    StreamObjective("orders", "burn_rate", Objective(0.001)),
    StreamObjective("orders", "quick", Objective(0.01, 500_000)),
    StreamObjective("trades", "burn_rate", Objective(0.001)),
]


def read_stream(folder: Path, bad: int, objectives: list[StreamObjective]) -> str:
    """Return the text of the page of a stream with so many bad messages of 10,000 by its first objective."""
    engine = fill(store_url(folder), *build_windows())
    row = {"stream": "orders", "objective": "loss", "window_start_us": at(3), "total": 10_000, "bad": bad}
    with engine.execution_options(writes=True).begin() as connection:
        save_objectives(connection, objectives)
        connection.execute(insert(tables.objective_minutes), [row])
    return plain(read_page(open_page(store_url(folder), page="stream", stream="orders")))


def test_a_stream_shows_what_is_left_of_its_budgets(tmp_path: Path) -> None:
    """Each objective of which anything was counted, by the configuration of the monitor, without its secrets."""
    told = read_stream(tmp_path, 4, OBJECTIVES)
    assert f"{TITLE} Of thirty days" in told
    assert "99.9% arrive (burn_rate): 60.0% left, 4 of 10,000 bad, 10 may be; burn rate 0.4 in 24 h" in told
    assert "quick" not in told


@pytest.mark.parametrize("objectives", [[], OBJECTIVES[2:]], ids=["none", "of another stream"])
def test_without_an_objective_there_is_no_panel(objectives: list[StreamObjective], tmp_path: Path) -> None:
    """As where alerts are disabled, or the monitor is of an earlier version."""
    assert TITLE not in read_stream(tmp_path, 4, objectives)


def test_the_store_has_the_objectives_that_are_in_force(tmp_path: Path) -> None:
    """Those that were written last, as they were written."""
    engine = fill(store_url(tmp_path), *build_windows(1))
    with engine.execution_options(writes=True).begin() as connection:
        assert read_objectives(connection) == []
        for written in (OBJECTIVES, OBJECTIVES[1:], OBJECTIVES[1:], []):
            save_objectives(connection, written)
            assert read_objectives(connection) == written


@pytest.mark.parametrize(("left", "colour"), [(0.25, LIGHT.series[0]), (0.0, LIGHT.lossy), (-3.0, LIGHT.lossy)])
def test_the_chart_falls_from_all_of_it_to_what_is_left(left: float, colour: str) -> None:
    """From left to right and top to bottom; red once all of it is spent."""
    traced = [(at(0), 1.0), (at(0) + DAY_US, (1 + left) / 2), (at(0) + 2 * DAY_US, left)]
    picture = burn_chart.draw_budget(traced, LIGHT, UTC)
    (points,) = re.findall(r'<polyline points="([^"]*)"', picture)
    places = [tuple(map(float, point.split(","))) for point in points.split()]
    assert places == sorted(places)
    assert all(0 <= x <= burn_chart.WIDTH and 0 <= y <= burn_chart.HEIGHT for x, y in places)
    assert f'stroke="{colour}" stroke-width="2"' in picture
    assert burn_chart.describe_trace(traced, UTC).endswith(f"{left:.1%} is left")


def test_a_budget_of_one_moment_is_drawn() -> None:
    """As in the first minute of a monitor."""
    assert "polyline" in burn_chart.draw_budget([(at(0), 1.0), (at(0), 0.5)], LIGHT, UTC)


@pytest.mark.parametrize(("days", "told"), [(0.01, "00:10"), (0.9, "12:00"), (20, "08 Jan")])
def test_the_moments_of_a_chart_are_told_apart(days: float, told: str) -> None:
    """By the minute in the first two days of a budget, and by the day then."""
    picture = burn_chart.draw_budget([(at(0), 1.0), (at(0) + round(days * DAY_US), 0.5)], LIGHT, UTC)
    words = re.findall(r">([^<>]+)</text>", picture)
    assert len(words) == len(set(words))
    assert told in words, words
