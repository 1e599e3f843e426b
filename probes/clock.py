"""The one object through which time enters a probe."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A wall clock for stamps and a monotonic one for spans, both in ns."""

    def wall_ns(self) -> int:
        """Return the time since 1970 UTC."""

    def monotonic_ns(self) -> int:
        """Return a time that never goes back."""


class SystemClock:
    """The clock of this machine."""

    # The functions themselves, not methods round them: a stamp costs two such calls.
    wall_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)
