"""Count of the messages of a step that are later than a bound; each is looked at once. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


class LateCounter:
    """Counter of late messages of a step that is under way: the cost of a look goes by what is new."""

    def __init__(self, due_s: NDArray[np.float64], limit_s: float) -> None:
        """Take when each message is due, ascending, and the bound of its lag, in seconds."""
        self._due_s, self._limit_s = due_s, limit_s
        self._judged = self._late = 0

    def count_late(self, passed_s: float, read_arrivals: Callable[[int, int], NDArray[np.float64]]) -> int:
        """Return how many messages are late ``passed_s`` after the beginning, arrived or not.

        ``read_arrivals`` returns when the messages of a range of places arrived, on the same clock as ``due_s``;
        infinity for one that has not. Moments do not go back from call to call.
        """
        until = int(np.searchsorted(self._due_s, passed_s - self._limit_s))
        if until > self._judged:
            lags_s = read_arrivals(self._judged, until) - self._due_s[self._judged : until]
            self._late += int((lags_s > self._limit_s).sum())
            self._judged = until
        return self._late
