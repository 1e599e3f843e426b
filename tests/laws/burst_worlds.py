"""Worlds in which messages are lost from one second to another, or evenly: counts by second of a node in a window."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopwatch.monitor.results import SECONDS, SecondCounts

MIN_LOST_PER_SECOND: Final = 4
"""Messages that a burst loses in a second, about: with fewer, nothing tells its first second."""
MIN_FACTOR: Final = 3
"""Times as many messages are missing in the seconds of a burst as in others, at least."""
STRENGTHS: Final = (1.0, 2.0, 5.0, 1_000.0)
"""Times as much as the least that a burst loses; at most all."""


class BurstWorld(NamedTuple):
    """The counts of a node, and from which second up to which messages are lost for a cause; None if for none."""

    counts: SecondCounts
    burst: tuple[int, int] | None


def make_world(seed: int, *, has_burst: bool) -> BurstWorld:
    """Make a world: even, growing or jumpy traffic, lost with one probability, and some of it by a burst."""
    random = np.random.default_rng(seed)
    messages = _draw_traffic(random)
    background = float(random.choice((0.0, 0.0005, 0.002, 0.01, 0.05)))
    lost = random.binomial(messages, background)
    if not has_burst:
        return BurstWorld(_build_counts(messages, lost), None)
    start = int(random.integers(0, SECONDS - 4))
    end = SECONDS if random.random() < 0.3 else int(random.integers(start + 3, min(SECONDS, start + 40) + 1))
    least = max(MIN_FACTOR * background, MIN_LOST_PER_SECOND / messages[start:end].mean())
    hit = random.binomial(messages[start:end] - lost[start:end], min(1.0, least * float(random.choice(STRENGTHS))))
    lost[start:end] += hit
    return BurstWorld(_build_counts(messages, lost), (start, end))


def _draw_traffic(random: Generator) -> NDArray[np.int64]:
    rate = random.uniform(80, 500)
    shape = random.choice(("even", "growing", "jumpy", "beat"))
    by_second = np.full(SECONDS, rate)
    if shape == "growing":
        by_second *= np.linspace(0.3, 1.7, SECONDS)
    elif shape == "jumpy":
        by_second *= random.gamma(2.0, 0.5, SECONDS)
    elif shape == "beat":
        by_second *= np.where(np.arange(SECONDS) % 10 < 5, 0.2, 1.8)
    return random.poisson(by_second).astype(np.int64)


def _build_counts(messages: NDArray[np.int64], lost: NDArray[np.int64]) -> SecondCounts:
    return SecondCounts(tuple(messages.tolist()), tuple(lost.tolist()))
