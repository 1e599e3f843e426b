"""Bursts of loss: the seconds of a window in which more messages are missing than chance puts there.

Each run of seconds is tested against the share of the missing that its messages would have if all were lost alike, as
likely causes are; of all runs the likeliest one is a burst. SEMANTICS.md, "Bursts", defines all of it. Method: the scan
statistic of Kulldorff, "A spatial scan statistic", 1997, in one dimension.
"""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.results import SECONDS, LossBurst, SecondCounts

MAX_PROBABILITY: Final = 0.001
"""Probability, over all runs of seconds of a window together, with which chance alone makes a burst; at most."""
MAX_BURSTS: Final = 3
"""Bursts of a node and window that are named, the likeliest first."""
_STARTS, _LENGTHS = np.divmod(np.arange(SECONDS * SECONDS), SECONDS)
_FITS: Final = _STARTS + _LENGTHS < SECONDS
_BY_LENGTH: Final = np.lexsort((_STARTS[_FITS], _LENGTHS[_FITS]))
_RUN_STARTS: Final = _STARTS[_FITS][_BY_LENGTH]
"""First second of each run of seconds: the shortest first, of equal ones the earliest."""
_RUN_ENDS: Final = _RUN_STARTS + _LENGTHS[_FITS][_BY_LENGTH] + 1
"""Second behind each run."""
_MIN_RATIO: Final = 2 * log(len(_RUN_STARTS) / MAX_PROBABILITY)


def find_bursts(counts: SecondCounts | None) -> tuple[LossBurst, ...]:
    """Return the bursts of what is missing at a node in a window, the likeliest first; empty where there is none."""
    bursts: list[LossBurst] = []
    if counts is None:
        return ()
    messages, lost = np.array(counts.messages, np.int64), np.array(counts.lost, np.int64)
    is_taken = np.zeros(SECONDS, np.int64)
    while len(bursts) < MAX_BURSTS:
        left = 1 - is_taken
        ratios = np.where(_sum_runs(is_taken) == 0, _rate_runs(messages * left, lost * left), 0.0)
        best = int(ratios.argmax())
        if ratios[best] <= _MIN_RATIO:
            break
        start, end = int(_RUN_STARTS[best]), int(_RUN_ENDS[best])
        is_taken[start:end] = 1
        inside = int(lost[start:end].sum()), int(messages[start:end].sum())
        others = sum(counts.lost) - inside[0], sum(counts.messages) - inside[1]
        bursts.append(LossBurst(start, end, *inside, *others))
    return tuple(bursts)


def _sum_runs(values: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.concatenate(([0], np.cumsum(values)))
    return np.asarray(sums[_RUN_ENDS] - sums[_RUN_STARTS])


def _rate_runs(messages: NDArray[np.int64], lost: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return twice the log-likelihood ratio of each run's share of the missing; 0 where it has no more than others."""
    total = int(lost.sum())
    share, expected = _sum_runs(lost) / max(1, total), _sum_runs(messages) / max(1, int(messages.sum()))
    more = np.flatnonzero(share > expected)
    share, expected = share[more], expected[more]
    found = share * np.log(share / expected)
    partial = share < 1
    inside, chance = share[partial], expected[partial]
    found[partial] += (1 - inside) * np.log((1 - inside) / (1 - chance))
    ratios = np.zeros(len(_RUN_STARTS))
    ratios[more] = 2 * total * found
    return ratios
