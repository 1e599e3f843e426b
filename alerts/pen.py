"""Who writes to the store beside the job: one at a time, shortly, and only while the store is this monitor's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from monitor.clock import Clock
from monitor.store.dialect import Hold
from monitor.store.dialect.hold import LastingHold

REST_S: Final = 0.02
"""Behind each write, so that the job, which waits for the store, gets it: SQLite serves nobody in turn."""


class Pen:
    """What all carriers of one courier write with."""

    def __init__(self, clock: Clock, hold: Hold | None = None) -> None:
        """Write by the right that ``hold`` gives."""
        self._clock, self._hold, self._lock = clock, hold or LastingHold(), threading.Lock()

    def check(self) -> None:
        """Make sure that the store is still ours: what another monitor has taken on it also delivers.

        Raises:
            StoreTakenError: it is another monitor's.
        """
        self._hold.renew()

    def write(self, work: Callable[[], None]) -> None:
        """Do some work on the store, a short transaction or two, and rest.

        Raises:
            StoreTakenError: the store is another monitor's.
            StoreError: the store fails.
        """
        with self._lock:
            self._hold.renew()
            work()
            self._clock.wait(REST_S)
