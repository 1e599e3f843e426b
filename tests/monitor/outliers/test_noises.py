"""The promise that a pager needs: at the threshold of an outlier, noise is no alarm more than once a week."""

from __future__ import annotations

import numpy as np
import pytest

from bench.noises import DAY, NOISES, WEEK, drawn, minutes
from hopwatch.monitor.outliers import detector, state

SERIES = 12
WEEKS = 2


@pytest.mark.parametrize("name", NOISES)
def test_stationary_noise_is_an_outlier_at_most_once_a_week(name: str) -> None:
    """Of each noise, on average over seeded series of two weeks at one-minute steps; the first minutes count too."""
    count = WEEKS * WEEK
    values = np.concatenate([drawn(name, seed, count) for seed in range(SERIES)])
    rows, moments_us = np.repeat(np.arange(SERIES), count), np.tile(minutes(count), SERIES)
    _, scores = detector.score_values(state.new_states(SERIES), rows, moments_us, values)
    assert scores.outlier.sum() / SERIES / WEEKS <= 1
    assert scores.notice.sum() / SERIES / WEEKS / (WEEK / DAY) <= 1
