"""Tests of the bench of false alarms: counts are a series, a day and a week, and the made series are what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench import made_series, noise
from bench.noises import DAY, NOISES, WEEK, Floats, drawn
from hopwatch.monitor.outliers.quantities import Quantity


def struck(count: int) -> Iterator[Floats]:
    """Yield so many series of a week, each with one value that is far from all others."""
    for seed in range(count):
        values = drawn("normal", seed, WEEK)
        values[5 * DAY] += 1_000
        yield values


def test_counts_are_a_series_and_its_time() -> None:
    """Counts are those of a week of the series, for any number of weeks."""
    for count in (1, 2):
        told = noise.count_outliers(struck(count), weeks=1)
        assert told["outliers_a_week"] == 1
        assert told["notices_a_day"] >= 1 / 7
        assert told["rolling_a_day"] >= 1 / 7


def test_a_run_of_far_values_is_one() -> None:
    """A rolling mean is told once of a level that has moved."""
    values = np.tile([0.0, 1.0], 500)
    values[800:820] += 100
    assert noise._odd(values)[2] == 1


def test_every_noise_and_every_quantity_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""
    monkeypatch.setattr(noise, "WEEK", 300)
    assert set(noise.noises(tmp_path, series=1, weeks=1)) == set(NOISES)
    assert set(noise.pipelines(tmp_path, series=1, weeks=1)) == {quantity.value for quantity in made_series.SERIES}


def test_made_traffic_has_waves_of_day_and_week() -> None:
    """The same seed makes the same; the hours of a day differ, and the weekend is quieter than the week."""
    node, again = (made_series.node(5, 2 * WEEK) for _ in range(2))
    assert np.array_equal(node.messages, again.messages)
    by_hour = node.messages[: 5 * DAY].reshape(5, 24, 60).mean(axis=(0, 2))
    assert by_hour.max() > 2 * by_hour.min()
    days = node.messages.reshape(14, DAY).mean(axis=1)
    assert days[[5, 6]].mean() < 0.9 * days[:5].mean()
    assert node.bursts.max() > 1


@pytest.mark.parametrize("quantity", made_series.SERIES)
def test_made_series_are_numbers_of_their_quantity(quantity: Quantity) -> None:
    """None is negative or missing, and none stands still."""
    values = made_series.SERIES[quantity](made_series.node(1, WEEK))
    assert len(values) == WEEK
    assert np.isfinite(values).all()
    assert values.min() >= 0
    assert len(np.unique(values)) > 1
