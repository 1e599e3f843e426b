"""Named distributions that are hard on a quantile sketch, and the measure that it is held to: the error in rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], NDArray[np.int64] | NDArray[np.float64]]

FAR: Final = 2.0**61


def two_peaks(low_share: float) -> Draw:
    """Return two peaks 31 years apart, the given share of all values in the lower one, to the value."""

    def draw(n: int, dice: np.random.Generator) -> NDArray[np.float64]:
        low = round(n * low_share)
        return np.concatenate((dice.normal(1e4, 1e3, low), dice.normal(1e15, 1e6, n - low)))

    return draw


def three_hosts(n: int, dice: np.random.Generator) -> NDArray[np.float64]:
    """Return a fast host, a slow one and one all over the place, in equal parts."""
    medians, widths = np.array([7.0, 10.0, 8.0]), np.array([0.5, 0.5, 2.0])
    host = dice.integers(0, 3, n)
    return np.exp(dice.normal(medians[host], widths[host]))


DISTRIBUTIONS: Final[dict[str, Draw]] = {
    "constant": lambda n, _: np.full(n, 7_000_000),
    "two-valued, even": lambda n, dice: np.where(dice.random(n) < 0.5, 10, 10_000_000),
    "two-valued, 95 to 5": lambda n, dice: np.where(dice.random(n) < 0.95, 10, 10_000_000),
    "two peaks, even": two_peaks(0.5),
    "two peaks, parted under p50": two_peaks(0.493),
    "two peaks, parted over p50": two_peaks(0.507),
    "two peaks, parted under p95": two_peaks(0.9475),
    "two peaks, parted over p95": two_peaks(0.953),
    "two peaks, parted well over p95": two_peaks(0.956),
    "two peaks, parted under p99": two_peaks(0.9885),
    "two peaks, parted over p99": two_peaks(0.993),
    "uniform, both signs": lambda n, dice: dice.integers(-(10**6), 10**6, n),
    "negative": lambda n, dice: -dice.lognormal(9, 2, n),
    "lognormal": lambda n, dice: dice.lognormal(9, 2, n),
    "lognormal, whole ms": lambda n, dice: np.round(dice.lognormal(9, 2, n), -3),
    "pareto, no mean": lambda n, dice: np.minimum(1e3 * (1 + dice.pareto(0.5, n)), FAR),
    "cauchy": lambda n, dice: np.clip(dice.standard_cauchy(n) * 1e4, -FAR, FAR),
    "powers of two": lambda n, dice: np.floor(2.0 ** dice.uniform(0, 60, n)),
    "sorted": lambda n, _: np.arange(n),
    "reversed": lambda n, _: np.arange(n)[::-1],
    "mostly ties": lambda n, dice: np.where(dice.random(n) < 0.9, 0, dice.integers(-(10**6), 10**6, n)),
    "ties up to p94.5": lambda n, dice: np.where(dice.random(n) < 0.945, 0, 1e3 * (1 + dice.pareto(1, n))),
    "stairs": lambda n, dice: (
        dice.integers(0, 30, n) ** 6 * 1_000 + dice.integers(0, 1_000, n) * (dice.random(n) < 0.3)
    ),
    "three hosts": three_hosts,
    "extremes": lambda n, dice: dice.integers(-(2**62), 2**62, n),
    "close to 2**62": lambda n, dice: 2**62 - dice.integers(0, 10**6, n),
}


def drawn(name: str, n: int, seed: int = 0) -> Values:
    """Return ``n`` values of the named distribution, int64, the same for the same seed."""
    dice = np.random.default_rng([seed, n, *name.encode()])
    return np.ascontiguousarray(DISTRIBUTIONS[name](n, dice), dtype=np.int64)


def rank_errors(values: Values, answers: NDArray[np.float64], qs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much each answer misses its rank; shape of ``qs``.

    An answer x is right for q when q lies in [P(X < x), P(X <= x)], and else off by the distance to that interval.
    Values are compared as floats, which is how a digest answers.
    """
    ordered = np.sort(values).astype(np.float64)
    below = np.searchsorted(ordered, answers, side="left") / ordered.size
    upto = np.searchsorted(ordered, answers, side="right") / ordered.size
    return np.maximum(0, np.maximum(below - qs, qs - upto))
