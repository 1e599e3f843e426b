"""Waiting before a process is started again; pure."""

from __future__ import annotations

from typing import Final

STEADY_S: Final = 10.0
"""A process that ran for so long has not died at once."""
FIRST_WAIT_S: Final = 1.0
MAX_WAIT_S: Final = 60.0
MAX_DOUBLINGS: Final = 10
"""2 to the power of this is beyond the longest wait; more would only make large numbers."""


def restart_wait_s(early_ends: int) -> float:
    """Return the wait before the next start, after so many early ends in a row: none, then 1 s, doubled each time."""
    if early_ends == 0:
        return 0.0
    return min(FIRST_WAIT_S * 2.0 ** min(early_ends - 1, MAX_DOUBLINGS), MAX_WAIT_S)


def count_early_ends(before: int, ran_s: float) -> int:
    """Return the number of early ends in a row, after a process has ended that ran for so long."""
    return before + 1 if ran_s < STEADY_S else 0
