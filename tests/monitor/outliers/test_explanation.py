"""Tests of explanations: an outlier says what, against what, why, how rare and since when."""

from __future__ import annotations

import numpy as np

from bench.noises import DAY, minutes
from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.explanation import MAX_REASONS, explain
from hopwatch.monitor.outliers.quantities import Quantity, to_scale
from hopwatch.monitor.outliers.views import VIEWS


def test_an_outlier_explains_itself() -> None:
    """A lag of 2 s among 100 ms: its own unit, the range that was expected, three families, the minute it began."""
    lags_us = 100_000 * np.random.default_rng(1).lognormal(0, 0.1, 2 * DAY)
    lags_us[-1] = 2_000_000.0
    quantity, count = Quantity.LAG_IN_P95_US, len(lags_us)
    scaled = to_scale(quantity, lags_us)
    _, scores = detector.score_values(state.new_states(1), np.zeros(count, np.int64), minutes(count), scaled)
    why = explain(quantity, lags_us[-1], scores, count - 1)
    assert (why.quantity, why.observed, why.since_us) == (quantity, 2_000_000.0, minutes(count)[-1])
    assert why.low is not None
    assert why.high is not None
    assert 60_000 < why.low < 100_000 < why.high < 150_000
    assert why.score >= detector.OUTLIER
    families = {view.family for view in VIEWS for reason in why.reasons if reason.view == view.name}
    assert len(why.reasons) == len(families) == MAX_REASONS
    assert str(why).startswith("lag_in_p95_us 2e+06, expected ")
    assert "rarer than once in 1,000,000" in str(why)


def test_a_young_series_expects_nothing() -> None:
    """There is no range, no reason and no number made up."""
    _, scores = detector.score_values(state.new_states(1), np.zeros(1, np.int64), minutes(1), np.array([7.0]))
    why = explain(Quantity.VALUE, 7.0, scores, 0)
    assert (why.low, why.high, why.reasons) == (None, None, ())
    assert str(why) == "value 7: nothing is known of it yet"


def test_a_rarity_is_told_as_far_as_it_is_known() -> None:
    """Once in so many values, from the share of its own past."""
    values = np.random.default_rng(1).normal(50, 1, 2 * DAY)
    values[-1] = 53.4
    _, scores = detector.score_values(
        state.new_states(1), np.zeros(len(values), np.int64), minutes(len(values)), values
    )
    assert ", expected 4" in str(explain(Quantity.VALUE, 53.4, scores, len(values) - 1))
    assert "(once in " in str(explain(Quantity.VALUE, 53.4, scores, len(values) - 1))
