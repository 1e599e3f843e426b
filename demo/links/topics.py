"""A link through Kafka: one topic of one partition, written with acknowledgements, read with commits by hand.

A message has left once the broker has acknowledged it. A reader's place is committed up to the first message that has
not left it yet. So a killed node finds again, behind the last commit, all that it held: each message arrives at least
once, and none is lost. What had left and was not committed yet is handled twice.

Partitions are not shared here, so that the reader assigns itself its own without joining a group: a node that
comes back after ``kill -9`` reads on at once, and waits for no session of the killed one to run out.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Self, cast

import stamina
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from hopwatch.demo.link import LinkError
from hopwatch.probes.kafka.client import Config, build_client_config, describe_kafka_error, read_access

MAX_MESSAGES: Final = 500
"""Messages received at once."""
COMMIT_EVERY_S: Final = 0.25
"""Interval between commits of an offset; messages handled since the last one come again after a kill."""
ANSWER_S: Final = 10.0
"""Timeout of a request to a broker."""
PATIENCE_S: Final = 30.0
"""Longest tolerated outage of the brokers: a message waits, and a request is repeated, for so long."""
ADVICE: Final = "look after the brokers, start the demo again"
_PARTITION: Final = 0


class TopicOutlet:
    """The sending end."""

    def __init__(self, producer: Producer, topic: str) -> None:
        """Take the client and the topic to write to."""
        self._producer = producer
        self._topic = topic
        self._refusal = ""

    @classmethod
    def open(cls, brokers: str, topic: str) -> Self:
        """Return an outlet with a client of its own."""
        asked = {"acks": "all", "enable.idempotence": True, "linger.ms": 2}
        asked |= {"message.timeout.ms": round(PATIENCE_S * 1_000)}
        asked |= {"queue.buffering.max.messages": 0}  # no bound but that of its bytes
        return cls(Producer(build_client_settings(brokers) | asked), topic)

    def send(self, payload: bytes, then: Callable[[], None]) -> None:
        """Give a message to the client; ``then`` is called once the broker has it.

        Raises:
            LinkError: the broker has refused one.
        """

        def heard(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                then()
            else:
                self._refusal = self._refusal or describe_kafka_error(error)

        self._producer.produce(self._topic, payload, on_delivery=heard)
        self._producer.poll(0)
        self._check()

    def settle(self) -> None:
        """Wait until the broker has all that was sent.

        Raises:
            LinkError: it has refused some of it.
        """
        self._producer.flush()
        self._check()

    def close(self) -> None:
        """Settle; the client goes with the process.

        Raises:
            LinkError: the broker has refused something.
        """
        self.settle()

    def _check(self) -> None:
        if self._refusal:
            raise LinkError(f"the topic {self._topic} has not taken a message: {self._refusal}; {ADVICE}")


class TopicInlet:
    """The receiving end."""

    def __init__(self, consumer: Consumer, topic: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """Take the client, and go on behind the last commit.

        Raises:
            LinkError: no broker says where that is.
        """
        self._consumer = consumer
        self._topic = topic
        self._now_s = now_s
        (found,) = self._asked(consumer.committed, [TopicPartition(topic, _PARTITION)], timeout=ANSWER_S)
        # Without a commit it is a negative number, and the topic as new as the run.
        self._next = self._committed = self._behind_done = max(found.offset, 0)
        consumer.assign([self._place(self._next)])
        self._open: deque[int] = deque()
        self._done_count = 0
        self._commit_due_s = now_s() + COMMIT_EVERY_S

    @classmethod
    def open(cls, brokers: str, topic: str) -> Self:
        """Return an inlet with a client of its own.

        Raises:
            LinkError: no broker says how far this node has come.
        """
        # An offset that is gone ends the node: to read on elsewhere would be an unnoticed loss.
        asked = {"group.id": topic, "enable.auto.commit": False, "auto.offset.reset": "error"}
        return cls(Consumer(build_client_settings(brokers) | asked), topic)

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return what has come; none when ``timeout_s`` passed.

        Raises:
            LinkError: the topic cannot be read any more.
        """
        first = self._consumer.poll(max(0.0, timeout_s))
        if first is None:
            return []
        return [self._taken(message) for message in (first, *self._consumer.consume(MAX_MESSAGES - 1, 0))]

    def done(self, count: int) -> None:
        """Commit, when that is due, the place behind the first ``count`` of all messages that were received."""
        while self._done_count < count:
            self._behind_done = self._open.popleft() + 1
            self._done_count += 1
        if self._behind_done > self._committed and self._now_s() >= self._commit_due_s:
            self._commit(asynchronous=True)

    def has_ended(self) -> bool:
        """Return whether all that is in the topic was received.

        Raises:
            LinkError: no broker says how much that is.
        """
        place = TopicPartition(self._topic, _PARTITION)
        _, end = self._asked(self._consumer.get_watermark_offsets, place, timeout=ANSWER_S)
        return bool(self._next >= end)

    def close(self) -> None:
        """Commit the last place and let go of the client.

        Raises:
            LinkError: the place cannot be committed.
        """
        if self._behind_done > self._committed:
            self._commit(asynchronous=False)
        self._consumer.close()

    def _taken(self, message: Message) -> bytes:
        if (error := message.error()) is not None:
            raise self._broken(describe_kafka_error(error))
        offset = cast("int", message.offset())  # every message that was read has one
        self._next = offset + 1
        self._open.append(offset)
        return message.value() or b""

    def _commit(self, *, asynchronous: bool) -> None:
        self._asked(self._consumer.commit, offsets=[self._place(self._behind_done)], asynchronous=asynchronous)
        self._committed = self._behind_done
        self._commit_due_s = self._now_s() + COMMIT_EVERY_S

    def _place(self, offset: int) -> TopicPartition:
        return TopicPartition(self._topic, _PARTITION, offset)

    def _asked(self, ask: Callable[..., Any], *what: object, **how: object) -> Any:  # noqa: ANN401 - as the client has it
        """Return the brokers' answer; young ones first have to agree on who of them keeps the offsets."""
        try:
            return stamina.RetryingCaller(attempts=None, timeout=PATIENCE_S)(KafkaException, ask, *what, **how)
        except KafkaException as error:
            raise self._broken(describe_kafka_error(error)) from None

    def _broken(self, why: str) -> LinkError:
        return LinkError(f"the topic {self._topic} cannot be read: {why}; {ADVICE}")


def build_client_settings(brokers: str) -> Config:
    """Return what reader and writer have in common; who they are stands in the environment, as it does for probes."""
    return build_client_config(brokers, read_access(os.environ), "hopwatch-demo") | {"error_cb": _log_error}


def _log_error(error: KafkaError) -> None:
    """Write down what goes wrong in the background, most of which the client mends by itself."""
    sys.stderr.write(f"{describe_kafka_error(error)}\n")
