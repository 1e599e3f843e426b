"""A Kafka broker on paper: topics of one partition, what its readers committed, and clients that may be killed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from hopwatch.demo.links.topics import TopicInlet, TopicOutlet
from tests.demo.simulation import PaperClock

READ_US = 50_000


class KilledError(BaseException):
    """The process of a client is gone; nothing catches that."""


class PaperMessage(NamedTuple):
    """Message as a reader gets it."""

    payload: bytes
    at: int
    trouble: KafkaError | None = None

    def error(self) -> KafkaError | None:
        """Return what is wrong."""
        return self.trouble

    def offset(self) -> int:
        """Return the place in the topic."""
        return self.at

    def value(self) -> bytes:
        """Return the payload."""
        return self.payload


class PaperBroker:
    """Keeps what clients bring; ``calls_left`` counts down to the kill of whoever calls then."""

    def __init__(self) -> None:
        """Start empty, and without end."""
        self.topics: dict[str, list[bytes]] = defaultdict(list)
        self.committed: dict[str, int] = {}
        self.commits: list[int] = []
        self.refusal: KafkaError | None = None
        """Why no message is taken."""
        self.trouble: KafkaError | None = None
        """Why nothing can be read."""
        self.silences: list[KafkaError] = []
        """Why the next questions have no answer."""
        self.calls_left = -1
        self.clock = PaperClock()
        """Moves on whenever somebody reads."""

    def outlet(self, topic: str) -> TopicOutlet:
        """Return an outlet with a client of this broker."""
        producer: Any = PaperProducer(self)
        return TopicOutlet(producer, topic)

    def inlet(self, topic: str, now_s: Callable[[], float] = lambda: 0.0) -> TopicInlet:
        """Return an inlet with a client of this broker."""
        consumer: Any = PaperConsumer(self)
        return TopicInlet(consumer, topic, now_s)

    def called(self) -> None:
        """Count a call of some client; one that is killed calls in vain, whatever it still tries."""
        self.calls_left -= self.calls_left > 0
        if self.calls_left == 0:
            raise KilledError

    def answer(self) -> None:
        """Answer a question, or not."""
        self.called()
        if self.silences:
            raise KafkaException(self.silences.pop(0))


class PaperProducer:
    """Keeps what it is given until it is flushed, or until the queue is long; a killed one has sent a part of it."""

    def __init__(self, broker: PaperBroker) -> None:
        """Connect."""
        self._broker = broker
        self._queue: deque[tuple[str, bytes, Callable[[KafkaError | None, Any], None]]] = deque()

    def produce(self, topic: str, value: bytes, on_delivery: Callable[[KafkaError | None, Any], None]) -> None:
        """Queue a message."""
        self._broker.called()
        self._queue.append((topic, value, on_delivery))

    def poll(self, timeout: float) -> None:
        """Deliver nothing: what nobody waits for takes its time."""
        assert timeout == 0

    def flush(self) -> None:
        """Deliver all that is queued."""
        while self._queue:
            topic, value, heard = self._queue.popleft()
            if self._broker.refusal is None:
                self._broker.topics[topic].append(value)
            self._broker.called()  # the broker has it, and its client may never hear of it
            heard(self._broker.refusal, None)


class PaperConsumer:
    """Reads one topic."""

    def __init__(self, broker: PaperBroker) -> None:
        """Connect."""
        self._broker = broker
        self._topic, self._next = "", 0

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the place that was committed last."""
        assert timeout
        self._broker.answer()
        return [TopicPartition(place.topic, 0, self._broker.committed.get(place.topic, -1001)) for place in places]

    def assign(self, places: list[TopicPartition]) -> None:
        """Begin to read at a place."""
        (place,) = places
        self._topic, self._next = place.topic, place.offset

    def poll(self, timeout: float) -> PaperMessage | None:
        """Return the next message."""
        assert timeout >= 0
        return next(iter(self.consume(1, timeout)), None)

    def consume(self, count: int, timeout: float) -> list[PaperMessage]:
        """Return the next messages."""
        assert timeout >= 0
        self._broker.clock.us += READ_US
        self._broker.called()
        if self._broker.trouble is not None:
            return [PaperMessage(b"", 0, self._broker.trouble)]
        start = self._next
        found = self._broker.topics[self._topic][start : start + count]
        self._next += len(found)
        return [PaperMessage(payload, at) for at, payload in enumerate(found, start)]

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        """Return the ends of a topic."""
        assert timeout
        self._broker.answer()
        return 0, len(self._broker.topics[place.topic])

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        """Keep a place."""
        self._broker.answer()
        (place,) = offsets
        self._broker.committed[place.topic] = place.offset
        self._broker.commits.append(place.offset if asynchronous else -place.offset)

    def close(self) -> None:
        """Hang up."""
