"""Growth of a lag during a step: a backlog that grows at a rate that the stream cannot take for long. Pure.

At a constant arrival rate λ above the capacity μ, messages leave at μ, and the lag by event time grows by λ/μ - 1
seconds a second. A short step may keep its target all the same; so the growth is looked for by itself.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.rate.intervals import SLICES

MIN_SLOPE: Final = 0.01
"""Growth in seconds a second from which a lag grows: the stream takes less than 99 % of what is offered."""
Z: Final = 3.09
"""Quantile of the normal distribution for a one-sided error of 0.1 %: slices near saturation are not independent."""


class LagGrowth(NamedTuple):
    """Slope of a lag in seconds a second, and whether it grows."""

    slope: float
    is_growing: bool


def find_growth(due_s: NDArray[np.float64], lags_s: NDArray[np.float64]) -> LagGrowth:
    """Find the growth of a lag, by messages in order of their event times; those that did not arrive are left out.

    The medians of the slices are tested for a trend by Mann and Kendall, and its slope is Theil and Sen's, both of
    which no single slow moment can turn.
    """
    arrived = np.isfinite(lags_s)
    when, lags = due_s[arrived], lags_s[arrived]
    size = lags.size // SLICES
    if not size:
        return LagGrowth(0.0, is_growing=False)
    middles = np.median(lags[: size * SLICES].reshape(SLICES, size), axis=1)
    moments = np.median(when[: size * SLICES].reshape(SLICES, size), axis=1)
    later, earlier = np.tril_indices(SLICES, -1)
    rises, passed = middles[later] - middles[earlier], moments[later] - moments[earlier]
    known = passed > 0
    if not known.any():
        return LagGrowth(0.0, is_growing=False)
    slope = float(np.median(rises[known] / passed[known]))
    score = float(np.sign(rises).sum())
    spread = math.sqrt(SLICES * (SLICES - 1) * (2 * SLICES + 5) / 18)
    return LagGrowth(slope, is_growing=slope >= MIN_SLOPE and (score - 1) / spread >= Z)
