"""Named kinds of stationary noise, one value a minute, that a detector should stay calm about; seeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dice = np.random.Generator

MINUTE_US: Final = 60_000_000
DAY: Final = 1_440
WEEK: Final = 7 * DAY
MONDAY_US: Final = 1_767_571_200_000_000


def _daily(count: int) -> Floats:
    return np.sin(2 * np.pi * np.arange(count) / DAY)


def autoregressive(dice: Dice, count: int, memory: float) -> Floats:
    """Return values each of which is so much of the one before, and a push."""
    value, values = 0.0, np.empty(count)
    for place, push in enumerate(dice.normal(size=count).tolist()):
        value = memory * value + push
        values[place] = value
    return values


NOISES: Final[dict[str, Callable[[Dice, int], Floats]]] = {
    "normal": lambda dice, n: dice.normal(50, 3, n),
    "uniform": lambda dice, n: dice.random(n),
    "exponential": lambda dice, n: dice.exponential(1, n),
    "lognormal": lambda dice, n: dice.lognormal(3, 0.6, n),
    "heavy tail, Student's t of 3": lambda dice, n: dice.standard_t(3, n),
    "heavy tail, Pareto of 2.5": lambda dice, n: dice.pareto(2.5, n),
    "two peaks": lambda dice, n: 10 * dice.binomial(1, 0.3, n) + dice.normal(0, 1, n),
    "Poisson counts of 3": lambda dice, n: dice.poisson(3, n).astype(np.float64),
    "logarithm of Poisson counts of 40": lambda dice, n: np.log1p(dice.poisson(40, n)),
    "logarithm of gamma lags": lambda dice, n: np.log1p(1e5 * dice.gamma(2, 1, n)),
    "rare events": lambda dice, n: dice.binomial(1, 0.003, n).astype(np.float64),
    "coarsely rounded": lambda dice, n: np.round(dice.normal(0, 0.4, n)),
    "autoregressive, 0.9": lambda dice, n: autoregressive(dice, n, 0.9),
    "autoregressive, 0.99": lambda dice, n: autoregressive(dice, n, 0.99),
    "daily sine": lambda dice, n: 10 * _daily(n) + dice.normal(0, 1, n),
    "daily sine with its noise": lambda dice, n: (2 + _daily(n)) * (10 + dice.normal(0, 1, n)),
    "logarithm of daily counts": lambda dice, n: np.log1p(dice.poisson(1_000 * (1.2 + _daily(n)))),
    "constant": lambda _, n: np.full(n, 5.0),
}


def minutes(count: int) -> NDArray[np.int64]:
    """Return so many minutes in µs, from a Monday on."""
    return MONDAY_US + MINUTE_US * np.arange(count)


def drawn(name: str, seed: int, count: int) -> Floats:
    """Return so many values of the noise of that name."""
    return np.asarray(NOISES[name](np.random.default_rng(seed), count), np.float64)
