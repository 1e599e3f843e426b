"""Who writes to the store beside the job: one at a time, shortly, and only while the store is this monitor's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from sqlalchemy import Engine

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.dialect.lock import MemoryLock

REST_S: Final = 0.02
"""Behind each write, so that the job, which waits for the store, gets it: SQLite serves nobody in turn."""


class Pen:
    """What all carriers of one courier write with."""

    def __init__(self, engine: Engine, clock: Clock, hold: StoreLock | None = None) -> None:
        """Write to the store of ``engine``, by the right that ``hold`` gives."""
        self._url, self._clock, self._hold = engine.url, clock, hold or MemoryLock()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Make sure that the store is still ours: who has taken it delivers what is in it.

        Raises:
            StoreTakenError: it is another monitor's.
            StoreError: the store fails.
        """
        with dialect.translate_errors(self._url):
            self._hold.renew()

    def write(self, work: Callable[[], None]) -> None:
        """Do some work on the store, a short transaction or two, and rest.

        Raises:
            StoreTakenError: the store is another monitor's.
            StoreError: the store fails.
        """
        with self._lock:
            self.check()
            work()
            self._clock.wait(REST_S)
