"""Tests of reading the store for metrics: at once, again and again, and whatever the store does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from structlog.testing import capture_logs

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.metrics.snapshot import StoreSnapshot
from hopwatch.monitor.metrics.store_poller import POLL_EVERY_S, StorePoller
from tests.support.clock import ManualClock


@dataclass
class Play:
    """A store that answers or fails as it is told, until there is nothing more to read."""

    answers: list[Callable[[], StoreSnapshot]]
    clock: ManualClock = field(default_factory=ManualClock)
    taken: list[StoreSnapshot | None] = field(default_factory=list)
    moments_s: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Read until the last answer."""
        self.reading = StorePoller(self._next, self.taken.append, self.clock)
        self.reading.run()

    def _next(self) -> StoreSnapshot:
        self.moments_s.append(self.clock.monotonic_s())
        answer = self.answers.pop(0)
        if not self.answers:
            self.reading.stop()
        return answer()


def figures(number: int) -> Callable[[], StoreSnapshot]:
    """Return what answers with figures."""
    return lambda: StoreSnapshot(number)


def failure(error: Exception) -> Callable[[], StoreSnapshot]:
    """Return what fails."""

    def fail() -> StoreSnapshot:
        raise error

    return fail


def test_the_store_is_read_at_once_and_every_so_often() -> None:
    """The store is read at once and then at intervals, until a stop."""
    play = Play([figures(1), figures(2), figures(3)])
    play.run()
    assert play.taken == [StoreSnapshot(1), StoreSnapshot(2), StoreSnapshot(3)]
    assert play.moments_s == [0, POLL_EVERY_S, 2 * POLL_EVERY_S]


def test_a_store_that_fails_is_told_once_and_tried_again() -> None:
    """And anew when it fails after it was well."""
    down = StoreError("the store is down")
    play = Play([failure(down), failure(PoolTimeoutError("no connection")), figures(1), failure(down)])
    with capture_logs() as logs:
        play.run()
    assert play.taken == [None, None, StoreSnapshot(1), None]
    told = {"event": "the store cannot be read for metrics", "why": "the store is down", "log_level": "warning"}
    assert logs == [told, told]


def test_it_reads_in_a_thread_of_its_own() -> None:
    """Nobody waits for it."""
    is_read = threading.Event()
    reading = StorePoller(figures(1), lambda _: is_read.set(), ManualClock())
    reading.start()
    assert is_read.wait(20)
    reading.stop()
