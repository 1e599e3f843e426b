"""Log of arrivals: when each message of the present step reached the receiver first. Pure but for a lock."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray


class ArrivalLog:
    """Log that a receiver writes and the rating reads; one thread may do each."""

    def __init__(self) -> None:
        """Begin without a step: all that arrives counts as stray."""
        self._lock = threading.Lock()
        self._first = 0
        self._arrived_s: NDArray[np.float64] = np.empty(0)
        self._arrived = 0
        self.repeats = 0
        """Messages of this step that arrived once more."""
        self.strays = 0
        """Messages of earlier steps that arrived in this one: late, or repeats."""

    def begin_step(self, first: int, count: int) -> None:
        """Begin a step of so many messages, from place ``first`` on."""
        with self._lock:
            self._first, self._arrived_s, self._arrived = first, np.full(count, np.inf), 0
            self.repeats = self.strays = 0

    def note(self, places: NDArray[np.int64], at_s: float) -> None:
        """Note the arrival of messages at a moment of the monotonic clock."""
        with self._lock:
            own = places - self._first
            own = own[(own >= 0) & (own < self._arrived_s.size)]
            self.strays += places.size - own.size
            once = np.unique(own)
            is_new = np.isinf(self._arrived_s[once])
            new = int(is_new.sum())
            self._arrived += new
            self.repeats += own.size - new
            self._arrived_s[once[is_new]] = at_s

    def copy_arrivals(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Return when each message of a range of the step arrived, on the monotonic clock; infinity if it has not."""
        with self._lock:
            return self._arrived_s[start:stop].copy()

    def count_arrived(self) -> int:
        """Return how many messages of the step have arrived."""
        with self._lock:
            return self._arrived
