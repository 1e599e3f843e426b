"""Throttle of one stream: a token bucket whose rate is controlled by how long messages wait behind the gate."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from hopwatch.gate.throttle.queue_wait import GroupOffsets, QueueFigures, QueueWait, trim_history
from hopwatch.gate.throttle.rate_control import Admission, RateControl
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.metric import Sample

RATE_SPAN_S: Final = 15.0
"""Span of all rates: three commits of a consumer with Kafka's defaults."""
MEMORY_TARGETS: Final = 3.0
"""History of offsets that is kept, in targets."""
BLIND_S: Final = 30.0
"""Time without an answer of the brokers after which nothing is limited any more."""
MAX_RETRY_AFTER_S: Final = 60


class StreamThrottle:
    """Throttle of one stream. Events are admitted in the event loop; the offsets come from a thread.

    With ``is_dry_run`` it counts what it would refuse, and admits it.
    """

    def __init__(self, stream: str, target_s: float, clock: Clock, *, is_dry_run: bool = False) -> None:
        """Keep the waits of a stream under a target."""
        self.stream, self._target_s, self._clock, self._is_dry_run = stream, target_s, clock, is_dry_run
        self._wait = QueueWait(max(MEMORY_TARGETS * target_s, RATE_SPAN_S), RATE_SPAN_S)
        self._control = RateControl(target_s)
        self._tokens, self._filled_s = 0.0, self._now_s()
        self._looked_s = self._now_s()
        self._admitted = self._refused = self._refused_before = 0
        self._totals: deque[tuple[float, int]] = deque([(self._now_s(), 0)])
        self._queue = QueueFigures(0.0, 0.0, None)

    def admit(self, count: int) -> None:
        """Admit events, or not.

        Raises:
            HttpProblem: more are sent than the consumers behind the gate can take; send them again later.
        """
        limit_per_s = self._control.limit_per_s
        if limit_per_s is None:
            self._admitted += count
            return
        now_s = self._now_s()
        # A request of any size is admitted while a token is left, and those that follow wait for what it took.
        filled = self._tokens + limit_per_s * (now_s - self._filled_s)
        self._tokens, self._filled_s = min(filled, max(limit_per_s, 1.0)), now_s
        if self._tokens > 0:
            self._tokens -= count
            self._admitted += count
            return
        self._refused += count
        if self._is_dry_run:
            self._admitted += count
            return
        again_s = min(max(math.ceil(-self._tokens / limit_per_s), 1), MAX_RETRY_AFTER_S)
        told = (
            f"messages of {self.stream} wait {self._queue.wait_s:.0f} s for the consumers behind the gate, which admits"
            f" {limit_per_s:.3g} a second now: retry later"
        )
        more = {"retry-after": str(again_s)}
        raise HttpProblem(HTTPStatus.TOO_MANY_REQUESTS, "throttled", told, extra_headers=more)

    def observe(self, offsets: GroupOffsets | None) -> str:
        """Take a look at the offsets, None where the brokers did not answer; return what is to be logged, or nothing.

        Without an answer the limit stays for a while, and is lifted then: what is not known holds nobody up.
        """
        now_s, before = self._now_s(), self._control.limit_per_s
        if offsets is None:
            if before is not None and now_s - self._looked_s > BLIND_S:
                self._control.lift()
                return f"{self.stream}: the backlog has not been known for {BLIND_S:.0f} s: all events are admitted"
            return ""
        self._looked_s = now_s
        self._queue = self._wait.observe(now_s, offsets)
        refused, self._refused_before = self._refused - self._refused_before, self._refused
        self._control.step(now_s, self._queue, Admission(self._read_rate(now_s), refused))
        return self._describe_change(before, self._control.limit_per_s)

    def build_samples(self) -> Iterator[Sample]:
        """Yield the samples of the stream's metrics; without a limit there is none of it."""
        yield Sample(catalog.GATE_THROTTLE_WAIT, (self.stream,), self._queue.wait_s)
        refused = self._refused
        yield Sample(catalog.GATE_THROTTLED, (self.stream, "dry_run" if self._is_dry_run else "refused"), refused)
        if (limit_per_s := self._control.limit_per_s) is not None:
            yield Sample(catalog.GATE_THROTTLE_LIMIT, (self.stream,), limit_per_s)

    def _read_rate(self, now_s: float) -> float:
        self._totals.append((now_s, self._admitted))
        trim_history(self._totals, now_s - RATE_SPAN_S)
        begun_s, admitted = self._totals[0]
        return (self._admitted - admitted) / (now_s - begun_s) if now_s > begun_s else 0.0

    def _describe_change(self, before: float | None, now: float | None) -> str:
        would = "would admit" if self._is_dry_run else "admits"
        waits = f"messages wait {self._queue.wait_s:.1f} s, of {self._target_s:g} s at most"
        if now is None:
            return "" if before is None else f"{self.stream}: {waits}; the gate {would} all events again"
        return f"{self.stream}: {waits}; the gate {would} {now:.3g} events a second" if before is None else ""

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9
