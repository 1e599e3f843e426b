"""Made series of a node of a pipeline in which nothing is wrong: messages, lag, losses and duplicates, one a minute.

Traffic has waves of day and week, a level that drifts, and about one burst a day, of minutes to an hour. Lag follows
the load and its own past. A few messages in a million are lost, a few in a thousand come twice, more in a burst. The
shapes and numbers are choices, made once; the detector's constants were not chosen on these series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.noises import DAY, WEEK, Dice, Floats, autoregressive
from hopwatch.monitor.outliers.quantities import Quantity

MESSAGES: Final = 2_000.0
"""A minute, on average."""
LAG_US: Final = 80_000.0
LOSS_RATIO: Final = 3e-6
DUPLICATE_RATIO: Final = 2e-3

_DAILY, _WEEKEND, _DRIFT_A_DAY = 0.6, 0.7, 0.03
_BURSTS_A_DAY, _BURST_MINUTES, _LEAST_BURST, _MOST_BURST = 1.0, 15.0, 1.3, 2.5


@dataclass(frozen=True, slots=True)
class MadeNode:
    """Traffic of a node: messages expected at it, and the factor of a burst."""

    messages: Floats
    bursts: Floats
    dice: Dice


def node(seed: int, minutes: int) -> MadeNode:
    """Return what passes a node in so many minutes from a Monday on."""
    dice = np.random.default_rng(seed)
    minute = np.arange(minutes)
    daily = 1 + _DAILY * np.sin(2 * np.pi * (minute / DAY + dice.random()))
    weekly = np.where(minute % WEEK >= 5 * DAY, _WEEKEND, 1.0)
    drift = np.exp(np.cumsum(dice.normal(scale=_DRIFT_A_DAY / np.sqrt(DAY), size=minutes)))
    bursts = _bursts(dice, minutes)
    return MadeNode(dice.poisson(MESSAGES * daily * weekly * drift * bursts).astype(np.float64), bursts, dice)


def _bursts(dice: Dice, minutes: int) -> Floats:
    factors = np.ones(minutes)
    for start in np.flatnonzero(dice.random(minutes) < _BURSTS_A_DAY / DAY).tolist():
        length = 1 + int(dice.exponential(_BURST_MINUTES))
        factors[start : start + length] *= dice.uniform(_LEAST_BURST, _MOST_BURST)
    return factors


def _lag(of: MadeNode) -> Floats:
    load = of.messages / MESSAGES
    noise = 0.05 * autoregressive(of.dice, len(load), 0.9) + 0.1 * of.dice.normal(size=len(load))
    return np.round(LAG_US * (1 + 0.3 * load**2) * np.exp(noise))


def _losses(of: MadeNode) -> Floats:
    lost = of.dice.binomial(of.messages.astype(np.int64), LOSS_RATIO)
    return np.asarray(lost / np.maximum(of.messages, 1), np.float64)


def _duplicates(of: MadeNode) -> Floats:
    return of.dice.poisson(DUPLICATE_RATIO * of.messages * of.bursts**2).astype(np.float64)


SERIES: Final[dict[Quantity, Callable[[MadeNode], Floats]]] = {
    Quantity.LAG_IN_P95_US: _lag,
    Quantity.LOSS_RATIO: _losses,
    Quantity.MESSAGES: lambda of: of.messages,
    Quantity.DUPLICATES: _duplicates,
}
"""How the series of each quantity is made, each in its own unit."""
