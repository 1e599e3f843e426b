"""Simulated surroundings of a delivery on virtual time: topics with offsets, a sink with transactions, a receiver.

The topics outlive the engine, so that one can be killed and another started from what was committed.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.deliver.circuit_breaker import BreakerState
from hopwatch.deliver.interfaces import SettlementError
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.offset_tracker import OffsetTracker
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.probes.clock import Clock

MAIN: Final = "orders"
POLL_S: Final = 0.2


class StoredRecord(NamedTuple):
    """Record of a simulated topic: a message, and the time before which it is not taken."""

    message: DeliveryMessage
    until_us: int = 0


class Ended(NamedTuple):
    """Durable settlement, with the number of requests that had carried the message by then."""

    settlement: Settlement
    sent: int


@dataclass
class SimulatedTopics:
    """Topics, committed offsets, and all settlements that were made durable."""

    records: dict[tuple[str, int], list[StoredRecord]] = field(default_factory=lambda: defaultdict(list))
    committed: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    ended: dict[str, list[Settlement]] = field(default_factory=lambda: defaultdict(list))
    deferred: list[Settlement] = field(default_factory=list)
    settled: set[SourcePosition] = field(default_factory=set)

    def append(self, topic: str, partition: int, message: DeliveryMessage, until_us: int = 0) -> None:
        """Append a message, at a position of its own: every third offset is a marker of a transaction."""
        records = self.records[topic, partition]
        offset = len(records) + len(records) // 2
        positioned = message._replace(position=SourcePosition(topic, partition, offset))
        records.append(StoredRecord(positioned, until_us))

    @property
    def is_done(self) -> bool:
        """Return whether all records are settled."""
        return all(one.message.position in self.settled for records in self.records.values() for one in records)

    def commit(self, tracker: OffsetTracker) -> None:
        """Commit; nothing that is not settled may lie before a committed offset."""
        for topic, partition, offset, metadata in tracker.list_commits():
            before = [one.message.position for one in self.records[topic, partition]]
            unsettled = [one for one in before if one.offset < offset and one not in self.settled]
            assert not unsettled, f"the commit of {offset} skips {unsettled}"
            assert len(metadata) <= 4_096
            self.committed[topic, partition] = (offset, metadata)
        tracker.clear_changes()


class SimulatedSource:
    """Source of one process: it begins where the last one has committed."""

    def __init__(self, topics: SimulatedTopics, clock: Clock) -> None:
        """Join."""
        self._topics, self._clock = topics, clock
        self.tracker = OffsetTracker()
        self._next: dict[tuple[str, int], int] = {}

    async def poll(self, most: int) -> list[DeliveryMessage]:
        """Return what is due."""
        assert most >= 1
        found = self._take_due(most)
        if not found:
            await asyncio.sleep(POLL_S)
            found = self._take_due(most)
        return found

    def _take_due(self, most: int) -> list[DeliveryMessage]:
        found: list[DeliveryMessage] = []
        for place, records in list(self._topics.records.items()):
            if not self.tracker.has_partition(*place):
                position, metadata = self._topics.committed.get(place, (0, ""))
                self.tracker.assign_partition(*place, position, metadata)
                self._next[place] = sum(one.message.position.offset < position for one in records)
            while len(found) < most and self._next[place] < len(records):
                record = records[self._next[place]]
                if record.until_us > self._clock.wall_ns() // 1_000:
                    break
                self._next[place] += 1
                if self.tracker.take_message(*record.message.position):
                    found.append(record.message)
        if self.tracker.list_commits():
            self._topics.commit(self.tracker)
        return found


class SimulatedSink:
    """Sink of one process: a transaction takes a while, and may fail."""

    def __init__(self, topics: SimulatedTopics, source: SimulatedSource, failures: Sequence[bool] = ()) -> None:
        """Take the topics, and which transactions fail, one after the other."""
        self._topics, self._source, self._failures = topics, source, list(failures)
        self.duration_s = 0.01

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Settle all, or none."""
        await asyncio.sleep(self.duration_s)
        if self._failures and self._failures.pop(0):
            raise SettlementError("the transaction was aborted")
        for one in settlements:
            position = one.message.position
            assert position not in self._topics.settled, f"{position} is settled twice"
            self._topics.settled.add(position)
            self._source.tracker.settle_message(*position)
            if one.ending is Ending.DEFERRED:
                self._topics.deferred.append(one)
                self._topics.append(f"retry-{one.tier}", position.partition, one.message, one.until_us)
            else:
                self._topics.ended[one.message.message_id].append(one)
        self._topics.commit(self._source.tracker)
        return settlements


class Reaction(NamedTuple):
    """Reaction of the receiver to one request, after a while; statuses of 207 are taken in turn."""

    kind: str
    delay_s: float = 0.01
    statuses: tuple[int, ...] = (201,)
    retry_after: str = ""


GOOD: Final = Reaction("200")


