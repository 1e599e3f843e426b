"""Confidence intervals of shares and quantiles, and the number of messages that they need. Pure.

A quantile p is at most a limit exactly if the share of values over the limit is at most 1 - p. That share is binomial,
whatever the distribution of the values; this is the usual distribution-free interval of a quantile by order statistics
(Conover, Practical Nonparametric Statistics, 1999, 3.2). Its interval is Wilson's score interval, which keeps its
confidence also near 0, where the share of a stream that keeps its target lies (Brown, Cai and DasGupta, Interval
Estimation for a Binomial Proportion, 2001).

Messages that follow each other are late together. The share is therefore judged as if there were only as many
independent messages as the spread of its slices allows (the method of batch means: Law, Simulation Modeling and
Analysis, 9.5).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Z: Final = 1.96
"""Quantile of the normal distribution for a confidence of 95 %, two-sided."""
SLICES: Final = 20
"""Slices of a step; each has the same number of messages."""
TAIL_PRECISION: Final = 0.2
"""Half width of the interval of the share above a quantile, relative to that share, with independent messages."""


class Interval(NamedTuple):
    """Ends of an interval, both included."""

    low: float
    high: float


class ShareEstimate(NamedTuple):
    """Share of messages, with its interval."""

    share: float
    interval: Interval


def estimate_share(hits: NDArray[np.bool_]) -> ShareEstimate:
    """Estimate the share of hits among messages in order of their event times; of none nothing is known."""
    count = hits.size
    if not count:
        return ShareEstimate(0.0, Interval(0.0, 1.0))
    share = float(hits.mean())
    return ShareEstimate(share, build_wilson_interval(share, count / measure_inflation(hits)))


def measure_inflation(hits: NDArray[np.bool_]) -> float:
    """Return how many messages count as one independent message, at least 1.

    It is the variance of the shares of the slices over that of slices of independent messages.
    """
    size = hits.size // SLICES
    share = float(hits.mean()) if hits.size else 0.0
    if not size or share in (0.0, 1.0):
        return 1.0
    slices = hits[: size * SLICES].reshape(SLICES, size).mean(axis=1)
    return min(max(1.0, float(slices.var(ddof=1)) * size / (share * (1 - share))), float(size))


def build_wilson_interval(share: float, count: float) -> Interval:
    """Build Wilson's score interval of a share among so many independent messages, more than 0."""
    square = Z * Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = Z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return Interval(max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def estimate_quantile(values: NDArray[np.float64], quantile: float) -> tuple[float, Interval]:
    """Estimate a quantile of values in order of their event times, with its interval by order statistics.

    A message that did not arrive has the value infinity. Without values it is not a number; an end of the interval that
    no order statistic reaches is infinite.
    """
    count = values.size
    if not count:
        return math.nan, Interval(-math.inf, math.inf)
    ordered = np.sort(values)
    found = float(ordered[min(count - 1, math.ceil(quantile * count) - 1)])
    ends = build_wilson_interval(quantile, count / measure_inflation(values > found))
    low, high = math.floor(ends.low * count) - 1, math.ceil(ends.high * count)
    return found, Interval(
        float(ordered[low]) if low >= 0 else -math.inf, float(ordered[high]) if high < count else math.inf
    )


def count_needed_messages(quantile: float) -> int:
    """Return how many messages judge a quantile with :data:`TAIL_PRECISION`: 1,825 of p95, 9,508 of p99."""
    return max(SLICES * 4, math.ceil(round(Z * Z * quantile / (1 - quantile) / TAIL_PRECISION**2, 6)))
