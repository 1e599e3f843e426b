"""The sender of events: breaks some messages, sends all by Hopwatch's client for producers, and logs the truth."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from hopwatch.client import ClientCounts, ClientPolicy, QueueFullError, SendOutcome
from hopwatch.demo.entrance.answers import GateAnswer, read_answer
from hopwatch.demo.entrance.breakage import Breakage, Item, choose_breakage
from hopwatch.demo.entrance.events import build_item
from hopwatch.demo.entrance.registration import describe_silence
from hopwatch.demo.entrance.rejections import Rejections
from hopwatch.demo.faults import Dice, FaultAction
from hopwatch.demo.records import FlightMessage, wall_clock_us
from hopwatch.demo.truth import NodeAction, TruthLog

POLICY: Final = ClientPolicy(linger_s=0.1, backoff_max_s=0.5, max_waiting_bytes=1024 * 1024)
"""The gate syncs its disk for every batch, is started again within seconds, and three full batches wait for it."""
CHECK_S: Final = 1.0
"""Time after which a wait for the gate is interrupted to see whether it answers at all."""


class Client(Protocol):
    """The calls of :class:`hopwatch.client.GateClient` that a sender makes."""

    def send(
        self, data: object, *, event_id: UUID | str | None, event_time: datetime | int | None, wait_s: float
    ) -> str:
        """Accept an event, or raise ``QueueFullError`` after a wait for room."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until all events are settled, and return whether they are."""

    def close(self, timeout_s: float) -> bool:
        """End."""

    def counts(self) -> ClientCounts:
        """Return the counts up to now."""


class OutgoingEvent(NamedTuple):
    """A message that the gate has not answered for yet, and how it is broken, if it is."""

    message: FlightMessage
    breakage: Breakage | None


class EventSender:
    """Sends messages in order, and writes down what it did to each once the gate has answered for it."""

    def __init__(  # noqa: PLR0913 - a sender has these parts, each named where it is made
        self,
        *,
        connect: Callable[[Callable[[SendOutcome], object]], Client],
        truth: TruthLog,
        dice: Dice,
        seed: int,
        rejections: Rejections,
        patience_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put the parts together; ``dice`` say which messages are broken, ``seed`` in which way.

        ``connect`` makes the client that calls a function with each outcome, from whatever thread. The sender gives up
        after the gate has answered for nothing for ``patience_s``.
        """
        self._patience_s = patience_s
        self._truth = truth
        self._dice = dice
        self._seed = seed
        self._rejections = rejections
        self._now_s = now_s
        self._unanswered: dict[str, OutgoingEvent] = {}
        self._since_s = 0.0
        self._outcomes = deque[tuple[int, SendOutcome]]()
        self._client = connect(lambda outcome: self._outcomes.append((wall_clock_us(), outcome)))

    def send(self, messages: Sequence[FlightMessage]) -> None:
        """Send messages whose flights are parsed, as fast as the gate takes them.

        Raises:
            LinkError: it does not.
        """
        for message in messages:
            self._send(message)
        self._check()

    def finish(self) -> None:
        """Wait until the gate has answered for all.

        Raises:
            LinkError: it does not.
        """
        while not self._client.flush(CHECK_S):
            self._check()
        self._check()

    def close(self) -> None:
        """End, without what the gate has not answered for."""
        self._client.close(0.0)

    def _send(self, message: FlightMessage) -> None:
        item, breakage = self._break(message)
        if not self._unanswered:
            self._since_s = self._now_s()
        self._unanswered[item["id"]] = OutgoingEvent(message, breakage)
        while True:
            try:
                self._client.send(item["data"], event_id=item["id"], event_time=item["time"], wait_s=CHECK_S)
            except QueueFullError:
                self._check()
            else:
                return

    def _break(self, message: FlightMessage) -> tuple[Item, Breakage | None]:
        item = build_item(message)
        if self._dice.fate(message.number) is not FaultAction.REJECT:
            return item, None
        breakage = choose_breakage(self._seed, message.number)
        return breakage.on(item), breakage

    def _check(self) -> None:
        """Log what the gate has answered for; where it has been silent for too long, give it up."""
        while self._outcomes:
            at_us, outcome = self._outcomes.popleft()
            self._note(self._unanswered.pop(outcome.event_id), read_answer(outcome), at_us)
            self._since_s = self._now_s()
        if self._unanswered and self._now_s() - self._since_s >= self._patience_s:
            why = self._client.counts().last_failure or f"{len(self._unanswered):,} events are without an answer"
            raise describe_silence(self._patience_s, why)

    def _note(self, one: OutgoingEvent, answer: GateAnswer, at_us: int) -> None:
        """Log what was sent: the action is what the sender did to the event, whatever the gate answers.

        The gate keeps an event whose time cannot be under the moment at which it arrived, and tells when that was.
        """
        is_timeless = one.breakage is not None and one.breakage.place == "/time"
        event_time_us = (answer.arrived_us if is_timeless else 0) or one.message.event_time_us
        self._truth.write(NodeAction.CREATED, event_time_us, one.message.id)
        deed = NodeAction.HANDED_ON if one.breakage is None else NodeAction.REJECTED
        self._truth.write(deed, at_us, one.message.id)
        self._rejections.note(one.breakage, answer)
