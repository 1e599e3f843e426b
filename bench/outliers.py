"""Cost of an outlier detector: a point of one series in batch, a minute of many series, and its memory.

The peers are two detectors that people take from PyPI, with their own defaults and the newest eight values of a series
as features. They are too slow for all series: a minute is timed with fewer and multiplied.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.contestant import Json, run
from bench.speed import Progress
from bench.truth import WrongResultError
from hopwatch.monitor.outliers import detector, state

SERIES: Final = 100_000
POINTS: Final = 100_000
ROUNDS: Final = 5
GOAL_POINT_US: Final = 40.0
GOAL_MINUTE_S: Final = 60.0
GOAL_BYTES: Final = 8_192

PEER_SERIES: Final = 50
PEER_POINTS: Final = 3_000
WIDTH: Final = 8
PAST: Final = 1_440
REFIT: Final = 60
WARMING: Final = 300
"""River's trees say nothing of the first 250 points."""

_MINUTE_US: Final = 60_000_000
_EVENT: Final = 100.0
HIGH: Final = 0.75

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Detector:
    """Cost of a detector: µs per point in batch, seconds for a minute of all series, bytes of memory per series."""

    who: str
    includes: str
    point_us: float
    minute_s: float
    state_bytes: float
    timed_series: int


def measure(scratch: Path, tell: Progress) -> list[Detector]:
    """Return what was measured; each has to find the one value that is far from all others.

    Raises:
        ContestantError: one failed, or found nothing.
    """
    found = []
    for who, function, includes in (
        ("Hopwatch", "ours", "25 views, tails, episodes, expected range, reasons"),
        ("river HalfSpaceTrees", "half_space_trees", "10 trees of height 8, scaled by minimum and maximum so far"),
        ("scikit-learn IsolationForest", "isolation_forest", "100 trees, fitted anew every hour to the last day"),
    ):
        tell(f"outliers: {who}")
        told = run(f"bench.outliers:{function}", scratch).result
        found.append(Detector(who, includes, **told))
    return found


def ours(folder: Path, series: int = SERIES, points: int = POINTS) -> Json:
    """Score one long series, then minutes of many."""
    del folder
    values, rows = walk(points), np.zeros(points, np.int64)
    moments_us = _MINUTE_US * np.arange(points)
    batch_s = _timed(lambda: detector.score_values(state.new_states(1), rows, moments_us, values))
    grown, scores = detector.score_values(state.new_states(1), rows, moments_us, values)
    _check("Hopwatch", np.nan_to_num(scores.score))
    # All series are as old as this one.
    many, all_rows, dice = np.repeat(grown, series), np.arange(series), np.random.default_rng(1)
    minutes_s = []
    for minute in range(points, points + ROUNDS + 1):
        now = dice.normal(size=series)
        began_s = time.perf_counter()
        many, _ = detector.score_values(many, all_rows, np.full(series, minute * _MINUTE_US), now)
        minutes_s.append(time.perf_counter() - began_s)
    return {
        "point_us": batch_s / points * 1e6,
        "minute_s": median(minutes_s[1:]),
        "state_bytes": state.STATE.itemsize,
        "timed_series": series,
    }


def half_space_trees(folder: Path, series: int = PEER_SERIES, points: int = PEER_POINTS) -> Json:
    """Let river learn and score one point after the other."""
    from river import anomaly, compose, preprocessing  # noqa: PLC0415 - two seconds, and of use here alone

    del folder

    def made() -> Any:  # noqa: ANN401 - river has no types
        return compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=1))

    def scored(model: Any, window: Floats) -> float:  # noqa: ANN401 - river has no types
        features = dict(enumerate(window.tolist()))
        score = model.score_one(features)
        model.learn_one(features)
        return float(score)

    windows = _windows(walk(points))
    batch_s = _timed(lambda: [scored(model, window) for model in [made()] for window in windows])
    model = made()
    _check("HalfSpaceTrees", np.array([scored(model, window) for window in windows]))
    models = [made() for _ in range(series)]
    for one in models:
        for window in windows[:WARMING]:
            scored(one, window)
    minute_s = _timed(lambda: [scored(one, windows[-1]) for one in models])
    return _peer(batch_s / len(windows), minute_s, series, len(pickle.dumps(model)))


def isolation_forest(folder: Path, series: int = PEER_SERIES, points: int = PEER_POINTS) -> Json:
    """Fit a forest every hour to the last day, and score the hour."""
    from sklearn.ensemble import IsolationForest  # noqa: PLC0415 - slow to import, and of use here alone

    del folder
    windows = _windows(walk(points))

    def scored() -> Floats:
        scores = [
            -IsolationForest(random_state=1).fit(windows[at - PAST : at]).score_samples(windows[at : at + REFIT])
            for at in range(PAST, len(windows), REFIT)
        ]
        return np.concatenate(scores)

    batch_s = _timed(scored)
    _check("IsolationForest", scored())
    forest = IsolationForest(random_state=1).fit(windows[:PAST])
    fit_s = _timed(lambda: IsolationForest(random_state=1).fit(windows[:PAST]))
    score_s = _timed(lambda: [forest.score_samples(windows[at : at + 1]) for at in range(series)])
    # In each minute one series in sixty is fitted anew.
    minute_s = score_s + fit_s * series / REFIT
    return _peer(batch_s / (len(windows) - PAST), minute_s, series, len(pickle.dumps(forest)) + windows[:PAST].nbytes)


def walk(points: int) -> Floats:
    """Return noise around a daily wave, and an event near its end."""
    daily = np.sin(2 * np.pi * np.arange(points) / 1_440)
    values = 10 * daily + np.random.default_rng(7).normal(size=points)
    values[-10] += _EVENT
    return values


def _windows(values: Floats) -> Floats:
    return np.lib.stride_tricks.sliding_window_view(values, WIDTH).copy()


def _timed(work: Callable[[], object]) -> float:
    """Return the median of all rounds in seconds, after one to warm up."""
    spans_s = []
    for _ in range(ROUNDS + 1):
        began_s = time.perf_counter()
        work()
        spans_s.append(time.perf_counter() - began_s)
    return median(spans_s[1:])


def _peer(point_s: float, minute_s: float, series: int, state_bytes: int) -> Json:
    return {
        "point_us": point_s * 1e6,
        "minute_s": minute_s / series * SERIES,
        "state_bytes": state_bytes,
        "timed_series": series,
    }


def _check(who: str, scores: Floats) -> None:
    """Hold a detector to its word: the event scores higher than most of the rest.

    Raises:
        WrongResultError: it does not.
    """
    event = scores[-10 - WIDTH :].max()
    if not event >= np.quantile(scores, HIGH):
        raise WrongResultError(f"{who} gave the event {event:.4g}, below its {HIGH:.0%} quantile")
