"""Clients of Kafka that reach no broker: what is produced they keep, what is polled they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, SerializingProducer

Report = Callable[[KafkaError | None, Any], None]


class Letter(Message):
    """A message, as a client gives it."""

    def __new__(cls, *_: object) -> Self:
        """Make one, which clients else keep to themselves."""
        return super().__new__(cls)

    def __init__(self, headers: object, error: KafkaError | None = None) -> None:
        """Take what is asked of it."""
        self._headers, self._error = headers, error

    def headers(self) -> Any:  # noqa: ANN401 - whatever the test says
        """Return the headers."""
        if isinstance(self._headers, Exception):
            raise self._headers
        return self._headers

    def error(self) -> KafkaError | None:
        """Return the error."""
        return self._error

    def topic(self) -> str:
        """Return the topic."""
        return "orders"


class Sender(Producer):
    """A producer that delivers when it is polled."""

    def __init__(self) -> None:
        """Start with nothing to deliver."""
        self.produced: list[dict[str, Any]] = []
        self.reports: list[Report | None] = []
        self.outcomes: list[KafkaError | None] = []
        self.is_open = False

    def produce(  # type: ignore[override]
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int = -1,
        callback: Report | None = None,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """Take a message."""
        if isinstance(headers, int):
            raise TypeError("headers are a dict or a list")
        where = {"topic": topic, "partition": partition, "timestamp": timestamp}
        self.produced.append({"value": value, "key": key, "headers": headers, **where})
        self.reports.append(callback or on_delivery)

    def produce_batch(self, topic: str, messages: list[object]) -> int:
        """Take messages."""
        return len(messages) if topic else 0

    def poll(self, timeout: float | None = -1) -> int:
        """Report on all messages, with the outcomes that were set."""
        reports, self.reports = self.reports, []
        for report, error in zip(reports, self.outcomes or [None] * len(reports), strict=False):
            if report is not None:
                report(error, f"message, after {timeout} s")
        return len(reports)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self.reports)

    def __bool__(self) -> bool:
        """Say that it is there."""
        return True

    def __repr__(self) -> str:
        """Return its name."""
        return "<Sender>"

    def __enter__(self) -> Self:
        """Open it."""
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.is_open = False


class SerializingSender(SerializingProducer):
    """A producer that takes the key first, and delivers at once."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.produced: list[tuple[object, ...]] = []

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: object = None,
        value: object = None,
        partition: int = -1,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """Take a message, and deliver it."""
        self.produced.append((topic, key, value, partition, timestamp, headers))
        if on_delivery is not None:
            on_delivery(None, "message")


class Receiver(Consumer):
    """A consumer that has some messages."""

    def __init__(self, *letters: Letter | None) -> None:
        """Take them."""
        self.letters = [*letters]

    def poll(self, timeout: float | None = -1) -> Any:  # noqa: ANN401 - a letter, or none
        """Return the next one."""
        assert timeout
        return self.letters.pop(0) if self.letters else None

    def consume(self, num_messages: int | None = 1, timeout: float | None = -1) -> Any:  # noqa: ANN401 - letters
        """Return some."""
        assert timeout
        taken, self.letters = self.letters[:num_messages], self.letters[num_messages:]
        return taken
