"""Tests of the detector: what it is given, what it learns, and when an episode begins and ends."""

from __future__ import annotations

import numpy as np
import pytest

from bench.noises import DAY, MINUTE_US, Floats, minutes
from hopwatch.monitor.outliers import detector, state, step
from hopwatch.monitor.outliers.detector import DetectorError, Scores

CALM = 3 * DAY


def scored(end: list[float], seed: int = 1) -> Scores:
    """Return the scores of these values, a minute each, after three days of calm around 50."""
    calm = np.random.default_rng(seed).normal(50, 1, CALM)
    return of(np.concatenate((calm, np.array(end))))


def of(values: Floats) -> Scores:
    """Return the scores of one series, a minute a value."""
    count = len(values)
    return detector.score_values(state.new_states(1), np.zeros(count, np.int64), minutes(count), values)[1]


@pytest.mark.parametrize(
    ("rows", "moments", "told"),
    [
        ([0, 0], [0], "Rows, moments and values are as many of each; got 2, 1 and 1."),
        ([2], [0], "Rows are from 0 to 1; got 2 to 2."),
        ([-1], [0], "Rows are from 0 to 1; got -1 to -1."),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(rows: list[int], moments: list[int], told: str) -> None:
    """With their lengths, or the row that there is not."""
    with pytest.raises(DetectorError) as refused:
        detector.score_values(state.new_states(2), np.array(rows), np.array(moments), np.array([1.0]))
    assert str(refused.value) == told


def test_nothing_is_nothing() -> None:
    """No values, no scores, and the memory as it was."""
    none = np.empty(0, np.int64)
    after, scores = detector.score_values(state.new_states(1), none, none, np.empty(0))
    assert state.to_bytes(after) == state.to_bytes(state.new_states(1))
    assert scores.score.shape == (0,)
    assert scores.surprises.shape == (0, state.VIEW_COUNT)


def test_an_outage_is_an_outlier_once() -> None:
    """An hour at five times the level: one episode, an outlier from its first minute, and calm after it."""
    scores = scored([250.0] * 60 + np.random.default_rng(2).normal(50, 1, 30).tolist())
    assert np.flatnonzero(scores.outlier).tolist() == [CALM]
    assert np.flatnonzero(scores.notice[CALM:]).tolist() == [0]
    assert (scores.since_us[CALM : CALM + 60] == minutes(CALM + 1)[-1]).all()


def test_what_grows_is_told_again_as_an_outlier() -> None:
    """An episode that is only noticed at first becomes an outlier when it does, and not twice."""
    scores = scored([54.6, 54.0, 50.0, 95.0, 95.0, 250.0])
    notice, outlier = np.flatnonzero(scores.notice[CALM:]), np.flatnonzero(scores.outlier[CALM:])
    assert (notice.tolist(), outlier.tolist()) == ([0], [3])
    assert scores.score[CALM + 3] >= detector.OUTLIER


def test_a_series_of_less_than_a_day_has_notices_only() -> None:
    """A series of less than a day has notices and no outliers."""
    values = np.random.default_rng(1).normal(50, 1, 2 * DAY)
    values[[DAY - 100, DAY + 200]] = 250.0, 2_000.0
    scores = of(values)
    assert scores.notice[[DAY - 100, DAY + 200]].all()
    assert np.flatnonzero(scores.outlier).tolist() == [DAY + 200]


def test_the_usual_day_does_not_learn_from_an_episode() -> None:
    """A value that is part of an episode, and the hour after it, count in no half-hour of the day."""
    values = np.random.default_rng(1).normal(50, 1, CALM + 60)
    struck = values.copy()
    struck[CALM] = 5_000.0
    days = [
        detector.score_values(state.new_states(1), np.zeros(len(one), np.int64), minutes(len(one)), one)[0]["day"][0]
        for one in (values, struck)
    ]
    assert np.abs(days[0] - days[1]).max() < 1


def test_a_new_level_becomes_the_usual_one() -> None:
    """A shift that stays is told once, and is normal within a day."""
    scores = scored((80 + np.random.default_rng(4).normal(0, 1, 2 * DAY)).tolist())
    assert scores.outlier[CALM]
    assert scores.notice[CALM : CALM + DAY].sum() <= 3
    assert not scores.outlier[CALM + 1 :].any()


def test_after_a_long_gap_near_is_near_no_more() -> None:
    """After hours of silence a value is compared with the whole past, and not with the last minutes."""
    values = np.concatenate((np.random.default_rng(1).normal(50, 1, CALM), np.full(5, 70.0)))
    moments_us = minutes(len(values))
    moments_us[CALM:] += 5 * 60 * MINUTE_US
    _, scores = detector.score_values(state.new_states(1), np.zeros(len(values), np.int64), moments_us, values)
    surprised = np.flatnonzero(scores.surprises[CALM] > 0).tolist()
    assert set(surprised) <= {0, 8, 10}


def test_the_expected_range_holds_nearly_all() -> None:
    """Of three days of noise 97 to 99.5 % lie within what was expected, once anything is."""
    values = np.random.default_rng(1).normal(50, 1, CALM)
    scores = of(values)
    known = ~np.isnan(scores.low)
    assert known[DAY // 4 :].all()
    assert 0.97 <= np.mean((values >= scores.low)[known] & (values <= scores.high)[known]) <= 0.995


def test_whole_numbers_are_no_finer_than_they_are() -> None:
    """A 2 among ones and zeros that was there every other day is no outlier, however sharp the tail of its past."""
    values = np.round(np.random.default_rng(8).normal(0, 0.4, 14 * DAY))
    assert np.abs(values).max() == 2
    assert not of(values).outlier.any()


def test_values_may_come_at_equal_times_and_go_back() -> None:
    """Clocks are put back; no order of moments is a fault."""
    dice = np.random.default_rng(1)
    moments_us = minutes(2_000) + 60 * MINUTE_US * dice.integers(-2, 3, 2_000)
    _, scores = detector.score_values(state.new_states(1), np.zeros(2_000, np.int64), moments_us, dice.random(2_000))
    assert np.isfinite(scores.score).all()


def test_the_largest_numbers_do_no_harm() -> None:
    """Values up to 1e30 beside zeros give scores that are numbers."""
    values = np.where(np.random.default_rng(1).random(3_000) < 0.01, 1e30, 0.0)
    assert np.isfinite(of(values).score).all()


def test_a_warm_up_leaves_nothing_to_compile() -> None:
    """The types are those that values are scored with."""
    detector.warm_up()
    ready = list(step.compile_step().signatures)  # type: ignore[attr-defined]  # numba's dispatcher
    of(np.ones(3))
    assert list(step.compile_step().signatures) == ready  # type: ignore[attr-defined]
    assert len(ready) == 1


def test_a_warm_up_that_fails_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as without numba: a monitor that scores nothing needs none."""

    def fail() -> None:
        raise ImportError("no numba here")

    monkeypatch.setattr(step, "compile_step", fail)
    detector.warm_up()
    with pytest.raises(ImportError, match="no numba here"):
        of(np.ones(3))
