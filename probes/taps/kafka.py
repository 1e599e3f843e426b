"""The tap of a topic: stamps what is on it, as one of a group, and commits behind what is durable."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.end_offsets import EndOffsets
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.jsonl import RETRY_S
from hopwatch.probes.taps.messages import MessageReader
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.tally import TallyReporter
from hopwatch.probes.taps.topic import SourceTopic, get_kafka_error

POLL_S: Final = 0.2
"""How long one look waits for messages."""
MAX_MESSAGES: Final = 5_000
"""How many one look takes."""


class KafkaTap:
    """Reads, stamps, makes durable, commits: in this order, so that nothing is skipped.

    Its consumer commits when what was stamped has settled, before partitions go to another of the group, and when it is
    closed, whatever ended the tap: so an offset counts as progress only once all before it is stamped.
    """

    def __init__(self, topic: SourceTopic, reader: MessageReader, stamping: TapStamper, around: RunContext) -> None:
        """Put the parts together."""
        self._topic, self._reader, self._stamping, self._context = topic, reader, stamping, around
        self._consumer: Consumer = topic.consumer
        self._progress: dict[int, int] = {}
        """The offset behind what was stamped, of every partition that is ours; -1 where nothing is known yet."""
        self._committed: dict[int, int] = {}
        self._is_assigned = False
        """Whether the group has said what is ours, be it nothing, and has not put us out or taken all of it since."""
        self._ends = EndOffsets(topic.request_end_offsets)
        self._reporter = TallyReporter(stamping.tally, around)

    def run(self) -> None:
        """Go on until the tap is to stop; then make durable what was stamped, commit, and leave the group.

        Raises:
            TapSourceError: the topic cannot be read, or the sink lost what was stamped.
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
            # It revokes what is left, which commits once more.
            self._consumer.close()

    def step(self) -> None:
        """Take and stamp what has come."""
        try:
            messages = self._consumer.consume(MAX_MESSAGES, POLL_S)
        except KafkaException as error:
            told = f"the topic {self._topic.place} cannot be read any more: {get_kafka_error(error).str()}: start again"
            raise TapSourceError(told) from None
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
        """Whether it is a message, of a partition that is ours still; notes in ``progress`` how far we come with it."""
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        is_end = error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - public in all but name
        if error is not None and not is_end:
            self._topic.report_error(error)
            return False
        if partition not in self._progress:
            # It went to another of the group while it was on its way to us, and will be stamped there.
            return False
        progress[partition] = offset if is_end else offset + 1
        return not is_end

    def _settle(self) -> bool:
        """Make durable what was stamped, and commit then; whether it is durable."""
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
            # Whoever has the partitions now stamps again what was not committed.
            self._context.report(
                f"the group of {self._topic.place} took no commit: {get_kafka_error(error).str()}: trying on"
            )
            return
        self._committed |= news

    def _on_assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._is_assigned = True
        self._progress |= {one.partition: -1 for one in partitions}
        self._ends.reset()

    def _on_revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Commit before another of the group goes on."""
        self._settle()
        self._forget_partitions(partitions)
        # Who has nothing left is on its way to another assignment, and knows no more of the topic until then.
        self._is_assigned &= bool(self._progress)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Let go of partitions that are another's already: what was not committed is stamped twice."""
        self._forget_partitions(partitions)
        self._is_assigned = False

    def _forget_partitions(self, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._progress.pop(one.partition, None)
            self._committed.pop(one.partition, None)
        self._ends.reset()
