"""A client of the gate on paper, with little room: says of each event what it is told to say."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from hopwatch.client import ClientCounts, OutcomeResult, QueueFullError, SendOutcome
from tests.demo.hand_clock import HandClock

ROOM: Final = 10
Say = Callable[[dict[str, Any]], SendOutcome | None]
"""What is said of an event; None where the gate has no answer yet."""


def enter(event: dict[str, Any]) -> SendOutcome:
    """Return the outcome of an event that entered."""
    return SendOutcome(event["id"], OutcomeResult.ENTERED, 201, "", b"")


def reject(event: dict[str, Any], place: str, detail: str, arrived_us: int) -> SendOutcome:
    """Return the outcome of an event that the gate refuses, as the client has it."""
    arrived = datetime.fromtimestamp(arrived_us / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    errors = [{"place": f"/7{place}", "detail": detail}, {"place": "/7/id", "detail": "another"}]
    told = json.dumps({"id": event["id"], "status": 422, "arrived": arrived, "errors": errors})
    reason = "HTTP 422 Unprocessable Content"
    return SendOutcome(event["id"], OutcomeResult.REJECTED, 422, reason, b"", told.encode())


class PaperClient:
    """Keeps what is sent, in order; each wait for the gate takes as long as it may, and ends with its answers."""

    def __init__(self, clock: HandClock) -> None:
        """Begin with a gate that takes everything."""
        self._clock = clock
        self.tell: Callable[[SendOutcome], object] = lambda _: None
        self.say: Say = enter
        self.sent: list[str] = []
        """The ids of all events that were accepted."""
        self.waiting: list[dict[str, Any]] = []
        self.last_failure = ""
        self.is_closed = False

    def send(self, data: object, *, event_id: object, event_time: object, wait_s: float) -> str:
        """Accept an event."""
        if len(self.waiting) == ROOM:
            self._wait(wait_s)
        if len(self.waiting) == ROOM:
            raise QueueFullError("no room")
        self.waiting.append({"id": str(event_id), "time": event_time, "data": data})
        self.sent.append(str(event_id))
        return str(event_id)

    def flush(self, timeout_s: float) -> bool:
        """Wait for the gate."""
        self._wait(timeout_s)
        return not self.waiting

    def close(self, timeout_s: float) -> bool:
        """End."""
        assert timeout_s == 0
        self.is_closed = True
        return not self.waiting

    def counts(self) -> ClientCounts:
        """Return the reason alone."""
        return ClientCounts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.last_failure)

    def _wait(self, wait_s: float) -> None:
        self._clock.s += wait_s
        left = []
        for event in self.waiting:
            if (outcome := self.say(event)) is None:
                left.append(event)
            else:
                self.tell(outcome)
        self.waiting = left
