"""Tap for a Kafka topic: stamps its messages as a member of a consumer group, and commits offsets of durable stamps."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.end_offsets import EndOffsets
from hopwatch.probes.taps.jsonl import RETRY_S
from hopwatch.probes.taps.messages import RecordReader
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.tally import TallyReporter
from hopwatch.probes.taps.topic import SourceTopic

POLL_S: Final = 0.2
"""Time that one poll waits for messages."""
MAX_MESSAGES: Final = 5_000
"""Messages of one poll, at most."""


class KafkaTap:
    """Tap that reads, stamps, makes durable and commits, in this order, so that no message is skipped.

    It commits when its stamps have settled, before partitions move to another group member, and when it is closed,
    whatever ended the tap: an offset counts as progress only once all messages before it are stamped.
    """

    def __init__(self, topic: SourceTopic, reader: RecordReader, stamping: TapStamper, around: RunContext) -> None:
        """Combine the parts."""
        self._topic, self._reader, self._stamping, self._context = topic, reader, stamping, around
        self._consumer: Consumer = topic.consumer
        self._progress: dict[int, int] = {}
        """Next offset to stamp, of every assigned partition; -1 where it is unknown yet."""
        self._committed: dict[int, int] = {}
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
        messages = self._topic.poll(MAX_MESSAGES, POLL_S)
        progress: dict[int, int] = {}
        to_stamp = [message for message in messages if self._is_stampable(message, progress)]
        self._stamping.stamp_messages(map(self._reader.read, to_stamp))
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
        if partition not in self._progress:
            # The partition moved to another group member meanwhile, which will stamp the message.
            return False
        progress[partition] = offset if is_end else offset + 1
        return not is_end

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
        for one in partitions:
            self._progress.pop(one.partition, None)
            self._committed.pop(one.partition, None)
        self._ends.reset()
