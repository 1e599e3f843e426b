"""One step of a service, and where its probe goes: stamp in, work, hand on, stamp out.

The rest of this file is the faults, and the truth about them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from hopwatch.demo.faults import Dice, FaultAction
from hopwatch.demo.records import Flight, FlightMessage, wall_clock_us
from hopwatch.demo.truth import NodeAction, TruthLog

Labels = Mapping[str, object] | None


class StepProbe(Protocol):
    """The calls of a probe that a step makes."""

    def arrived(self, message_id: bytes, event_time: int, *, labels: Labels = None) -> None:
        """Stamp the message in."""

    def departed(self, message_id: bytes, event_time: int, *, labels: Labels = None) -> None:
        """Stamp it out."""

    def filtered(self, message_id: bytes, event_time: int, reason: str, *, labels: Labels = None) -> None:
        """Record that it was filtered on purpose."""

    def rejected(self, message_id: bytes, event_time: int, reason: str, *, labels: Labels = None) -> None:
        """Record that it was rejected as invalid."""


class Hop(Protocol):
    """The outgoing side of a step: takes the messages that it hands on."""

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Take a message, and call ``then`` once it has left this node: now, or from a later call of this hop."""

    def settle(self) -> None:
        """Wait until all that was handed on has left."""

    def close(self) -> None:
        """Settle, and let go of everything."""


class HeldMessage(NamedTuple):
    """A message that waits for its delay to pass; ``number`` counts what was to be handed on, from 0."""

    due_s: float
    number: int
    message: FlightMessage
    deed: NodeAction


class NodeStep:
    """Takes messages, does the node's work on them, hands them on, and lets the faults happen on the way."""

    def __init__(  # noqa: PLR0913 - a step has these parts, each named where it is made
        self,
        *,
        probe: StepProbe,
        truth: TruthLog,
        dice: Dice,
        delay_s: float,
        work: Callable[[Flight], Flight],
        hop: Hop,
        monotonic_s: Callable[[], float] = time.monotonic,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        """Put the parts together; delays are kept by ``monotonic_s``, deeds are dated by ``now_us``."""
        self._probe = probe
        self._truth = truth
        self._dice = dice
        self._delay_s = delay_s
        self._work = work
        self._hop = hop
        self._monotonic_s = monotonic_s
        self._now_us = now_us
        self._held: deque[HeldMessage] = deque()
        self._taken_count = 0
        self._handled_count = 0
        # What has not left yet, in the order in which it came: its number, and how many messages were taken before it.
        self._open: dict[int, int] = {}

    def create(self, message: FlightMessage) -> None:
        """Note that a message has come into being, and handle it."""
        self._truth.write(NodeAction.CREATED, message.event_time_us, message.id)
        self.receive_message(message)

    def receive_message(self, message: FlightMessage) -> None:
        """Handle one message that has come, as its fate will have it."""
        self._taken_count += 1
        labels = self._dice.labels(message.number)
        match self._dice.fate(message.number):
            case FaultAction.PASS:
                self._handle(message, NodeAction.HANDED_ON)
            case FaultAction.DUPLICATE:
                self._handle(message, NodeAction.HANDED_ON)
                self._handle(message, NodeAction.REPEATED)
            case FaultAction.DROP:
                self._note(NodeAction.DROPPED, message)
                self._probe.arrived(message.id, message.event_time_us, labels=labels)
            case FaultAction.FILTER:
                self._note(NodeAction.FILTERED, message)
                self._probe.filtered(message.id, message.event_time_us, reason="demo: filtered by wish", labels=labels)
            case FaultAction.REJECT:
                self._note(NodeAction.REJECTED, message)
                self._probe.rejected(message.id, message.event_time_us, reason="demo: rejected by wish", labels=labels)

    def release(self) -> None:
        """Hand on the messages whose delay has passed, and wait until all that was handed on has left."""
        while self._held and self._held[0].due_s <= self._monotonic_s():
            self._send(self._held.popleft())
        self._hop.settle()

    @property
    def wait_s(self) -> float | None:
        """Return how long it is until ``release`` has something to do; ``None`` when nothing is held."""
        return max(0.0, self._held[0].due_s - self._monotonic_s()) if self._held else None

    @property
    def done_count(self) -> int:
        """Return with how many of the messages taken, counted from the first, there is nothing left to do."""
        return self.count_done(leaving_count=0)

    def count_done(self, leaving_count: int) -> int:
        """Return ``done_count`` as it is once so many messages more have left, those that were handed on first."""
        return next(islice(self._open.values(), leaving_count, None), self._taken_count)

    def _handle(self, message: FlightMessage, deed: NodeAction) -> None:
        labels = self._dice.labels(message.number)
        self._probe.arrived(message.id, message.event_time_us, labels=labels)
        done = message._replace(flight=self._work(message.flight))
        self._open[self._handled_count] = self._taken_count - 1
        held = HeldMessage(self._monotonic_s() + self._delay_s, self._handled_count, done, deed)
        self._handled_count += 1
        if self._delay_s:
            self._held.append(held)
        else:
            self._send(held)

    def _send(self, held: HeldMessage) -> None:
        self._hop.hand_on(held.message, partial(self._has_left, held))

    def _has_left(self, held: HeldMessage) -> None:
        self._note(held.deed, held.message)
        labels = self._dice.labels(held.message.number)
        self._probe.departed(held.message.id, held.message.event_time_us, labels=labels)
        del self._open[held.number]

    def _note(self, deed: NodeAction, message: FlightMessage) -> None:
        # Before the stamp, always: after a kill the monitor must not know more than the truth does.
        self._truth.write(deed, self._now_us(), message.id)
