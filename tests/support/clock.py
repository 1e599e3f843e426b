"""A clock that moves only when it is told to."""

from __future__ import annotations

import threading


class ManualClock:
    """A monitor.clock.Clock for tests: waiting takes no time, and moves it on."""

    def __init__(self, now_us: int = 0) -> None:
        """Start at a moment, µs since 1970 UTC."""
        self._now_us = now_us

    def now_us(self) -> int:
        """Return the moment that was set."""
        return self._now_us

    def monotonic_s(self) -> float:
        """Return the same moment in seconds."""
        return self._now_us / 1e6

    def wait(self, seconds: float, until: threading.Event | None = None) -> bool:
        """Move on by that much, unless the event is set already; return whether it is."""
        is_set = until is not None and until.is_set()
        if not is_set:
            self.advance(seconds)
        return is_set

    def advance(self, seconds: float) -> None:
        """Move on."""
        self._now_us += round(seconds * 1e6)
