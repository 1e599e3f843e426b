"""The detector: values and memory in, scores and memory out; the same in a stream, in a batch and over a file.

A value is compared with nothing but what its series was before. Where it stands among the others of a call, and how
many follow, changes nothing: series are apart, and each is read in order.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.outliers import step
from hopwatch.monitor.outliers.state import VIEW_COUNT, States, new_states

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NOTICE: Final = step.NOTICE
OUTLIER: Final = step.OUTLIER


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of values, one row per value.

    ``score``: how rare, in decades; NaN for a gap; below half of ``NOTICE`` while an episode goes on that has been
    told. ``notice``, ``outlier``: here an episode begins; here it becomes one that deserves attention. ``since_us``:
    when the episode that a value is part of began, 0 outside of one. ``low``, ``high``: the range that was expected,
    on the scale of the values; NaN while the series is young. ``surprises``: of each view, shape (n, 25).
    """

    score: Floats
    notice: Bools
    outlier: Bools
    since_us: Ints
    low: Floats
    high: Floats
    surprises: NDArray[np.float32]


def is_episode_ongoing(states: States) -> Bools:
    """Return of each series whether the episode that began last still goes on."""
    cool = np.clip((step.COOL_SHARE * states["seen"]).astype(np.int64), step.MIN_COOL, step.MAX_COOL)
    return np.asarray(states["quiet"] <= cool)


class DetectorError(ValueError):
    """Arrays that do not belong together."""


def score_values(states: States, rows: Ints, moments_us: Ints, values: Floats) -> tuple[States, Scores]:
    """Return the memory and the scores after each value has entered the series of its row, in order.

    ``states``, see :func:`monitor.outliers.state.new_states`, stays as it is. ``rows``, ``moments_us`` and ``values``
    have shape (n,): a window of many series, many windows of one, or both mixed. ``values`` are on the scale of
    :func:`monitor.outliers.quantities.to_scale`; one that is not finite is a gap, from which nothing is learnt.

    Raises:
        DetectorError: the arrays differ in length, or a row is none of ``states``.
    """
    after = states.copy()
    return after, score_in_place(after, rows, moments_us, values)


def score_in_place(states: States, rows: Ints, moments_us: Ints, values: Floats) -> Scores:
    """Score values as :func:`score_values` does, but update ``states`` in place, without a copy.

    Raises:
        DetectorError: as :func:`score_values` does; ``states`` are as they were.
    """
    if not len(rows) == len(moments_us) == len(values):
        lengths = f"{len(rows)}, {len(moments_us)} and {len(values)}"
        raise DetectorError(f"Rows, moments and values are as many of each; got {lengths}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(states)):
        raise DetectorError(f"Rows are from 0 to {len(states) - 1}; got {rows.min()} to {rows.max()}.")
    count = len(values)
    score, expected = np.empty(count), np.empty((count, 2))
    marks, since_us = np.empty(count, np.uint8), np.empty(count, np.int64)
    surprises = np.empty((count, VIEW_COUNT), np.float32)
    step.compile_step()(
        states.view(np.recarray),
        np.ascontiguousarray(rows, np.int64),
        np.ascontiguousarray(moments_us, np.int64),
        np.ascontiguousarray(values, np.float64),
        score,
        marks,
        since_us,
        expected,
        surprises,
    )
    notice, outlier = (marks & step.EPISODE_BEGAN) > 0, (marks & step.OUTLIER_BEGAN) > 0
    return Scores(score, notice, outlier, since_us, expected[:, 0], expected[:, 1], surprises)


def warm_up() -> None:
    """Compile the detector, or read it from disk, as the first value would; of what fails whoever scores is told."""
    none = np.zeros(0, np.int64)
    with suppress(Exception):
        score_in_place(new_states(0), none, none, np.zeros(0))
