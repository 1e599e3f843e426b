"""The courier at work beside the job: one thread looks for what is due, one a channel carries it.

A receiver that hangs holds up its own channel alone, and nothing here holds up the job: no lock is shared with it but
the store's own, for the time of a short write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hopwatch.alerts.carrier import Carrier
from hopwatch.alerts.courier import Courier, Figures
from hopwatch.alerts.teller import Teller
from hopwatch.alerts.ways import Ways
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.dialect import StoreLock

LOOK_S: Final = 1.0
LONGEST_REST_S: Final = 30.0
"""How often it is looked for what is due, and how seldom while the store fails."""
STOP_S: Final = 5.0
"""How long a stop waits for what is being sent."""


class Rounds:
    """The threads of a courier; :meth:`wake` may be called by any thread and takes no time."""

    def __init__(self, courier: Courier, clock: Clock) -> None:
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
        """Begin to carry."""
        for thread in (self._looker, *self._workers):
            thread.start()

    def wake(self) -> None:
        """Say that something may be due: a micro-batch has been committed."""
        self._woken.set()

    def figures(self) -> dict[str, Figures]:
        """Return what each channel did, and what waits for it."""
        return dict(self._courier.figures())

    def stop(self, patience_s: float = STOP_S) -> None:
        """Carry what is due at this moment, and end; what takes longer is left for the next start."""
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
        """Hand out what is due, again and again; the last time when it is stopped."""
        teller, rest_s = Teller("the outbox"), LOOK_S
        is_last = False
        while not is_last:
            is_last = self._stop.is_set()
            try:
                for name in self._courier.look():
                    self._due[name].set()
            except Exception as error:  # noqa: BLE001 - it goes on, whatever it is
                teller.fails(error)
                rest_s = min(2 * rest_s, LONGEST_REST_S)
            else:
                teller.works()
                rest_s = LOOK_S
            if not is_last:
                self._rest(rest_s, is_hasty=rest_s == LOOK_S)

    def _rest(self, rest_s: float, *, is_hasty: bool) -> None:
        """Wait; what wakes it only a stop does while the store fails."""
        self._clock.wait(rest_s, self._woken if is_hasty else self._stop)
        self._woken.clear()

    def _carry(self, carrier: Carrier) -> None:
        """Carry what is due for one channel whenever there is something."""
        teller, due = Teller(f"the channel {carrier.name}"), self._due[carrier.name]
        is_last = False
        while not is_last:
            due.wait()
            # In this order: what is due when it ends is carried.
            is_last = self._ended.is_set()
            due.clear()
            try:
                while carrier.round(self._is_over):
                    pass
            except Exception as error:  # noqa: BLE001 - it goes on, whatever it is
                teller.fails(error)
            else:
                teller.works()

    def _is_over(self) -> bool:
        return self._over_s is not None and self._clock.monotonic_s() >= self._over_s


@contextmanager
def running(store_url: str, ways: Ways, hold: StoreLock, clock: Clock | None = None) -> Iterator[Rounds]:
    """Carry what is due as long as the block lasts, over connections of its own."""
    time = clock or SystemClock()
    engine = dialect.create_engine(store_url)
    rounds = Rounds(Courier(engine, ways, time, hold), time)
    rounds.start()
    try:
        yield rounds
    finally:
        rounds.stop()
        ways.close()
        engine.dispose()
