"""Threads of the dispatcher, beside the job: one polls the outbox, and one per channel delivers.

A receiver that hangs blocks its own channel only, and nothing here blocks the job: the only lock that both use is the
store's own, for the time of a short write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery.dispatcher import ChannelFigures, Dispatcher
from hopwatch.alerts.delivery.log import FailureLog
from hopwatch.alerts.delivery.worker import ChannelWorker
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.dialect import StoreLock

POLL_S: Final = 1.0
MAX_POLL_S: Final = 30.0
"""Interval of polls, and its longest backoff while the store fails."""
STOP_S: Final = 5.0
"""Longest wait of a stop for deliveries in progress."""


class DispatchThreads:
    """Threads of a dispatcher; any thread may call :meth:`wake`, which does not block."""

    def __init__(self, courier: Dispatcher, clock: Clock) -> None:
        """Make the threads; they do not run before :meth:`start`."""
        self._courier, self._clock = courier, clock
        self._woken, self._stop, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._over_s: float | None = None
        self._due = {name: threading.Event() for name in courier.carriers}
        self._looker = threading.Thread(target=self._look, name="hopwatch-courier", daemon=True)
        self._workers = [
            threading.Thread(target=self._carry, args=(carrier,), name=f"hopwatch-courier-{name}", daemon=True)
            for name, carrier in courier.carriers.items()
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in (self._looker, *self._workers):
            thread.start()

    def wake(self) -> None:
        """Wake the polling thread: a micro-batch has been committed, and deliveries may be due."""
        self._woken.set()

    def figures(self) -> dict[str, ChannelFigures]:
        """Return counts and backlog of each channel."""
        return dict(self._courier.figures())

    def stop(self, patience_s: float = STOP_S) -> None:
        """Deliver what is due at this moment, and stop; what takes longer is left for the next start."""
        self._over_s = self._clock.monotonic_s() + patience_s
        self._stop.set()
        self._woken.set()
        self._looker.join(patience_s)
        self._ended.set()
        for due in self._due.values():
            due.set()
        for worker in self._workers:
            worker.join(max(0.0, self._over_s - self._clock.monotonic_s()))

    def _look(self) -> None:
        """Poll the outbox until stopped, and once more then; wake the workers of channels with due deliveries."""
        teller, rest_s = FailureLog("the outbox"), POLL_S
        is_last = False
        while not is_last:
            is_last = self._stop.is_set()
            try:
                for name in self._courier.look():
                    self._due[name].set()
            except Exception as error:  # noqa: BLE001 - the thread survives any error
                teller.fails(error)
                rest_s = min(2 * rest_s, MAX_POLL_S)
            else:
                teller.works()
                rest_s = POLL_S
            if not is_last:
                self._rest(rest_s, is_hasty=rest_s == POLL_S)

    def _rest(self, rest_s: float, *, is_hasty: bool) -> None:
        """Wait for the next poll; while the store fails, only a stop ends the wait early."""
        self._clock.wait(rest_s, self._woken if is_hasty else self._stop)
        self._woken.clear()

    def _carry(self, carrier: ChannelWorker) -> None:
        """Deliver for one channel whenever something is due."""
        teller, due = FailureLog(f"the channel {carrier.name}"), self._due[carrier.name]
        is_last = False
        while not is_last:
            due.wait()
            # In this order: deliveries that are due at the end are still sent.
            is_last = self._ended.is_set()
            due.clear()
            try:
                while carrier.round(self._is_over):
                    pass
            except Exception as error:  # noqa: BLE001 - the thread survives any error
                teller.fails(error)
            else:
                teller.works()

    def _is_over(self) -> bool:
        return self._over_s is not None and self._clock.monotonic_s() >= self._over_s


@contextmanager
def run_dispatcher(
    store_url: str, ways: Routing, hold: StoreLock, clock: Clock | None = None
) -> Iterator[DispatchThreads]:
    """Run the dispatcher for the duration of the block, over connections of its own."""
    time = clock or SystemClock()
    engine = dialect.create_engine(store_url)
    rounds = DispatchThreads(Dispatcher(engine, ways, time, hold), time)
    rounds.start()
    try:
        yield rounds
    finally:
        rounds.stop()
        ways.close()
        engine.dispose()
