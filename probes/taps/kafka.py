"""Tap for a Kafka topic: stamps its messages as a member of a consumer group, and commits offsets of durable stamps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end
from hopwatch.probes.taps.avro import SchemaWaitError
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.documents import PassedRecord, SkippedMessage, StampableMessage
from hopwatch.probes.taps.end_offsets import EndOffsets
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.jsonl import RETRY_S
from hopwatch.probes.taps.messages import RecordReader
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.tally import TallyReporter
from hopwatch.probes.taps.topic import SourceTopic

POLL_S: Final = 0.2
"""Time that one poll waits for messages."""
MAX_MESSAGES: Final = 5_000
"""Messages of one poll, at most."""
HOLD_S: Final = 1.0
"""Time for which a partition is held at a message whose schema is not known, before it is read again."""


class KafkaTap:
    """Tap that reads, stamps, makes durable and commits, in this order, so that no message is skipped.

    It commits when its stamps have settled, before partitions move to another group member, and when it is closed,
    whatever ended the tap: an offset counts as progress only once all messages before it are stamped. A message whose
    schema cannot be known yet holds its partition: the tap goes back to it, and pauses the partition meanwhile.
    """

    def __init__(self, topic: SourceTopic, reader: RecordReader, stamping: TapStamper, around: RunContext) -> None:
        """Combine the parts."""
        self._topic, self._reader, self._stamping, self._context = topic, reader, stamping, around
        self._consumer: Consumer = topic.consumer
        self._progress: dict[int, int] = {}
        """Next offset to stamp, of every assigned partition; -1 where it is unknown yet."""
        self._committed: dict[int, int] = {}
        self._held: dict[int, float] = {}
        """Until when each held partition is paused."""
        self._wanted: dict[int, int] = {}
        """Of partitions that were held, the message to begin with again."""
        self._is_assigned = False
        """True from an assignment, even an empty one, until the group revokes all of it or excludes this consumer."""
        self._ends = EndOffsets(topic.request_end_offsets)
        self._reporter = TallyReporter(stamping.tally, around)

    def run(self) -> None:
        """Run until the tap is stopped; then make the stamps durable, commit, and leave the group.

        Raises:
            TapSourceError: the topic cannot be read, or the sink has lost stamps.
        """
        stop = self._context.stop
        self._consumer.subscribe([self._topic.place.topic], self._on_assigned, self._on_revoked, self._on_lost)
        try:
            while not stop.is_set():
                self.step()
                if self._stamping.is_due:
                    while not self._settle() and not stop.wait(RETRY_S):
                        pass
            self._settle()
        finally:
            # This revokes the remaining partitions, which commits once more.
            self._consumer.close()

    def step(self) -> None:
        """Poll and stamp new messages."""
        self._release_held()
        messages = self._topic.poll(MAX_MESSAGES, POLL_S)
        progress: dict[int, int] = {}
        found: list[StampableMessage | SkippedMessage | PassedRecord] = []
        for message in messages:
            if self._is_stampable(message, progress):
                try:
                    one = self._reader.read(message)
                except SchemaWaitError:
                    self._hold(message, progress)
                else:
                    if isinstance(one, StampableMessage):
                        one = one._replace(partition=message.partition())
                    if one is not None:
                        found.append(one)
        self._stamping.stamp_messages(found)
        self._progress |= progress
        if self._is_assigned:
            moment_us = self._ends.find_caught_up_us(
                self._progress, self._context.monotonic_s(), self._context.wall_us()
            )
            if moment_us is not None:
                self._stamping.probe.caught_up(moment_us)
        self._reporter.report_if_due()

    def _is_stampable(self, message: Message, progress: dict[int, int]) -> bool:
        """Return whether this is a message of an assigned partition; note its next offset in ``progress``."""
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        is_end = is_partition_end(error)
        if error is not None and not is_end:
            self._topic.report_error(error)
            return False
        if partition not in self._progress or partition in self._held:
            # The partition moved to another group member meanwhile, which will stamp the message, or it is held at an
            # earlier one.
            return False
        wanted = self._wanted.pop(partition, offset)
        if offset > wanted:
            # What was fetched before the seek came first. Tried once: the message itself may be deleted by now.
            self._held[partition] = self._context.monotonic_s()
            self._seek(partition, wanted)
            return False
        progress[partition] = offset if is_end else offset + 1
        return not is_end

    def _hold(self, message: Message, progress: dict[int, int]) -> None:
        """Go back to a message, and read on at it in a while."""
        partition, offset = message.partition() or 0, message.offset() or 0
        progress[partition] = self._wanted[partition] = offset
        self._held[partition] = self._context.monotonic_s() + HOLD_S
        self._call_consumer(lambda: self._consumer.pause([TopicPartition(self._topic.place.topic, partition)]))
        self._seek(partition, offset)

    def _release_held(self) -> None:
        now_s = self._context.monotonic_s()
        due = [partition for partition, until_s in self._held.items() if until_s <= now_s]
        if due:
            topic = self._topic.place.topic
            self._call_consumer(lambda: self._consumer.resume([TopicPartition(topic, number) for number in due]))
            for partition in due:
                del self._held[partition]

    def _seek(self, partition: int, offset: int) -> None:
        place = TopicPartition(self._topic.place.topic, partition, offset)
        self._call_consumer(lambda: self._consumer.seek(place))

    def _call_consumer(self, act: Callable[[], None]) -> None:
        """Call the consumer.

        Raises:
            TapSourceError: it fails, so that the tap would go on behind messages that it has not stamped.
        """
        try:
            act()
        except KafkaException as error:
            told = f"the tap cannot go back in {self._topic.place}: {describe_kafka_error(error)}"
            raise TapSourceError(f"{told}: start again, it begins at the last position that was kept") from None

    def _settle(self) -> bool:
        """Make the stamps durable, then commit; return whether they are durable."""
        progress = {number: offset for number, offset in self._progress.items() if offset >= 0}
        if not self._stamping.settle():
            return False
        self._commit(progress)
        return True

    def _commit(self, progress: dict[int, int]) -> None:
        news = {number: offset for number, offset in progress.items() if self._committed.get(number) != offset}
        if not news:
            return
        topic = self._topic.place.topic
        try:
            self._consumer.commit(
                offsets=[TopicPartition(topic, number, offset) for number, offset in news.items()], asynchronous=False
            )
        except KafkaException as error:
            # The present owner of the partitions stamps uncommitted messages again.
            self._context.report(
                f"the group of {self._topic.place} took no commit: {describe_kafka_error(error)}: trying on"
            )
            return
        self._committed |= news

    def _on_assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._is_assigned = True
        self._progress |= {one.partition: -1 for one in partitions}
        self._ends.reset()

    def _on_revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Commit before another group member continues."""
        self._settle()
        self._forget_partitions(partitions)
        # Without partitions the consumer waits for a new assignment, and cannot tell whether it has caught up.
        self._is_assigned &= bool(self._progress)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget partitions that another member has already: uncommitted messages are stamped twice."""
        self._forget_partitions(partitions)
        self._is_assigned = False

    def _forget_partitions(self, partitions: list[TopicPartition]) -> None:
        held = [TopicPartition(one.topic, one.partition) for one in partitions if one.partition in self._held]
        if held:
            # The client would keep the pause of a partition that comes back.
            with suppress(KafkaException):
                self._consumer.resume(held)
        for one in partitions:
            self._held.pop(one.partition, None)
            self._wanted.pop(one.partition, None)
            self._progress.pop(one.partition, None)
            self._committed.pop(one.partition, None)
        self._ends.reset()
