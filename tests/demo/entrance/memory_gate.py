"""A gate on paper: says of each event what it is told to say, and may be away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hopwatch.demo.entrance.breakage import Item
from hopwatch.demo.entrance.client import GateAnswer, GateAwayError
from tests.demo.simulation import NOON_US

ENTERED = GateAnswer(201, NOON_US, "", "")
NOT_WRITTEN = GateAnswer(503, NOON_US, "", "")


class PaperGate:
    """Takes what a sender sends."""

    def __init__(self, say: Callable[[Item], GateAnswer] = lambda _: ENTERED) -> None:
        """Take what is said of an event."""
        self.say = say
        self.away = 0
        """So many requests go unanswered."""
        self.schemas: dict[str, Any] = {}
        self.batches: list[list[str]] = []
        """The ids of each request that was answered."""

    def register(self, subject: str, schema: dict[str, Any]) -> None:
        """Keep a schema."""
        self._answer()
        self.schemas[subject] = schema

    def post(self, stream: str, items: Sequence[Item]) -> list[GateAnswer]:
        """Say something of each event."""
        assert stream == "flights"
        self._answer()
        self.batches.append([one["id"] for one in items])
        return [self.say(one) for one in items]

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise GateAwayError("Connection refused")
