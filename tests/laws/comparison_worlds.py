"""Worlds in which a candidate loses a known share more than its baseline, minute by minute."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from hopwatch.monitor.kernel.comparison import WindowShares

CANDIDATE_SHARES = (0.01, 0.05, 0.1, 0.5)
BASELINE_LOSSES = (0.0, 1e-4, 1e-3, 1e-2, 5e-2)


def make_windows(seed: int, more: float, cluster: int) -> list[WindowShares]:
    """Make five to sixty minutes of thirty to ten thousand messages.

    A candidate with a part of them that may grow loses ``more`` than the others. So many are lost together, and there
    are worlds in which every tenth minute has an outage that loses messages of both.
    """
    random = np.random.default_rng(seed)
    minutes, messages = int(random.integers(5, 61)), 10 ** random.uniform(1.5, 4)
    part, loss = random.choice(CANDIDATE_SHARES), random.choice(BASELINE_LOSSES)
    is_growing, has_outages = random.random() < 0.3, random.random() < 0.3
    windows = []
    for minute in range(minutes):
        own = part * (minute + 1) / minutes if is_growing else part
        sizes = [int(random.poisson(messages * share)) for share in (own, 1 - own)]
        outage = random.uniform(0.05, 0.6) if has_outages and random.random() < 0.1 else 0.0
        lost = [
            _lose(random, size, rate, cluster, outage) for size, rate in zip(sizes, (loss + more, loss), strict=True)
        ]
        windows.append(WindowShares(lost[0], sizes[0], lost[1], sizes[1]))
    return windows


def _lose(random: Generator, messages: int, rate: float, cluster: int, outage: float) -> int:
    together = int(random.poisson(messages * rate / cluster)) * cluster
    return min(messages, together + int(random.binomial(messages, outage)))
