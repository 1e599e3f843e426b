"""Worlds of traced services: what their processes send, take in, drop and tell, and what of it reaches the OTLP tap.

One service sends, another takes in. Each process has an SDK that sends spans every 5 s and its own metrics every 10 s,
counts a span some milliseconds after it began or ended, and reads its counters one after the other. Whatever else may
happen is a fault with a chance of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.packing import PackedBatch
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.otlp.intake import KnownServices, SpanIntake
from hopwatch.probes.taps.otlp.request_decoder import PROTOBUF
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading
from hopwatch.testing import ManualClock
from tests.support.otlp_requests import build_consumer_span, build_metrics, build_producer_span, build_traces

Pack = Callable[[int], Iterable[PackedBatch]]
Offer = Callable[[Pack], bool]

SECOND_NS: Final = 1_000_000_000
MS_NS: Final = 1_000_000
SPANS_EVERY_S: Final = 5
METRICS_EVERY_S: Final = 10
LATE_NS: Final = 20 * MS_NS
"""Time within which an SDK counts a span, and reads its counters."""
FAULTS: Final = (
    "queue full",
    "queue full untold",
    "vanishing",
    "sent twice",
    "sampled",
    "metrics lost",
    "killed",
    "killed early",
    "no context",
    "links cut",
    "slow handling",
    "tap restarts",
    "no instance id",
    "sink full",
    "stable ids",
    "clocks",
)


@dataclass
class Process:
    """Process of a service: its open spans, those that wait, and what its SDK has counted."""

    service: str
    instance: str | None
    since_ns: int
    ahead_ns: int
    """How far its clock is ahead of that of the tap."""
    open: list[Span] = field(default_factory=list)
    queue: list[Span] = field(default_factory=list)
    begun_ns: list[int] = field(default_factory=list)
    ended_ns: list[int] = field(default_factory=list)
    unsampled: int = 0
    dropped: int = 0

    def read(self, at_ns: int, rng: Random) -> SdkReading:
        """Return a reading, whose counters are read one after the other."""
        first, second = (at_ns + rng.randrange(LATE_NS) for _ in range(2))
        started, live = (sum(one <= moment for one in self.begun_ns) for moment in (first, second))
        live -= sum(one <= second for one in self.ended_ns)
        own_ns, since_ns = (moment + self.ahead_ns for moment in (at_ns, self.since_ns))
        return SdkReading(own_ns, since_ns, started, live, self.unsampled, self.dropped)


class OtlpWorld:
    """World on a clock of its own, of some seconds; ``faults`` have their chances."""

    def __init__(self, folder: Path, seed: int, faults: frozenset[str], instances: int | None = 1) -> None:
        """Start it; of the service that takes in, so many processes run at once."""
        self.rng, self.faults, self.clock = Random(seed), faults, ManualClock()
        self.spool, self.instances, self.number = folder / "spool", instances, 0
        self.mtimes_us: dict[Path, int] = {}
        self.lost: Counter[int] = Counter()
        """Lost messages by window start in µs."""
        self.sent = 0
        self.coming: list[tuple[int, bytes]] = []
        self.shop = self._start("shop")
        self.billing = [self._start("billing") for _ in range(instances or 1)]
        self.tap = self._open_tap()

    def run(self, seconds: int, sending_s: int) -> None:
        """Let it go on; messages are sent in the first ``sending_s``."""
        for second in range(seconds):
            now_ns = self.clock.wall_ns()
            if second < sending_s:
                for _ in range(self.rng.choice((0, 0, 1, 3))):
                    self._send(now_ns + self.rng.randrange(SECOND_NS))
            self._deliver(now_ns + SECOND_NS)
            for process in (self.shop, *self.billing):
                self._end_spans(process, now_ns + SECOND_NS)
            self._kill_some()
            self.clock.advance(1)
            for process in (self.shop, *self.billing):
                self._export(process)
            if self._has("tap restarts", 0.005):
                self._close_tap()
                self.tap = self._open_tap()
            self._turn_tap()
        self._close_tap()

    def _start(self, service: str) -> Process:
        self.number += 1
        number = 0 if self._has("stable ids", 1.0) and self.instances == 1 else self.number
        instance = None if self._has("no instance id", 0.5) else f"{service}-{number}"
        ahead_ns = self.rng.randrange(-240, 240) * SECOND_NS if "clocks" in self.faults else 0
        return Process(service, instance, self.clock.wall_ns(), ahead_ns)

    def _has(self, fault: str, chance: float) -> bool:
        return fault in self.faults and self.rng.random() < chance

    def _context(self) -> bytes:
        return self.rng.randbytes(24)

    def _begin(self, process: Process, span: Span) -> None:
        if self._has("sampled", 0.5):
            process.unsampled += 1
            return
        process.open.append(span)
        process.begun_ns.append(span.start_time_unix_nano - process.ahead_ns + self.rng.randrange(LATE_NS))

    def _send(self, at_ns: int) -> None:
        context = self._context()
        event_ns = at_ns + self.shop.ahead_ns
        self._begin(self.shop, build_producer_span(context, event_ns, event_ns + self.rng.randrange(1, 5) * MS_NS))
        self.sent += 1
        if self.rng.random() < 0.1:
            self.lost[event_ns // (60 * SECOND_NS) * 60_000_000] += 1
        else:
            self.coming.append((at_ns + self.rng.choice((1, 10, 500, 15_000)) * MS_NS, context))

    def _deliver(self, until_ns: int) -> None:
        due = [one for one in self.coming if one[0] < until_ns]
        self.coming = [one for one in self.coming if one[0] >= until_ns]
        for at_ns, context in due:
            process = self.rng.choice(self.billing)
            is_slow = self._has("slow handling", 0.1)
            took_ns = self.rng.choice((60_000, 150_000) if is_slow else (1, 5, 900)) * MS_NS
            own_ns = at_ns + process.ahead_ns
            span = build_consumer_span(self._context(), [context], own_ns, own_ns + took_ns)
            if self._has("no context", 0.1):
                del span.links[:]
            elif self._has("links cut", 0.1):
                del span.links[:]
                span.dropped_links_count = 1
            self._begin(process, span)

    def _end_spans(self, process: Process, until_ns: int) -> None:
        until_ns += process.ahead_ns
        ended = [one for one in process.open if one.end_time_unix_nano < until_ns]
        process.open = [one for one in process.open if one.end_time_unix_nano >= until_ns]
        for span in ended:
            process.ended_ns.append(span.end_time_unix_nano - process.ahead_ns + self.rng.randrange(LATE_NS))
            if self._has("queue full untold", 0.05):
                continue
            if self._has("queue full", 0.05):
                process.dropped += 1
                continue
            process.queue.append(span)

    def _kill_some(self) -> None:
        for at, process in enumerate(self.billing):
            is_young = self.clock.wall_ns() - process.since_ns < 4 * SECOND_NS
            if self._has("killed", 0.01) or (is_young and self._has("killed early", 0.2)):
                self.billing[at] = self._start("billing")

    def _export(self, process: Process) -> None:
        lived_s = (self.clock.wall_ns() - process.since_ns) // SECOND_NS
        if lived_s % SPANS_EVERY_S == 0 and process.queue:
            body = build_traces(process.queue, process.service, process.instance)
            times = 0 if self._has("vanishing", 0.1) else 2 if self._has("sent twice", 0.3) else 1
            answered = [self._post(body) for _ in range(times)]
            if all(answered):
                process.queue = []
        if lived_s and lived_s % METRICS_EVERY_S == 0 and not self._has("metrics lost", 0.2):
            reading = process.read(self.clock.wall_ns() - LATE_NS, self.rng)
            self.tap.take_metrics(build_metrics(reading, process.service, process.instance), PROTOBUF)

    def _post(self, body: bytes) -> bool:
        with suppress(HttpProblem):
            self.tap.take_spans(body, PROTOBUF)
            return True
        return False

    def _open_tap(self) -> SpanIntake:
        told = {} if self.instances is None else {"shop": 1, "billing": self.instances}
        return SpanIntake(f"spool:{self.spool}", RunContext(lambda _: None, self.clock), KnownServices(instances=told))

    def _close_tap(self) -> None:
        self.tap.close()
        self._note_arrivals()

    def _turn_tap(self) -> None:
        self.tap.tick()
        for sender in self.tap._books._senders.values():
            sender.step()
            if self._has("sink full", 0.02):
                sender.offer = _refuse_once(sender.offer)  # type: ignore[assignment, method-assign]
        self._note_arrivals()

    def _note_arrivals(self) -> None:
        """Let files that are new have arrived now."""
        for path in self.spool.rglob("*.seg"):
            if path not in self.mtimes_us:
                self.mtimes_us[path] = self.clock.us
                os.utime(path, ns=(self.clock.wall_ns(), self.clock.wall_ns()))


def _refuse_once(offer: Offer) -> Offer:
    asked: list[object] = []

    def refuse(pack: Pack) -> bool:
        asked.append(pack)
        return len(asked) > 1 and offer(pack)

    return refuse
