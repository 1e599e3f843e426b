"""Injector of the self-test: sends planned messages through the real transport by probes of its own.

A minute is planned when it begins, and its stamps are due by the monotonic clock; what is true of it is recorded once
the last of them is taken.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from hopwatch import Probe
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.selftest.minute import InjectedMinute, LagBounds, bound_lags
from hopwatch.monitor.selftest.mortal_sink import MortalSink
from hopwatch.monitor.selftest.plan import (
    TAIL_US,
    MinutePlan,
    PlannedMessage,
    PlannedStamp,
    StampCall,
    count_plan,
    is_death_minute,
    plan_minute,
)
from hopwatch.monitor.selftest.stream import LEFT, RIGHT, SELFTEST_CONFIG, SELFTEST_STREAM, SOURCE
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.sinks import Sink, SinkOpener

SETTLING_US: Final = 720_000_000
"""Time after a death, or the start of the monitor, in which bounds may be open: until a silent probe is retired."""
SKEW_US: Final = 150_000
"""How far the clock of node ``right`` is ahead."""
MAX_WAITING: Final = 60
"""Minutes that wait at most for a store that cannot be written."""
_IDLE_S: Final = 1.0
_log = logging.getLogger("hopwatch")


class ClockAhead:
    """Clock that is ahead of another one."""

    def __init__(self, clock: Clock, ahead_us: int) -> None:
        """Set by how much it is ahead."""
        self._wall_ns, self._ahead_ns = clock.wall_ns, 1_000 * ahead_us
        self.monotonic_ns = clock.monotonic_ns

    def wall_ns(self) -> int:
        """Return the time since 1970 UTC as a clock that is ahead says it, ns."""
        return self._wall_ns() + self._ahead_ns


@dataclass(slots=True)
class _RunningMinute:
    """Minute whose stamps are not all taken: lags by node and side, the latest stamp, and what was dropped before."""

    start_us: int
    plan: MinutePlan
    dropped_before: int
    lags_us: dict[str, list[LagBounds]] = field(default_factory=lambda: defaultdict(list))
    late_us: int = 0


class MinuteInjector:
    """Injector of minute after minute; :meth:`step` takes what is due, and may be called by hand."""

    def __init__(  # noqa: PLR0913 - what it sends, where to, and the time
        self,
        open_sink: Callable[[str], Sink],
        record: Callable[[InjectedMinute], None],
        messages_per_minute: int,
        seed: str,
        *,
        clock: Clock | None = None,
        settling_us: int = SETTLING_US,
    ) -> None:
        """Start the probes; the first minute is the next one.

        ``open_sink`` opens the transport for a probe instance; ``record`` stores a minute, and may raise a StoreError.
        For ``settling_us`` bounds may be open, because of probes that an earlier run has left.
        """
        self._open_sink, self._record = open_sink, record
        self._messages, self._seed, self._clock = messages_per_minute, seed, clock or SystemClock()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._waiting: list[InjectedMinute] = []
        self._sinks: dict[str, MortalSink] = {}
        self._probes = {node: self._start_probe(node) for node in SELFTEST_CONFIG.pathway.nodes}
        wall_us = self._clock.wall_ns() // 1_000
        self._settled_us = wall_us + settling_us
        start_us = wall_us - wall_us % WINDOW_US + WINDOW_US
        self._schedule(self._clock.monotonic_ns() + 1_000 * (start_us - wall_us), lambda: self._begin_minute(start_us))

    def step(self) -> float:
        """Take what is due, and return after how many seconds something is due again."""
        while self._queue and self._queue[0][0] <= self._clock.monotonic_ns():
            heapq.heappop(self._queue)[2]()
        wait_ns = self._queue[0][0] - self._clock.monotonic_ns() if self._queue else 0
        return min(_IDLE_S, max(0, wait_ns) / 1e9)

    def flush(self) -> None:
        """Send all stamps that are taken."""
        for probe in self._probes.values():
            probe.flush()

    def close(self) -> None:
        """Close the probes; a minute that has not ended is not recorded."""
        for probe in self._probes.values():
            probe.end()
        for probe in self._probes.values():
            probe.close()

    def _schedule(self, due_ns: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (due_ns, next(self._order), act))

    def _start_probe(self, node: str) -> Probe:
        def open_sink(instance: str) -> Sink:
            self._sinks[node] = MortalSink(self._open_sink(instance))
            return self._sinks[node]

        clock = ClockAhead(self._clock, SKEW_US) if node == RIGHT else self._clock
        return Probe(SELFTEST_STREAM, node, SinkOpener(open_sink), close_on_sigterm=False, clock=clock)

    def _begin_minute(self, start_us: int) -> None:
        """Schedule all stamps of a minute, and the next minute."""
        wall_us, now_ns = self._clock.wall_ns() // 1_000, self._clock.monotonic_ns()
        begun_ns = now_ns - 1_000 * (wall_us - start_us)
        if wall_us >= start_us + WINDOW_US:
            # The monitor stood still: nothing is injected into what has passed.
            self._store(InjectedMinute(start_us, late_us=wall_us - start_us))
            start_us = wall_us - wall_us % WINDOW_US
        else:
            self._schedule_plan(start_us, begun_ns, plan_minute(self._seed, start_us, self._messages))
        next_us = start_us + WINDOW_US
        self._schedule(now_ns + 1_000 * (next_us - wall_us), lambda: self._begin_minute(next_us))

    def _schedule_plan(self, start_us: int, begun_ns: int, plan: MinutePlan) -> None:
        running = _RunningMinute(start_us, plan, self._count_dropped())
        for message in plan.messages:
            for stamp in message.stamps:
                self._schedule_stamp(running, begun_ns, message, stamp)
        if plan.death_offset_us is not None:
            self._schedule(begun_ns + 1_000 * plan.death_offset_us, self._kill_probe)
        ended_ns = begun_ns + 1_000 * (WINDOW_US + TAIL_US)
        self._schedule(ended_ns, lambda: self._end_minute(running))

    def _schedule_stamp(
        self, running: _RunningMinute, begun_ns: int, message: PlannedMessage, stamp: PlannedStamp
    ) -> None:
        event_us = running.start_us + message.offset_us
        due_ns = begun_ns + 1_000 * stamp.offset_us

        def take() -> None:
            before_ns = self._clock.monotonic_ns()
            call_probe(self._probes[stamp.node], stamp.kind, message.message_id, event_us)
            after_ns = self._clock.monotonic_ns()
            ahead_us = SKEW_US if stamp.node == RIGHT else 0
            lag_us = stamp.offset_us - message.offset_us + ahead_us
            bounds = LagBounds(lag_us + (before_ns - due_ns) // 1_000, lag_us + (after_ns - due_ns) // 1_000)
            sides = ("in", "out") if stamp.node == SOURCE else ("out",) if stamp.kind == StampCall.OUT else ("in",)
            for side in sides:
                running.lags_us[f"{stamp.node}.{side}"].append(bounds)
            running.late_us = max(running.late_us, (before_ns - due_ns) // 1_000)

        self._schedule(due_ns, take)

    def _kill_probe(self) -> None:
        """Let the instance of node ``left`` die with what it has not sent, and start another one."""
        dead = self._probes[LEFT]
        self._sinks[LEFT].kill()
        self._probes[LEFT] = self._start_probe(LEFT)
        dead.end()

    def _end_minute(self, running: _RunningMinute) -> None:
        start_us, dropped = running.start_us, self._count_dropped() - running.dropped_before
        if dropped > 0:
            self._store(InjectedMinute(start_us, late_us=running.late_us, dropped=dropped))
            return
        is_exact = start_us >= self._settled_us and not is_near_death(start_us)
        injected = count_plan(start_us, running.plan, is_exact=is_exact)
        self._store(replace(injected, lags=bound_lags(running.lags_us), late_us=running.late_us))

    def _count_dropped(self) -> int:
        return sum(probe.dropped for probe in self._probes.values())

    def _store(self, minute: InjectedMinute) -> None:
        """Store the minutes that wait; keep those that the store does not take for the next time."""
        self._waiting = [*self._waiting, minute][-MAX_WAITING:]
        while self._waiting:
            try:
                self._record(self._waiting[0])
            except StoreError as error:
                _log.warning("a minute of the self-test is not stored yet: %s", error)
                return
            self._waiting.pop(0)


def is_near_death(start_us: int) -> bool:
    """Return whether a probe instance dies so near to a window that its bounds may be open."""
    terms = SELFTEST_CONFIG.terms
    behind = -(-(terms.transit_us + terms.settle_us) // WINDOW_US) + 1
    before = -(-SETTLING_US // WINDOW_US)
    return any(is_death_minute(start_us + minute * WINDOW_US) for minute in range(-before, behind + 1))


def call_probe(probe: Probe, kind: StampCall, message_id: bytes, event_us: int) -> None:
    """Call a probe to stamp a message."""
    match kind:
        case StampCall.IN:
            probe.arrived(message_id, event_us)
        case StampCall.OUT:
            probe.departed(message_id, event_us)
        case StampCall.FILTERED:
            probe.filtered(message_id, event_us)
        case StampCall.REJECTED:
            probe.rejected(message_id, event_us)


def start_injector(
    open_sink: Callable[[str], Sink], record: Callable[[InjectedMinute], None], messages_per_minute: int, seed: str
) -> Callable[[], None]:
    """Start an injector in a thread, and return how to stop it: it closes the probes."""
    injector = MinuteInjector(open_sink, record, messages_per_minute, seed)
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(injector.step()):
            pass

    thread = threading.Thread(target=run, name="hopwatch-selftest", daemon=True)
    thread.start()

    def close() -> None:
        stop.set()
        thread.join()
        injector.close()

    return close
