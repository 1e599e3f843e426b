"""A clock of seconds that pass when a test says so."""

from __future__ import annotations


class HandClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        """Start at 0."""
        self.s = 0.0

    def __call__(self) -> float:
        """Return the moment."""
        return self.s
