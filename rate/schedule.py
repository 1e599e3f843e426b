"""Schedule of an open-loop load: when each message is due, and in which request it goes. Pure.

A message's event time is when it is due, whether the stream keeps up or not: what waits for a slow stream counts as lag
(no coordinated omission; Tene, How NOT to Measure Latency).
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Arrivals(StrEnum):
    """Distribution of the spans between messages."""

    CONSTANT = "constant"
    POISSON = "poisson"


def build_due_s(rate_per_s: float, count: int, arrivals: Arrivals, random: np.random.Generator) -> NDArray[np.float64]:
    """Build the moments at which messages are due, in seconds after the start, in order."""
    if arrivals is Arrivals.CONSTANT:
        return np.arange(count) / rate_per_s
    return np.cumsum(random.exponential(1 / rate_per_s, count))


def group_requests(
    due_s: NDArray[np.float64], batch: int, linger_s: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where each request begins, with one more place for the end, and when it is sent.

    A request is sent when its batch is full, or its first message has been due for the linger, whichever is earlier.
    """
    starts, sent_s, place = [0], [], 0
    last_due = np.searchsorted(due_s, due_s + linger_s, "right")
    while place < due_s.size:
        end = min(place + batch, int(last_due[place]))
        sent_s.append(due_s[end - 1] if end - place == batch else due_s[place] + linger_s)
        starts.append(end)
        place = end
    return np.array(starts, np.int64), np.array(sent_s, np.float64)
