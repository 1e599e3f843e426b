"""Lock for writes to the store beside the job: one at a time, short, and only while this monitor holds the store."""

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
"""Pause after each write, so that a waiting job gets the store: SQLite has no queue of writers."""


class StoreWriter:
    """Lock that the workers of one dispatcher share."""

    def __init__(self, engine: Engine, clock: Clock, hold: StoreLock | None = None) -> None:
        """Write to the store of ``engine``, by the right that ``hold`` gives."""
        self._url, self._clock, self._hold = engine.url, clock, hold or MemoryLock()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Check that this monitor still holds the store: another that has taken it delivers its outbox.

        Raises:
            StoreTakenError: it is another monitor's.
            StoreError: the store fails.
        """
        with dialect.translate_errors(self._url):
            self._hold.renew()

    def write(self, work: Callable[[], None]) -> None:
        """Run some work on the store, a short transaction or two, and pause.

        Raises:
            StoreTakenError: the store is another monitor's.
            StoreError: the store fails.
        """
        with self._lock:
            self.check()
            work()
            self._clock.wait(REST_S)
