"""Tests of the views' names: they stand where the compiled code puts the views."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bench.noises import DAY, MINUTE_US, MONDAY_US
from hopwatch.monitor.outliers import detector, state, step
from hopwatch.monitor.outliers.views import VIEWS

LONG = 20 * DAY // 5


def _loudest(end: list[float]) -> set[str]:
    """Return the views that are surprised by more than 3 in the last of these values, after 20 days of calm.

    Every five minutes, a little noise around 50 and 10 more at noon.
    """
    moments_us = MONDAY_US + 5 * MINUTE_US * np.arange(LONG + len(end))
    is_noon = moments_us // (60 * MINUTE_US) % 24 == 12
    calm = 50 + np.random.default_rng(3).normal(0, 1, LONG)
    values = np.concatenate((calm, end)) + 10 * is_noon
    _, scores = detector.score_values(state.new_states(1), np.zeros(len(values), np.int64), moments_us, values)
    return {view.name for view, surprise in zip(VIEWS, scores.surprises[-1].tolist(), strict=True) if surprise > 3}


def test_families_are_numbered_as_they_come() -> None:
    """The compiled code knows a family by its number."""
    families = list(dict.fromkeys(view.family for view in VIEWS))
    assert [families.index(view.family) for view in VIEWS] == step._FAMILY.tolist()
    assert len(families) == step._FAMILIES
    assert len(VIEWS) == state.VIEW_COUNT


def test_opposites_stand_side_by_side() -> None:
    """Up and down, of one family."""
    pairs = [(a, b) for a, b in pairwise(VIEWS) if a.name.endswith("_up")]
    assert all(b.name == a.name.replace("_up", "_down") and a.family == b.family for a, b in pairs)


@pytest.mark.parametrize(
    ("end", "surprised", "calm"),
    [
        ([75.0], {"level_up", "jump_up", "fast_up", "slow_up", "day_up", "above_32", "rise_16"}, {"level_down"}),
        ([35.0], {"level_down", "jump_down", "fast_down", "slow_down", "day_down", "below_32"}, {"level_up"}),
        ([50.0] * 100, {"still_32", "still_96"}, {"jump_up", "level_up", "restless_32"}),
        ([43.0, 57.0] * 16, {"restless_32"}, {"still_32", "still_96"}),
        ([65.0, 66.0] * 16, {"shift_32_up"}, {"jump_up", "shift_32_down"}),
        ([53.0, 54.0] * 48, {"shift_96_up"}, {"jump_up", "shift_96_down"}),
        ([60.0] * 2, {"day_up", "week_drift_up"}, {"day_down", "week_drift_down"}),
    ],
)
def test_each_view_sees_what_it_is_named_for(end: list[float], surprised: set[str], calm: set[str]) -> None:
    """A spike, a dip, a stuck value, a wobble, two shifts of the mean, the height of noon at midnight."""
    loudest = _loudest(end)
    assert surprised <= loudest, loudest
    assert not calm & loudest, loudest


def test_what_comes_every_day_at_its_hour_is_no_surprise() -> None:
    """The step up at noon is known after some days."""
    moments_us = MONDAY_US + 5 * MINUTE_US * np.arange(LONG)
    is_noon = moments_us // (60 * MINUTE_US) % 24 == 12
    values = 50 + np.random.default_rng(3).normal(0, 1, LONG) + 10 * is_noon
    _, scores = detector.score_values(state.new_states(1), np.zeros(LONG, np.int64), moments_us, values)
    assert not scores.notice[is_noon & (moments_us > MONDAY_US + 7 * DAY * MINUTE_US)].any()
