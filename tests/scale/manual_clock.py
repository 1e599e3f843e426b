"""Clock that a test moves."""

from __future__ import annotations


class ManualClock:
    """Monotonic seconds, as a test sets them."""

    def __init__(self) -> None:
        """Start at 0."""
        self.at_s = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.at_s

    def move(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.at_s += seconds
