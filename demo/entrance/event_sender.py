"""The sender of events: breaks some messages, posts all until the gate has answered each, and logs the truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol

from hopwatch.demo.entrance.breakage import Breakage, Item, choose_breakage
from hopwatch.demo.entrance.client import GateAnswer, GateAwayError
from hopwatch.demo.entrance.events import SCHEMA, SUBJECT, build_item
from hopwatch.demo.entrance.rejections import Rejections
from hopwatch.demo.faults import Dice, FaultAction
from hopwatch.demo.link import LinkError
from hopwatch.demo.records import FlightMessage, wall_clock_us
from hopwatch.demo.stream import STREAM
from hopwatch.demo.truth import NodeAction, TruthLog

MAX_EVENTS: Final = 500
"""Events of one request: with 400 bytes each they are far from the gate's bound of 1 MiB."""
PATIENCE_S: Final = 30.0
"""Default time after which the demo gives up a gate that has accepted nothing."""
RETRY_S: Final = 0.5
"""Wait before events are sent again."""


class Client(Protocol):
    """The requests to the gate that a sender makes."""

    def register(self, subject: str, schema: dict[str, Any]) -> None:
        """Register a schema."""

    def post(self, stream: str, items: Sequence[Item]) -> list[GateAnswer]:
        """Post events."""


class OutgoingEvent(NamedTuple):
    """A message for the gate, and how it is broken, if it is."""

    message: FlightMessage
    item: Item
    breakage: Breakage | None


class EventSender:
    """Sends messages in batches, in order; those that were not written are sent again with the same ids."""

    def __init__(  # noqa: PLR0913 - a sender has these parts, each named where it is made
        self,
        *,
        client: Client,
        truth: TruthLog,
        dice: Dice,
        seed: int,
        rejections: Rejections,
        patience_s: float = PATIENCE_S,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Put the parts together; ``dice`` say which messages are broken, ``seed`` in which way.

        The sender gives up after the gate has accepted nothing for ``patience_s``.
        """
        self._patience_s = patience_s
        self._client = client
        self._truth = truth
        self._dice = dice
        self._seed = seed
        self._rejections = rejections
        self._now_s = now_s
        self._sleep = sleep

    def register(self) -> None:
        """Register the schema with the gate; retry while the gate starts.

        Raises:
            LinkError: the gate does not take it.
        """
        give_up_s = self._now_s() + self._patience_s
        while True:
            try:
                self._client.register(SUBJECT, SCHEMA)
            except GateAwayError as error:
                self._wait(give_up_s, str(error))
            else:
                return

    def send(self, messages: Sequence[FlightMessage]) -> None:
        """Send messages whose flights are parsed, until the gate has accepted or rejected each.

        Raises:
            LinkError: it has not within the time that it may take.
        """
        left = [self._broken(message) for message in messages]
        give_up_s, why = self._now_s() + self._patience_s, ""
        while left:
            again: list[OutgoingEvent] = []
            for start in range(0, len(left), MAX_EVENTS):
                some = left[start : start + MAX_EVENTS]
                try:
                    again += self._posted(some)
                except GateAwayError as error:
                    again, why = again + some, str(error)
            if again:
                self._wait(give_up_s, why or f"{len(again)} events were not written")
            left = again

    def _broken(self, message: FlightMessage) -> OutgoingEvent:
        event = build_item(message)
        if self._dice.fate(message.number) is not FaultAction.REJECT:
            return OutgoingEvent(message, event, None)
        breakage = choose_breakage(self._seed, message.number)
        return OutgoingEvent(message, breakage.on(event), breakage)

    def _posted(self, some: Sequence[OutgoingEvent]) -> list[OutgoingEvent]:
        """Post some events, log what was done to them, and return those to send again."""
        answers = self._client.post(STREAM, [one.item for one in some])
        again = []
        for one, answer in zip(some, answers, strict=True):
            if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
                again.append(one)
            else:
                self._note(one, answer)
        return again

    def _note(self, one: OutgoingEvent, answer: GateAnswer) -> None:
        """Log what was sent: the action is what the sender did to the event, whatever the gate answers.

        The gate keeps an event whose time cannot be under the moment at which it arrived, and tells when that was.
        """
        is_timeless = one.breakage is not None and one.breakage.place == "/time"
        event_time_us = answer.arrived_us if is_timeless else one.message.event_time_us
        self._truth.write(NodeAction.CREATED, event_time_us, one.message.id)
        deed = NodeAction.HANDED_ON if one.breakage is None else NodeAction.REJECTED
        self._truth.write(deed, wall_clock_us(), one.message.id)
        self._rejections.note(one.breakage, answer)

    def _wait(self, give_up_s: float, why: str) -> None:
        if self._now_s() >= give_up_s:
            raise LinkError(f"the gate has taken nothing for {self._patience_s:g} s: {why}; look into its log")
        self._sleep(RETRY_S)
