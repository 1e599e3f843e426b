"""Thread of a publisher, beside the job: receivers that are away hold up neither a micro-batch nor a stop for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from hopwatch.alerts.delivery import log
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import HopwatchError, TransportError
from hopwatch.probes.once_per_cause import OncePerCause

POLL_S: Final = 10.0
"""Interval of looks at the store, beside those after each micro-batch."""
MIN_WAIT_S: Final = 1.0
MAX_WAIT_S: Final = 30.0
"""Waits between tries while brokers or store fail; they double."""
STOP_S: Final = 5.0
"""Longest wait of a stop for what is left to publish."""
DRAIN_S: Final = 60.0
"""Longest time for which ``run --once`` tries a topic that takes nothing."""


class Publisher(Protocol):
    """Publisher of what a store holds; one thread at a time calls it."""

    def publish_next(self) -> int:
        """Publish what is next, and return how much, 0 if all is published.

        Raises:
            TransportError: it is not taken now; nothing is lost.
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """

    def close(self) -> None:
        """Release all resources."""


class PublisherThread:
    """Publishes whenever it is woken; any thread may call :meth:`wake`, which does not block."""

    def __init__(self, publisher: Publisher, clock: Clock, what: str = "results") -> None:
        """Make the thread, which does not run before :meth:`start`; ``what`` is published, a plural."""
        self._publisher, self._clock, self._what = publisher, clock, what
        self._woken, self._stop = threading.Event(), threading.Event()
        self._failing = OncePerCause()
        self._thread = threading.Thread(target=self._run, name=f"hopwatch-{what}", daemon=True)

    def start(self) -> None:
        """Publish from now on."""
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread: a micro-batch has been committed."""
        self._woken.set()

    def stop(self, patience_s: float = STOP_S) -> None:
        """Publish what is left, and stop; what takes longer is left for the next start."""
        self._stop.set()
        self._woken.set()
        self._thread.join(patience_s)
        if not self._thread.is_alive():
            self._publisher.close()

    def _run(self) -> None:
        wait_s, is_last = MIN_WAIT_S, False
        while not is_last:
            # In this order: what was written before a stop is published.
            is_last = self._stop.is_set()
            self._woken.clear()
            if self._try():
                wait_s = MIN_WAIT_S
                if not is_last:
                    self._clock.wait(POLL_S, self._woken)
            elif not is_last:
                self._clock.wait(wait_s, self._stop)
                wait_s = min(2 * wait_s, MAX_WAIT_S)

    def _try(self) -> bool:
        """Publish all there is; return False if that fails."""
        try:
            while self._publisher.publish_next():
                self._log_recovery()
        except Exception as error:  # noqa: BLE001 - the thread survives any error
            self._log_failure(error)
            return False
        self._log_recovery()
        return True

    def _log_failure(self, error: Exception) -> None:
        why = str(error) if isinstance(error, HopwatchError) else log.describe_fault(error)
        if self._failing.is_new(why):
            log.warning(f"{self._what} are not published now, nothing is lost: trying on", why=why)

    def _log_recovery(self) -> None:
        if self._failing.rearm():
            log.info(f"{self._what} are published again")


@contextmanager
def run_publisher(publisher: Publisher | None, clock: Clock, what: str = "results") -> Iterator[Callable[[], None]]:
    """Run the thread for the duration of the block, and yield what wakes it; without a publisher do nothing."""
    if publisher is None:
        yield _do_nothing
        return
    thread = PublisherThread(publisher, clock, what)
    thread.start()
    try:
        yield thread.wake
    finally:
        thread.stop()


def _do_nothing() -> None:
    """Stand for what wakes a publisher that is not there."""


def publish_all(publisher: Publisher, clock: Clock, patience_s: float = DRAIN_S) -> int:
    """Publish all that the store holds; return the number of windows.

    Raises:
        TransportError: the topic has taken nothing for ``patience_s``.
        StoreError: the store fails.
    """
    count, began_s = 0, clock.monotonic_s()
    while True:
        try:
            while published := publisher.publish_next():
                count, began_s = count + published, clock.monotonic_s()
        except TransportError as error:
            if clock.monotonic_s() - began_s >= patience_s:
                told = "the store has all results, and the next run publishes what is missing"
                raise TransportError(f"{error}; {told}") from None
            clock.wait(MIN_WAIT_S)
        else:
            return count
