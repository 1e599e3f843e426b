"""Pace of a sender: so many messages a second, evenly."""

from __future__ import annotations

from typing import Final

MAX_BEHIND_S: Final = 0.2
"""Time that a sender may catch up with at once: what it missed beyond that it does not send in one burst."""


class Pace:
    """Schedule of messages at a steady rate; times are in s and never go back."""

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        """Set the rate; the first message is due now."""
        self._step_s = 1.0 / rate_per_s
        self._next_s = now_s

    def take_due(self, now_s: float, most: int) -> int:
        """Return how many messages are due, ``most`` at most, and count them as sent."""
        self._next_s = max(self._next_s, now_s - MAX_BEHIND_S)
        if now_s < self._next_s:
            return 0
        due = min(most, int((now_s - self._next_s) / self._step_s) + 1)
        self._next_s += due * self._step_s
        return due

    def remaining_s(self, now_s: float) -> float:
        """Return the time until the next message is due."""
        return max(0.0, self._next_s - now_s)
