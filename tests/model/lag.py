"""Exact quantiles: what the digests are held to."""

from collections.abc import Sequence
from typing import TypedDict


class Quantiles(TypedDict):
    """Q of INTERFACE.md; everything but the count is in µs."""

    count: int
    min: int
    p50: int
    p95: int
    p99: int
    max: int


def quantile(lags_us: Sequence[int], percent: int) -> int:
    """Give the smallest lag that at least `percent` % of the lags (at least one) are not above."""
    ranked = sorted(lags_us)
    return ranked[-(-percent * len(ranked) // 100) - 1]


def quantiles(lags_us: Sequence[int]) -> Quantiles | None:
    """Give Q of the lags, None without any."""
    if not lags_us:
        return None
    p50, p95, p99 = (quantile(lags_us, percent) for percent in (50, 95, 99))
    return {"count": len(lags_us), "min": min(lags_us), "p50": p50, "p95": p95, "p99": p99, "max": max(lags_us)}


def rank_interval(lags_us: Sequence[int], value_us: float) -> tuple[float, float]:
    """Give the shares of the lags that are below a value and that are not above it.

    A value that stands for the p-quantile is off in rank by how far p is from this interval.
    """
    below = sum(lag < value_us for lag in lags_us)
    not_above = sum(lag <= value_us for lag in lags_us)
    return below / len(lags_us), not_above / len(lags_us)
