"""Test bench of a tap: a manual clock, no waits, and a log of all that it reports."""

from __future__ import annotations

from threading import Event

from hopwatch.probes import Probe, lifecycle
from hopwatch.probes.sender import NEVER_US
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.testing import ManualClock, MemorySink, Observation, observations


class HastyEvent(Event):
    """An event for which waiting takes no time: the clock moves on by itself; it sets itself after some waits."""

    def __init__(self, clock: ManualClock) -> None:
        """Start unset."""
        super().__init__()
        self._clock = clock
        self.waits = 0
        self.most_waits = 1_000

    def wait(self, timeout: float | None = None) -> bool:
        """Let the time pass."""
        self.waits += 1
        if self.waits >= self.most_waits:
            self.set()
        self._clock.advance(timeout or 0)
        return self.is_set()


class LateSink(MemorySink):
    """Notes how much it had whenever it was to settle; ``is_late`` makes it say that it has not."""

    def __init__(self) -> None:
        """Start in time."""
        super().__init__()
        self.is_late = False
        self.settled: list[int] = []

    def settle(self, patience_s: float) -> bool:  # noqa: ARG002 - nothing takes time here
        """Say whether it is in time."""
        self.settled.append(len(observations(self)))
        return not self.is_late


class Place:
    """The surroundings of a tap, a sink in memory, and a probe of one side of a node that stamps into it."""

    def __init__(self, side: StampSide = StampSide.IN, *, are_bad_messages: bool = True) -> None:
        """Put them together; the probe sends when it is asked to, and has no thread."""
        self.clock = ManualClock()
        self.stop = HastyEvent(self.clock)
        self.heard: list[str] = []
        self.around = RunContext(self.heard.append, self.clock, self.stop)
        self.sink = LateSink()
        self.patient = BlockingSink(self.sink, self.around)
        self.probe = Probe("orders", "router", self.patient, clock=self.clock, follows=True)
        assert self.probe._sender is not None
        self.probe._sender.close(60, bye=False)
        self.probe._sender._until_us = NEVER_US
        self.sink.records.clear()
        self.sink.settled.clear()
        lifecycle.unregister(self.probe)
        opened = self.probe, self.patient
        self.stamping = TapStamper(opened, side, self.around, are_bad_messages=are_bad_messages)

    def said(self) -> list[Observation]:
        """Return all observations that reached the sink."""
        return observations(self.sink)

    def ids(self) -> list[bytes]:
        """Return their ids."""
        return [row.message_id for row in self.said()]