@dataclass
class SimulatedReceiver:
    """Receiver that reacts by a script, and well when that is over; a request is judged when it arrives."""

    script: list[Reaction]
    max_events: int = 1_000
    topics: SimulatedTopics | None = None
    requests: list[tuple[str, ...]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    under_way: int = 0
    most_under_way: int = 0
    on_request: Callable[[Sequence[str]], None] = lambda _: None

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer | NoAnswer:
        """Take a request."""
        assert headers["Idempotency-Key"] == headers["webhook-id"]
        ids = tuple(event["id"] for event in json.loads(body))
        self.on_request(ids)
        self.requests.append(ids)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self._react(ids)
        finally:
            self.under_way -= 1

    async def _react(self, ids: tuple[str, ...]) -> Answer | NoAnswer:
        if len(ids) > self.max_events:
            return Answer(413)
        for one in ids:
            self.sent[one] += 1
        reaction = self.script.pop(0) if self.script else GOOD
        answer = self._judge(ids, reaction)
        await asyncio.sleep(reaction.delay_s)
        return answer

    def _judge(self, ids: tuple[str, ...], reaction: Reaction) -> Answer | NoAnswer:
        match reaction.kind:
            case "timeout":
                self.accepted.extend(ids)  # it was done, and nobody heard of it
                return NoAnswer(AttemptResult.TIMEOUT, "no answer within 10 s")
            case "broken":
                return NoAnswer(AttemptResult.BROKEN, "the connection broke")
            case "unreachable":
                return NoAnswer(AttemptResult.UNREACHABLE, "no connection")
            case "rubbish":
                return Answer(207, b'{"events": 7', reaction.retry_after)
            case "207":
                return self._judge_each(ids, reaction)
        status = int(reaction.kind)
        self._note(ids, status)
        return Answer(status, b"words", reaction.retry_after)

    def _judge_each(self, ids: tuple[str, ...], reaction: Reaction) -> Answer:
        each = [(one, reaction.statuses[at % len(reaction.statuses)]) for at, one in enumerate(ids)]
        for one, status in each:
            self._note((one,), status)
        return Answer(
            207, json.dumps({"events": [{"id": one, "status": status} for one, status in each]}).encode(),
            reaction.retry_after,
        )  # fmt: skip

    def _note(self, ids: Sequence[str], status: int) -> None:
        for one in ids:
            if status // 100 == 2:
                self.accepted.append(one)
            elif status // 100 in {3, 4} and status != 429:
                self.refused[one].append(status)


@dataclass
class BreakerWatch:
    """Observer that fails if a request is sent while the breaker is open, or two while it is half open."""

    state: BreakerState = BreakerState.CLOSED
    probes: int = 0
    opened: int = 0
    results: list[AttemptResult] = field(default_factory=list)
    in_hand: int = 0
    most_in_hand: int = 0
    waits: list[tuple[tuple[DeliveryMessage, ...], int]] = field(default_factory=list)

    def record_request(self, events: int, size_bytes: int) -> None:
        """Check the state."""
        assert events > 0
        assert size_bytes > 0
        assert self.state is not BreakerState.OPEN, "a request is sent while the breaker is open"
        if self.state is BreakerState.HALF_OPEN:
            self.probes += 1
            assert self.probes == 1, "two requests are sent while the breaker is half open"

    def record_result(self, events: int, result: AttemptResult, round_trip_s: float) -> None:
        """Keep it."""
        assert events > 0
        assert round_trip_s >= 0
        self.results.append(result)

    def record_cancellation(self) -> None:
        """Do nothing."""

    def record_breaker_state(self, state: BreakerState) -> None:
        """Keep it."""
        assert state is not self.state
        self.state, self.probes = state, 0
        self.opened += state is BreakerState.OPEN

    def record_wait(self, messages: Sequence[DeliveryMessage], until_us: int) -> None:
        """Keep it."""
        self.waits.append((tuple(messages), until_us))

    def record_in_hand(self, messages: int, size_bytes: int) -> None:
        """Keep the most."""
        assert (size_bytes > 0) == (messages > 0)
        self.in_hand, self.most_in_hand = messages, max(self.most_in_hand, messages)


def build_message(number: int, key: bytes | None = None, value: bytes = b'{"n":1}') -> DeliveryMessage:
    """Build a message, whose position comes with its topic."""
    return DeliveryMessage(SourcePosition(MAIN, 0, 0), f"m{number}", 1_700_000_000_000_000 + number, key, value)


def build_topics(messages: int, partitions: int, keys: int = 3) -> SimulatedTopics:
    """Build topics with messages, of some keys and without one, spread over partitions by their keys."""
    topics = SimulatedTopics()
    for number in range(messages):
        place = number % (keys + 1)
        key = None if place == keys else f"k{place}".encode()
        topics.append(MAIN, (number if key is None else place) % partitions, build_message(number, key))
    return topics


def seeded(seed: int) -> random.Random:
    """Return seeded chance."""
    return random.Random(seed)
