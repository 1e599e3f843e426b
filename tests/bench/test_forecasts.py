"""Tests of the bench of forecasts: alarms are counted as a rule fires, and leads end at the threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench import forecasts
from bench.forecasts import ForecastLine


def test_an_alarm_begins_at_the_fifth_window_of_a_trend() -> None:
    """A trend that lasts is one alarm, and one that comes again is another."""
    rise = np.linspace(10, 60, 100)
    values = np.concatenate([np.full(100, 10.0), rise, np.full(100, 10.0), rise])
    first, second = forecasts.find_alarms(values, 60)
    assert 100 < first < 160
    assert second - first == 200
    assert list(forecasts.find_alarms(np.full(300, 10.0), 60)) == []


def test_leads_are_minutes_before_the_threshold() -> None:
    """Of those that were told of before; the share of them is told, too."""
    line = forecasts.summarize_leads("x", [30.0, None, 10.0, 20.0])
    assert line == ForecastLine("x", 4, None, 0.75, 20.0, 10.0)
    assert forecasts.summarize_leads("x", [None]).lead_p50_min is None


def test_all_of_it_in_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Healthy kinds have a count, growths a share."""
    monkeypatch.setattr(forecasts, "WEEK", 300)
    counted = forecasts.count_false(tmp_path, series=1, weeks=1)
    assert set(counted) == set(forecasts.HEALTHY)
    leads = forecasts.find_leads(tmp_path, series=1, hours=[2])
    (found,) = leads["2"]
    assert found is None or 0 < found < 120
    lines = [ForecastLine("healthy", 1, 0.25), forecasts.summarize_leads("grows", leads["2"])]
    console = Console(width=120)
    with console.capture() as said:
        console.print(forecasts.build_table(lines))
    assert "0.25" in said.get()
