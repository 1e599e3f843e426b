"""Rate of false outliers, on stationary noise and on a healthy pipeline.

One value a minute, all series seeded. Beside it what one would otherwise write down: a value is odd that lies three
deviations off the mean of the last hour, each run of such values counted once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from bench import made_series
from bench.contestant import Json, run
from bench.noises import DAY, NOISES, WEEK, Floats, drawn, minutes
from bench.series_contestants import FAR, ROLLING
from bench.speed import Progress
from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.quantities import Quantity, to_scale

NOISE_SERIES: Final = 20
WEEKS: Final = 4
FIRST_SEED: Final = 1_000
"""Other seeds than those of the tests."""
GOAL_PER_WEEK: Final = 1.0
STATIONARY, PIPELINE = "stationary noise", "a pipeline that is well"


@dataclass(frozen=True, slots=True)
class FalseOutliers:
    """False findings per series: notices per day, outliers per week.

    ``rolling_a_day`` is what a rolling z-score calls odd.
    """

    kind: str
    name: str
    series: int
    weeks: int
    notices_a_day: float
    outliers_a_week: float
    rolling_a_day: float


def measure(scratch: Path, tell: Progress) -> list[FalseOutliers]:
    """Return what was counted.

    Raises:
        ContestantError: the detector failed.
    """
    size = {"series": NOISE_SERIES, "weeks": WEEKS}
    tell(f"noise: {len(NOISES)} kinds, {NOISE_SERIES} series of {WEEKS} weeks each")
    noises = run("bench.noise:noises", scratch, **size).result
    tell("noise: made series of a pipeline")
    pipelines = run("bench.noise:pipelines", scratch, **size).result
    kinds = ((STATIONARY, noises), (PIPELINE, pipelines))
    return [FalseOutliers(kind, name, **size, **counts) for kind, counted in kinds for name, counts in counted.items()]


def noises(folder: Path, series: int, weeks: int) -> Json:
    """Count on each kind of stationary noise."""
    del folder
    seeds = range(FIRST_SEED, FIRST_SEED + series)
    return {name: count_outliers((drawn(name, seed, weeks * WEEK) for seed in seeds), weeks) for name in NOISES}


def pipelines(folder: Path, series: int, weeks: int) -> Json:
    """Count on the series of nodes in which nothing is wrong, judged on the scale of their quantity."""
    del folder
    return {quantity.value: count_outliers(_scaled(quantity, series, weeks), weeks) for quantity in made_series.SERIES}


def _scaled(quantity: Quantity, series: int, weeks: int) -> Iterator[Floats]:
    for seed in range(FIRST_SEED, FIRST_SEED + series):
        node = made_series.node(seed, weeks * WEEK)
        yield to_scale(quantity, made_series.SERIES[quantity](node), node.messages)


def count_outliers(many: Iterator[Floats], weeks: int) -> Json:
    """Return what is called odd of series of so many weeks, each a series, a day or a week."""
    found = [_odd(values) for values in many]
    notices, outliers, rolled = (sum(column) / len(found) / weeks for column in zip(*found, strict=True))
    days = WEEK / DAY
    return {"notices_a_day": notices / days, "outliers_a_week": outliers, "rolling_a_day": rolled / days}


def _odd(values: Floats) -> tuple[int, int, int]:
    """Return how many notices, outliers, and runs of values three deviations off, a series has."""
    moments_us = minutes(len(values))
    _, scores = detector.score_values(state.new_states(1), np.zeros(len(values), np.int64), moments_us, values)
    past = pd.Series(values).shift(1).rolling(ROLLING)
    is_far = ((pd.Series(values) - past.mean()).abs() > FAR * past.std()).to_numpy()
    runs = int((is_far[1:] & ~is_far[:-1]).sum())
    return int(scores.notice.sum()), int(scores.outlier.sum()), runs
