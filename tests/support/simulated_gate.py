"""Gate that answers as a test has drawn it, and remembers what it took; and what drives a client's engine with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hopwatch.client.engine import SendEngine
from hopwatch.client.event_records import EventRecord, encode_batch
from hopwatch.client.outcomes import SendOutcome
from hopwatch.client.policy import ClientPolicy
from hopwatch.client.queues import EventQueue
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer

MAX_STEPS = 100_000
RECOVERABLE = frozenset({408, 425, 429})
OF_THE_SENDER = frozenset({401, 403, 404, 405, 407})


@dataclass(frozen=True)
class Reaction:
    """Reaction to a request: a status for all, or for each event in turn; without an answer it may have been taken."""

    status: int = 207
    statuses: tuple[int, ...] = (201,)
    retry_after: str = ""
    is_taken: bool = False
    delay_s: float = 0.01


@dataclass
class SimulatedGate:
    """Gate that reacts by a script, and well once that is over."""

    script: list[Reaction]
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    requests: list[list[str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def answer(self, body: bytes) -> tuple[Answer | NoAnswer, Reaction]:
        """Answer a request."""
        ids = [event["id"] for event in json.loads(body)]
        self.requests.append(ids)
        self.bodies.append(body)
        reaction = self.script.pop(0) if self.script else Reaction()
        if reaction.status == 0:
            self.taken.update(ids if reaction.is_taken else [])
            return NoAnswer(AttemptResult.BROKEN, "the connection broke"), reaction
        if reaction.status != 207:
            if reaction.status >= 400 and reaction.status not in OF_THE_SENDER and len(ids) == 1:
                self._refuse(ids, reaction.status)
            return Answer(reaction.status, b"{}", reaction.retry_after), reaction
        events = []
        for number, event_id in enumerate(ids):
            status = reaction.statuses[number % len(reaction.statuses)]
            if status < 300:
                self.taken[event_id] += 1
            self._refuse([event_id], status)
            events.append({"id": event_id, "status": status})
        return Answer(207, json.dumps({"events": events}).encode(), reaction.retry_after), reaction

    def _refuse(self, ids: Sequence[str], status: int) -> None:
        if 300 <= status < 500 and status not in RECOVERABLE:
            self.refused.update(ids)


class ClientDriver:
    """Life of one client: its engine over a queue, by hand, on a time that passes at once."""

    def __init__(
        self, policy: ClientPolicy, queue: EventQueue, gate: SimulatedGate, chance: Callable[[], float], now_s: float
    ) -> None:
        """Begin."""
        self.queue, self.now_s, self.waits_s = queue, now_s, list[tuple[float, Reaction]]()
        self.outcomes: list[SendOutcome] = []
        self._gate, self._chance = gate, chance
        self._engine = SendEngine(policy, queue)
        self._failed: tuple[float, Reaction] | None = None

    def append(self, record: EventRecord) -> None:
        """Accept an event; errors are those of the queue."""
        self.queue.append(record)
        self._engine.note_append(self.now_s)

    def flush(self) -> None:
        """Let all events be due."""
        self._engine.request_flush(self.queue.end_mark)

    def step(self, *, is_finished: bool = True) -> bool:
        """Send what is due, or let the time pass until something is; False if nothing is left to do.

        A client that is killed between its report and its queue has not ``is_finished``.
        """
        step = self._engine.next_step(self.now_s)
        if not step.batch:
            self.now_s += step.wait_s or 0.0
            return step.wait_s is not None
        if self._failed is not None:
            self.waits_s.append((self.now_s - self._failed[0], self._failed[1]))
        answer, reaction = self._gate.answer(encode_batch([record.item for record in step.batch]))
        self.now_s += reaction.delay_s
        settled = self._engine.settle(answer, self.now_s, round(self.now_s * 1e6), self._chance())
        self.outcomes += settled.outcomes
        self._failed = (self.now_s, reaction) if settled.failure else None
        if is_finished:
            self._engine.finish()
        return True

    def run(self) -> None:
        """Go on until nothing is left to do."""
        steps = 0
        while self.step():
            steps += 1
            assert steps < MAX_STEPS, "the client sends for ever"


def ids_of(records: Sequence[EventRecord]) -> list[str]:
    """Return the ids of records."""
    return [record.id_text for record in records]
