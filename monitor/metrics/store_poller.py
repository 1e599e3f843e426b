"""Poller of the store for metrics: a thread of its own, so that neither job nor scrapes wait for the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.metrics.snapshot import StoreSnapshot
from hopwatch.probes.once_per_cause import OncePerCause

POLL_EVERY_S: Final = 15.0
"""As often as Prometheus commonly scrapes."""

_log = structlog.get_logger("hopwatch")


@dataclass(slots=True)
class StorePoller:
    """A thread that reads figures again and again, and hands them on; none where they could not be read."""

    read: Callable[[], StoreSnapshot]
    take: Callable[[StoreSnapshot | None], None]
    clock: Clock
    _stop: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self) -> None:
        """Read from now on."""
        threading.Thread(target=self.run, name="metrics-of-the-store", daemon=True).start()

    def run(self) -> None:
        """Read until it is stopped, at once and then every ``EVERY_S``."""
        logged = OncePerCause()
        while True:
            figures, why = self._try()
            self.take(figures)
            if not why:
                logged.rearm()
            elif logged.is_new():
                _log.warning("the store cannot be read for metrics", why=why)
            if self.clock.wait(POLL_EVERY_S, self._stop):
                return

    def stop(self) -> None:
        """Read no more; what is being read now ends by itself."""
        self._stop.set()

    def _try(self) -> tuple[StoreSnapshot | None, str]:
        try:
            return self.read(), ""
        except (StoreError, SQLAlchemyError) as error:
            return None, str(error)
