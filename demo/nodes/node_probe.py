"""The probe of a demo node: a plain ``Probe``, unless a fault gives it a wrong clock or a bad transport."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from hopwatch import Probe
from hopwatch.demo.faults import draw_chance
from hopwatch.demo.layout import Layout
from hopwatch.demo.nodes.settings import StepSettings
from hopwatch.demo.records import wall_clock_us
from hopwatch.demo.stream import STREAM
from hopwatch.demo.truth import NodeAction, TruthLog
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.sinks import Sink, open_sink


class SkewedClock:
    """A clock whose time of day is ahead by ``skew_s``, or behind."""

    def __init__(self, skew_s: float) -> None:
        """Take the error in seconds."""
        self._skew_ns = round(skew_s * 1e9)

    def wall_ns(self) -> int:
        """Return the wrong time of day, ns since 1970 UTC."""
        return time.time_ns() + self._skew_ns

    def monotonic_ns(self) -> int:
        """Return the time that spans are measured by, which is right."""
        return time.monotonic_ns()


class LossySink:
    """A transport that refuses some of the batches with observations, and writes down which messages were in them."""

    def __init__(self, sink: Sink, truth: TruthLog, settings: StepSettings) -> None:
        """Take the transport that gets the others."""
        self._sink = sink
        self._truth = truth
        self._settings = settings
        self._number = 0

    def send(self, record: bytes) -> bool:
        """Refuse the record, or hand it to the transport."""
        self._number += 1
        settings = self._settings
        drawn = draw_chance(settings.seed, settings.node, "probe drop", self._number)
        if drawn < settings.faults.probe_drop_ratio and (ids := decode(record).message_ids):
            each = (ids[start : start + 16] for start in range(0, len(ids), 16))
            self._truth.write(NodeAction.UNTOLD, wall_clock_us(), *each)
            return False
        return self._sink.send(record)

    def failed(self) -> Sequence[bytes]:
        """Return what the transport could not keep."""
        return self._sink.failed()

    def tick(self) -> None:
        """Let the transport do what is due."""
        self._sink.tick()

    def settle(self, patience_s: float) -> bool:
        """Let the transport settle."""
        return self._sink.settle(patience_s)

    def close(self, patience_s: float = 0.0) -> None:
        """Close the transport."""
        self._sink.close(patience_s)


@contextmanager
def open_probe(settings: StepSettings, layout: Layout) -> Iterator[Probe]:
    """Yield the probe of a node; on the way out it says goodbye."""
    clock = SkewedClock(settings.faults.skew_s) if settings.faults.skew_s else None
    if not settings.faults.probe_drop_ratio:
        with Probe(stream=STREAM, node=settings.node, sink=settings.sink, clock=clock) as probe:
            yield probe
        return
    with closing(TruthLog(layout.untold_log(settings.node))) as truth:
        instance = f"{STREAM}.{settings.node}.{os.getpid()}.{wall_clock_us()}"
        bad_sink = LossySink(open_sink(settings.sink, instance, clock), truth, settings)
        with Probe(stream=STREAM, node=settings.node, sink=bad_sink, clock=clock) as probe:
            yield probe
