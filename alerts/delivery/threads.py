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

    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        """Make the threads; they do not run before :meth:`start`."""
        self._dispatcher, self._clock = dispatcher, clock
        self._woken, self._stop, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._deadline_s: float | None = None
        self._due = {name: threading.Event() for name in dispatcher.workers}
        self._poller = threading.Thread(target=self._poll, name="hopwatch-dispatcher", daemon=True)
        self._workers = [
            threading.Thread(target=self._run_worker, args=(worker,), name=f"hopwatch-dispatcher-{name}", daemon=True)
            for name, worker in dispatcher.workers.items()
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in (self._poller, *self._workers):
            thread.start()

    def wake(self) -> None:
        """Wake the polling thread: a micro-batch has been committed, and deliveries may be due."""
        self._woken.set()

    def collect_figures(self) -> dict[str, ChannelFigures]:
        """Return counts and backlog of each channel."""
        return dict(self._dispatcher.collect_figures())

    def stop(self, patience_s: float = STOP_S) -> None:
        """Deliver what is due at this moment, and stop; what takes longer is left for the next start."""
        self._deadline_s = self._clock.monotonic_s() + patience_s
        self._stop.set()
        self._woken.set()
        self._poller.join(patience_s)
        self._ended.set()
        for due in self._due.values():
            due.set()
        for worker in self._workers:
            worker.join(max(0.0, self._deadline_s - self._clock.monotonic_s()))

    def _poll(self) -> None:
        """Poll the outbox until stopped, and once more then; wake the workers of channels with due deliveries."""
        failures, rest_s = FailureLog("the outbox"), POLL_S
        is_last = False
        while not is_last:
            is_last = self._stop.is_set()
            try:
                for name in self._dispatcher.find_due_channels():
                    self._due[name].set()
            except Exception as error:  # noqa: BLE001 - the thread survives any error
                failures.log_failure(error)
                rest_s = min(2 * rest_s, MAX_POLL_S)
            else:
                failures.log_recovery()
                rest_s = POLL_S
            if not is_last:
                self._wait_for_poll(rest_s, is_prompt=rest_s == POLL_S)

    def _wait_for_poll(self, rest_s: float, *, is_prompt: bool) -> None:
        """Wait for the next poll; while the store fails, only a stop ends the wait early."""
        self._clock.wait(rest_s, self._woken if is_prompt else self._stop)
        self._woken.clear()

    def _run_worker(self, worker: ChannelWorker) -> None:
        """Deliver for one channel whenever something is due."""
        failures, due = FailureLog(f"the channel {worker.name}"), self._due[worker.name]
        is_last = False
        while not is_last:
            due.wait()
            # In this order: deliveries that are due at the end are still sent.
            is_last = self._ended.is_set()
            due.clear()
            try:
                while worker.deliver_due(self._is_over):
                    pass
            except Exception as error:  # noqa: BLE001 - the thread survives any error
                failures.log_failure(error)
            else:
                failures.log_recovery()

    def _is_over(self) -> bool:
        return self._deadline_s is not None and self._clock.monotonic_s() >= self._deadline_s


@contextmanager
def run_dispatcher(
    store_url: str, routing: Routing, hold: StoreLock, clock: Clock | None = None
) -> Iterator[DispatchThreads]:
    """Run the dispatcher for the duration of the block, over connections of its own."""
    time = clock or SystemClock()
    engine = dialect.create_engine(store_url)
    threads = DispatchThreads(Dispatcher(engine, routing, time, hold), time)
    threads.start()
    try:
        yield threads
    finally:
        threads.stop()
        routing.close()
        engine.dispose()
