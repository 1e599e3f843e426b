"""Both links of a node of the service: it reads a topic in a consumer group and writes others in transactions.

What a node writes and the offsets of what it has read are one transaction, and readers see committed messages alone. So
each message passes a node exactly once, whenever the process is killed: what was written and not committed is taken
back, and the messages are read again.

The group's member is static: a process that starts again takes its partitions back at once, where the group would wait
for the session of the killed one to end otherwise. Its transactional id is as fixed: the brokers take back what the
killed process left open when the new one starts, and refuse the old one from then on.

After an error the process ends, and is started again by whoever started it: what holds after a kill holds then as well.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from hopwatch.demo.entrance import events
from hopwatch.demo.link import RESTART_EXIT_CODE, LinkError, LinkInterruptedError
from hopwatch.demo.links.ends import TransactionalEnds
from hopwatch.demo.links.topics import build_client_settings
from hopwatch.demo.records import FlightMessage, dump_flight, parse_flight_json
from hopwatch.probes import message_headers
from hopwatch.probes.kafka.client import describe_kafka_error, is_fatal_error

MAX_MESSAGES: Final = 1_000
"""Messages of one transaction."""
ANSWER_S: Final = 30.0
"""Timeout of a request to the brokers."""
HANGS_AFTER_S: Final = 2 * ANSWER_S
"""Time after which a transaction has hung: the client may wait forever for a coordinator that went away."""
SESSION_MS: Final = 10_000
TRANSACTION_MS: Final = 30_000


class PendingRecord(NamedTuple):
    """Record that waits for the next transaction, and what is called once it is committed."""

    topic: str
    message: FlightMessage
    then: Callable[[], None]


class TransactionalLink:
    """The inlet and the outlet of one node, which share their transactions."""

    def __init__(
        self,
        ends: TransactionalEnds,
        consumer: Consumer,
        producer: Producer,
        choose_next: Callable[[FlightMessage], str],
    ) -> None:
        """Take the clients, and what says to which of the next nodes a message goes.

        Raises:
            LinkInterruptedError: the brokers let no transaction begin.
        """
        self._ends, self._consumer, self._producer, self._choose_next = ends, consumer, producer, choose_next
        self._waiting: list[PendingRecord] = []
        self._read: deque[tuple[int, int]] = deque()
        self._done_count = 0
        self._ends_reached: dict[int, int] = {}
        self._is_taken_away = False
        try:
            producer.init_transactions(ANSWER_S)
        except KafkaException as error:
            raise _interrupted("no transaction can begin", error) from None
        consumer.subscribe([ends.inlet_topic], on_revoke=self._note_revoked, on_lost=self._note_revoked)

    @classmethod
    def open(cls, ends: TransactionalEnds, choose_next: Callable[[FlightMessage], str]) -> Self:
        """Return the link with clients of its own.

        Raises:
            LinkInterruptedError: the brokers let no transaction begin.
        """
        common = build_client_settings(ends.brokers)
        consumer = Consumer(
            common
            | {
                "group.id": ends.inlet_topic,
                "group.instance.id": f"{ends.inlet_topic}-1",
                "session.timeout.ms": SESSION_MS,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        producer = Producer(
            common
            | {
                "transactional.id": f"{ends.inlet_topic}-1",
                "transaction.timeout.ms": TRANSACTION_MS,
                "message.timeout.ms": TRANSACTION_MS,
                "linger.ms": 5,
            }
        )
        return cls(ends, consumer, producer, choose_next)

    def receive(self, timeout_s: float) -> list[FlightMessage]:
        """Return what has come; none when ``timeout_s`` passed.

        Raises:
            LinkInterruptedError: the topic cannot be read now.
            LinkError: a message has no marks, or is no flight.
        """
        first = self._consumer.poll(max(0.0, timeout_s))
        # Each is in hand before the next call, which may find that the partition is gone.
        received = [] if first is None else self._parse_all([first])
        if first is not None:
            received += self._parse_all(self._consumer.consume(MAX_MESSAGES - 1, 0))
        if self._is_taken_away:
            told = f"partitions of {self._ends.inlet_topic} were taken away with messages in hand, which are read again"
            raise LinkInterruptedError(f"{told}; the process ends, to be started again")
        return received

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Take a message for the next transaction."""
        topic = self._ends.outlet_topics[self._choose_next(message)]
        self._waiting.append(PendingRecord(topic, message, then))

    def settle(self) -> None:
        """Do nothing: what was handed on leaves with the next :meth:`commit`."""

    @property
    def waiting_count(self) -> int:
        """Return how many messages wait for the next transaction."""
        return len(self._waiting)

    def commit(self, done_count: int) -> None:
        """Write what waits, and that the first ``done_count`` of all that came are done, in one transaction.

        Raises:
            LinkInterruptedError: the brokers do not take it; nothing of it is visible then, or all of it.
        """
        offsets: dict[int, int] = {}
        while self._done_count < done_count:
            partition, offset = self._read.popleft()
            offsets[partition] = offset + 1
            self._done_count += 1
        if not offsets and not self._waiting:
            return
        places = [TopicPartition(self._ends.inlet_topic, partition, at) for partition, at in offsets.items()]
        hung = threading.Timer(HANGS_AFTER_S, os._exit, (RESTART_EXIT_CODE,))
        hung.start()
        try:
            self._write(places)
        except KafkaException as error:
            raise _interrupted("the transaction has failed", error) from None
        finally:
            hung.cancel()
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            record.then()

    def has_ended(self) -> bool:
        """Return whether all that is in the topic was received."""
        try:
            mine = self._consumer.assignment()
            ends = [self._consumer.get_watermark_offsets(one, ANSWER_S)[1] for one in mine]
        except KafkaException:
            return False
        reached = self._ends_reached
        return bool(mine) and all(reached.get(one.partition, -1) >= end for one, end in zip(mine, ends, strict=True))

    def close(self) -> None:
        """Leave; what waits is left to the next process."""
        self._consumer.close()

    def _write(self, places: list[TopicPartition]) -> None:
        self._producer.begin_transaction()
        for topic, message, _ in self._waiting:
            headers = _build_headers(message)
            while True:
                try:
                    self._producer.produce(topic, dump_flight(message), message.id, headers=headers)
                except BufferError:
                    self._producer.poll(0.1)
                else:
                    break
        if places:
            metadata = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(places, metadata, ANSWER_S)
        self._producer.commit_transaction(ANSWER_S)

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - public in all but name
            self._ends_reached[message.partition() or 0] = message.offset() or 0
            return False
        if not is_fatal_error(error):
            return False  # the client goes on by itself
        raise LinkInterruptedError(f"the topic {self._ends.inlet_topic} cannot be read: {describe_kafka_error(error)}")

    def _parse_all(self, messages: list[Message]) -> list[FlightMessage]:
        return [self._parse(message) for message in messages if self._is_record(message)]

    def _parse(self, message: Message) -> FlightMessage:
        self._read.append((message.partition() or 0, cast("int", message.offset())))
        try:
            found = message_headers.parse_headers(message.headers())
        except ValueError as error:
            raise LinkError(f"a message of {self._ends.inlet_topic} has marks that cannot be read: {error}") from None
        if found is None:
            raise LinkError(f"a message of {self._ends.inlet_topic} carries no marks")
        value = message.value() or b""
        if self._ends.is_gated:
            return events.unpack_event(events.pack_event(found.message_id, found.event_us, value))
        return parse_flight_json(found.message_id, found.event_us, value)

    def _note_revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        # What was read and is not committed comes again, here or elsewhere: whoever went on would hand it on twice.
        self._is_taken_away = self._is_taken_away or bool(self._read)
        for one in partitions:
            self._ends_reached.pop(one.partition, None)


def _build_headers(message: FlightMessage) -> list[tuple[str, str | bytes]]:
    identity = str(uuid.UUID(bytes=message.id))
    return [(message_headers.ID_HEADER, identity), (message_headers.TIME_HEADER, str(message.event_time_us))]


def _interrupted(what: str, error: KafkaException) -> LinkInterruptedError:
    return LinkInterruptedError(f"{what}: {describe_kafka_error(error)}; the process ends, to be started again")
