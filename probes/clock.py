"""Clock of a probe: wall time for stamps, monotonic time for durations."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Interface of a clock, in ns; tests pass one that is set by hand."""

    def wall_ns(self) -> int:
        """Return the time since 1970 UTC."""

    def monotonic_ns(self) -> int:
        """Return a time that never goes back."""


class SystemClock:
    """Clock of the operating system."""

    # The functions themselves, not methods round them: a stamp costs two such calls.
    wall_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)
