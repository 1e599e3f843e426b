"""Source topic of a validator: its assigned partitions, their next offsets, and the replay of earlier records.

The committed offsets of the group are the only record of progress: a newly assigned partition is read from there, and
so is each one after a transaction that failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.gate.retry import KafkaRetry, StoppedError
from hopwatch.gate.start_offsets import find_start_offsets, read_committed
from hopwatch.gate.uniqueness_replay import UniquenessReplay
from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import SourceTopic

POLL_S: Final = 0.2
"""Maximum wait of one poll for records."""
MAX_RECORDS: Final = 5_000
"""Maximum number of records of one poll."""


class TopicSource:
    """Consumer of a topic in a group; it commits only the start offsets of a new group."""

    def __init__(
        self, topic: SourceTopic, patience: KafkaRetry, around: RunContext, *, from_start: bool, back_us: int = 0
    ) -> None:
        """Take the parts; ``back_us`` is the time span that is read again for uniqueness rules, in µs."""
        self._topic, self._retry, self._context = topic, patience, around
        self._consumer: Consumer = topic.consumer
        self._from_start = from_start
        self._replay = UniquenessReplay(topic, patience, around, back_us)
        self._next_offsets: dict[int, int] = {}
        """Next offset of each assigned partition."""

    def open(self) -> None:
        """Join the group."""
        self._consumer.subscribe([self._topic.place.topic], self._on_assigned, self._on_revoked, self._on_revoked)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def group_metadata(self) -> object:
        """Return the group metadata, by which the brokers check that the partitions are still assigned here."""
        return self._consumer.consumer_group_metadata()

    @property
    def next_offsets(self) -> dict[int, int]:
        """Next offset of each assigned partition: what was committed of it."""
        return dict(self._next_offsets)

    def poll(self, most: int, timeout_s: float = POLL_S) -> list[Message]:
        """Return new records of the assigned partitions.

        Raises:
            TapSourceError: the topic cannot be read.
            StoppedError: a stop was requested while the brokers did not answer.
        """
        messages = self._topic.poll(most, timeout_s)
        return self._drop_repeats([message for message in messages if self._is_record(message)])

    def read_history(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield earlier records that uniqueness rules need before the new ones are checked.

        Raises:
            StoppedError: a stop was requested.
        """
        if messages:
            # A record without a time of its own, or with one before 1970, arrives now, and so does one from ahead.
            now_ms = self._context.wall_us() // 1_000
            times_ms = [at_ms for message in messages if (at_ms := message.timestamp()[1]) >= 0]
            yield from self._replay.read_records(self._next_offsets, min([*times_ms, now_ms]))

    def mark_done(self, read: Sequence[TopicPartition]) -> None:
        """Advance the offsets after a completed transaction."""
        for one in read:
            if one.partition in self._next_offsets:
                self._next_offsets[one.partition] = one.offset
                self._replay.mark_done(one.partition, one.offset)

    def find_next_offsets(self, messages: Sequence[Message]) -> list[TopicPartition]:
        """Return the offsets to commit after some records."""
        last = {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}
        return [TopicPartition(self._topic.place.topic, number, offset) for number, offset in last.items()]

    def rewind(self) -> dict[int, int]:
        """Return to the committed offsets of the group, and return them.

        Raises:
            StoppedError: a stop was requested while the brokers did not answer.
        """
        found = read_committed(self._consumer, self._retry, self._topic.place.topic, list(self._next_offsets))
        committed = {number: one.offset for number, one in found.items()}
        for number, offset in committed.items():
            self._next_offsets[number] = offset
            self.seek(number, offset)
        return committed

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return message.partition() in self._next_offsets
        if not is_partition_end(error):
            self._topic.report_error(error)
        return False

    def _drop_repeats(self, messages: Sequence[Message]) -> list[Message]:
        """Return the records that were not processed before, each once.

        Records are delivered again after a rewind to the committed offsets, or when the client fetches them a second
        time because their partition got another leader.
        """
        behind = dict(self._next_offsets)
        found = []
        for message in messages:
            number, offset = message.partition() or 0, message.offset() or 0
            if offset >= behind[number]:
                behind[number] = offset + 1
                found.append(message)
        return found

    def seek(self, number: int, offset: int) -> None:
        """Read a partition on from an offset."""
        try:
            self._consumer.seek(TopicPartition(self._topic.place.topic, number, offset))
        except KafkaException as error:
            # The partition was assigned to another member, which goes on at the committed offset.
            told = f"partition {number} of {self._topic.place} was reassigned: {describe_kafka_error(error)}"
            self._context.report(told)
            self._next_offsets.pop(number, None)

    def _on_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        topic, numbers = self._topic.place.topic, [one.partition for one in partitions]
        try:
            found = find_start_offsets(
                self._topic, self._retry, topic, numbers, from_start=self._from_start, report=self._context.report
            )
        except StoppedError:
            found = {}
        begins = {number: one.offset for number, one in found.items()}
        self._next_offsets |= begins
        consumer.incremental_assign([TopicPartition(topic, number, offset) for number, offset in begins.items()])

    def _on_revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget revoked partitions: no transaction is open, and their next owner goes on at the committed offset."""
        for one in partitions:
            self._next_offsets.pop(one.partition, None)
