"""Clock of the monitor: code that needs the time gets a clock as an argument."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Source of time for the monitor."""

    def now_us(self) -> int:
        """Return the wall clock, µs since 1970 UTC; it may jump."""

    def monotonic_s(self) -> float:
        """Return seconds since some moment; they only ever grow."""

    def wait(self, seconds: float, until: threading.Event | None = None) -> bool:
        """Wait that long, or until the event is set; return whether it is set."""


class SystemClock:
    """The clock of this machine."""

    def now_us(self) -> int:
        """Return the wall clock, µs since 1970 UTC."""
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:
        """Return seconds since the machine started, or some other fixed moment."""
        return time.monotonic()

    def wait(self, seconds: float, until: threading.Event | None = None) -> bool:
        """Wait that long, or until the event is set; return whether it is set."""
        return (until or threading.Event()).wait(seconds)
