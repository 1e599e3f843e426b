"""Source of a delivery: the records of its topics, as one of a consumer group.

The committed offsets of the group are the only record of progress; their metadata names the records beyond them that
are settled already. All calls of the consumer that poll, pause or seek are made by one thread.

A record of a retry topic whose time has not come holds its partition back: it is put back by a seek, and the partition
is paused until it is due. Nothing is in hand meanwhile. While nobody asks for records, as when enough are in hand, the
partitions are paused and the consumer is polled all the same, so that it stays in its group.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.deliver.assignment import WAIT_RENEWED_US, Assignment, PartitionKey
from hopwatch.deliver.kafka_records import HeldRecord, RecordParser
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.stamper import DeliveryStamper
from hopwatch.gate.retry import KafkaRetry, StoppedError
from hopwatch.gate.start_offsets import StartOffset, find_start_offsets
from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end
from hopwatch.probes.metrics.account import Account, RefusalReason
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.end_offsets import EndOffsets
from hopwatch.probes.taps.topic import SourceTopic

POLL_S: Final = 0.2
"""Maximum wait of one poll for records."""
IDLE_S: Final = 5.0
"""Time without a poll after which the partitions are paused, and the consumer is polled for its group alone."""
BEHIND_US: Final = 10_000_000
"""Time without having caught up after which a delivery is behind; the ends are asked for once a second."""
MAX_OFFSET: Final = 2**63 - 1
"""Progress of a partition whose next record is not due: beyond its end, whatever that is."""
FULL_US: Final = 1_000_000
"""Time for which a partition is held back that has too many records behind one that is not settled."""


class DeliverySource:
    """Source over the topics of one consumer group; records that cannot be delivered are kept apart."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        topic: SourceTopic,
        topics: Sequence[str],
        parser: RecordParser,
        *,
        assignment: Assignment,
        stamper: DeliveryStamper,
        account: Account,
        retry: KafkaRetry,
        around: RunContext,
        from_start: bool,
    ) -> None:
        """Take the parts; ``topic`` has the consumer, which subscribes to ``topics``."""
        self._topic, self._topics, self._parser = topic, list(topics), parser
        self._assignment, self._stamper, self._retry, self._context = assignment, stamper, retry, around
        self._from_start, self._account = from_start, account
        self._consumer: Consumer = topic.consumer
        self._thread = ThreadPoolExecutor(1, "hopwatch-deliver-poll")
        self._pending: asyncio.Future[list[HeldRecord]] | None = None
        self._left: list[Message] = []
        """Messages that came while nobody asked for any."""
        self._paused: set[PartitionKey] = set()
        self._polled_s = around.monotonic_s()
        self.write_lock = threading.Lock()
        """Held while a transaction is under way: a partition is given back after it."""
        self.on_revoked: Callable[[Collection[PartitionKey]], object] = lambda _: None
        """Called by the polling thread with the partitions that were revoked."""
        self.is_paused = False
        """Whether the delivery is paused: it stays in its group, and takes no records."""
        self.is_paused_by_alert = False
        """Whether an incident alone holds the pause: it ends by minutes without rejections, which are complete ones."""
        self._poison: list[HeldRecord] = []
        self._group_metadata: object = None
        self._progress: dict[PartitionKey, int] = {}
        """Next offset to take, of every assigned partition; -1 where it is unknown yet."""
        self._not_due: set[PartitionKey] = set()
        """Partitions that are held back at a record whose time has not come."""
        self._is_assigned = False
        """True from an assignment, even an empty one, until all of it is revoked."""
        self._ends = EndOffsets(topic.request_ends)
        self._caught_up_us = 0
        self.has_caught_up = False
        """Whether, at the last poll, it had caught up with a moment shortly before."""

    def open(self) -> None:
        """Join the group."""
        self._consumer.subscribe(self._topics, self._on_assigned, self._on_revoked, self._on_revoked)
        self._group_metadata = self._consumer.consumer_group_metadata()

    async def close(self) -> None:
        """Leave the group."""
        with suppress(KafkaException):
            await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        self._thread.shutdown(wait=False)

    def get_group_metadata(self) -> object:
        """Return the group metadata of the last poll, by which the brokers check that the partitions are assigned here.

        The client is not asked: it serves one thread at a time, and a poll may be waiting for :attr:`write_lock`
        meanwhile, which the caller holds. What is out of date the brokers refuse.
        """
        return self._group_metadata

    @property
    def consumer(self) -> Consumer:
        """The consumer, to ask for committed offsets."""
        return self._consumer

    async def poll(self, most: int) -> list[DeliveryMessage]:
        """Return new messages, none if there are none within 0.2 s, or if none are wanted.

        A call that is cancelled loses nothing: the next one returns what it would have returned.

        Raises:
            TapSourceError: the topic cannot be read.
        """
        if most <= 0:
            await asyncio.sleep(POLL_S)
            return []
        if self._pending is None:
            loop = asyncio.get_running_loop()
            self._pending = loop.run_in_executor(self._thread, self._poll_records, most)
        found = await asyncio.shield(self._pending)
        self._pending = None
        return [held.message for held in found]

    async def keep_membership(self) -> None:
        """Poll for the group alone while nobody asks for records; runs until it is cancelled.

        Raises:
            TapSourceError: the topic cannot be read.
        """
        while True:
            await asyncio.sleep(1.0)
            if self._context.monotonic_s() - self._polled_s >= IDLE_S:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._poll_group)

    def stamp_waiting(self, messages: Sequence[DeliveryMessage], until_us: int) -> None:
        """Stamp messages that wait long in hand for their next try, once a minute each; any thread may call it."""
        found = self._assignment.note_wait(messages, self._context.wall_us(), until_us)
        self._stamper.stamp_waiting(found, until_us + WAIT_RENEWED_US)

    def filter_held(self, messages: Sequence[DeliveryMessage]) -> list[DeliveryMessage]:
        """Return the messages whose records are in hand still, as they were taken."""
        return self._assignment.filter_held(messages)

    def take_poison(self) -> list[HeldRecord]:
        """Return the records that came and cannot be delivered, once."""
        found, self._poison = self._poison, []
        return found

    def _poll_records(self, most: int) -> list[HeldRecord]:
        self._polled_s = self._context.monotonic_s()
        now_us = self._context.wall_us()
        self._assignment.release_due(now_us)
        self._apply_pauses(self._find_pauses())
        messages, self._left = self._left, []
        if not messages:
            messages = self._topic.poll(1, POLL_S)
        if messages and len(messages) < most:
            messages = [*messages, *self._topic.poll(most - len(messages), 0)]
        self._group_metadata = self._consumer.consumer_group_metadata()
        if self.is_paused:
            self._leave(messages)
            self._report_progress()
            return []
        now_us = self._context.wall_us()
        found = [held for message in messages if (held := self._take_message(message, now_us)) is not None]
        is_retry = self._parser.topics.is_retry
        self._stamper.stamp_polled([held for held in found if not is_retry(held.message.position.topic)])
        self._report_progress()
        self._poison += [held for held in found if held.fault]
        return [held for held in found if not held.fault]

    def _poll_group(self) -> None:
        if self._context.monotonic_s() - self._polled_s >= IDLE_S:
            self._apply_pauses(set(self._assignment.keys))
            self._leave(self._topic.poll(1, 0))
            self._group_metadata = self._consumer.consumer_group_metadata()
            self._report_progress()

    def _report_progress(self) -> None:
        """Report a moment with which the delivery has caught up: all records of then are taken, or not due yet.

        While it has not, as when a person paused it, the account of its probe is not complete: what waits is not called
        lost.
        """
        if not self._is_assigned:
            return
        now_us = self._context.wall_us()
        if self.is_paused and self.is_paused_by_alert:
            moment_us: int | None = now_us
        else:
            not_due = self._not_due & self._assignment.find_held_back()
            progress = self._progress | dict.fromkeys(not_due & self._progress.keys(), MAX_OFFSET)
            moment_us = self._ends.find_caught_up_us(progress, self._context.monotonic_s(), now_us)
        if moment_us is not None:
            self._caught_up_us = moment_us
            self._stamper.catch_up(moment_us)
        self.has_caught_up = now_us - self._caught_up_us <= BEHIND_US

    def _leave(self, messages: Sequence[Message]) -> None:
        """Leave messages and errors for later, but for messages of partitions that went while they were polled."""
        assigned = set(self._assignment.keys)
        self._left += [one for one in messages if one.error() or (one.topic(), one.partition()) in assigned]

    def _take_message(self, message: Message, now_us: int) -> HeldRecord | None:
        error = message.error()
        key, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        if error is not None:
            if not is_partition_end(error):
                self._topic.report_error(error)
            elif self._assignment.is_at_end(key, offset):
                self._progress[key] = offset
            return None
        if not self._assignment.is_new(key, offset):
            self._seek_wanted(key, offset)
            return None
        held = self._parser.parse(message, now_us)
        until_us = held.until_us if self._assignment.has_room(key) else now_us + FULL_US
        if until_us > now_us:
            self._hold_back(held, until_us)
            return None
        is_open = self._assignment.take_record(held)
        if key in self._progress:
            self._progress[key] = offset + 1
        if not is_open:
            return None
        self._account.receive(1)
        return held

    def _hold_back(self, held: HeldRecord, until_us: int) -> None:
        """Put a record back, and pause its partition until it is due."""
        topic, number, offset = held.message.position
        self._assignment.put_back(held, until_us)
        if held.until_us == until_us:
            self._not_due.add((topic, number))
        else:
            self._not_due.discard((topic, number))
        self._apply_pauses(self._paused | {(topic, number)})
        self._seek((topic, number), offset)

    def _seek_wanted(self, key: PartitionKey, offset: int) -> None:
        """Return to a record that was put back, if one behind it came first."""
        wanted = self._assignment.find_wanted(key)
        if wanted is not None and offset > wanted:
            self._seek(key, wanted)

    def _seek(self, key: PartitionKey, offset: int) -> None:
        try:
            self._consumer.seek(TopicPartition(*key, offset))
        except KafkaException as error:
            # The partition was assigned to another member, which goes on at the committed offset.
            what = describe_kafka_error(error)
            self._context.report(f"partition {key[1]} of {key[0]} was reassigned: {what}")
            self._drop_partitions([key])

    def _find_pauses(self) -> set[PartitionKey]:
        return set(self._assignment.keys) if self.is_paused else self._assignment.find_held_back()

    def _apply_pauses(self, wanted: set[PartitionKey]) -> None:
        """Pause and resume partitions so that these, and no others, are paused."""
        with suppress(KafkaException):
            if more := wanted - self._paused:
                self._consumer.pause([TopicPartition(*key) for key in more])
            if over := self._paused - wanted:
                self._consumer.resume([TopicPartition(*key) for key in over])
        self._paused = set(wanted)

    def _on_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        starts: dict[PartitionKey, StartOffset] = {}
        with suppress(StoppedError):
            for topic in sorted({one.topic for one in partitions}):
                numbers = [one.partition for one in partitions if one.topic == topic]
                starts |= self._find_starts(topic, numbers)
        for key, start in starts.items():
            self._assignment.add_partition(key, start)
            self._progress[key] = -1
        self._is_assigned = True
        self._ends.reset()
        assigned = [TopicPartition(*key, start.offset) for key, start in starts.items()]
        consumer.incremental_assign(assigned)
        # The client keeps the pause of a partition that went and came back.
        consumer.resume(assigned)
        self._apply_pauses(self._find_pauses())

    def _find_starts(self, topic: str, numbers: Sequence[int]) -> dict[PartitionKey, StartOffset]:
        from_start = self._from_start or self._parser.topics.is_retry(topic)
        found = find_start_offsets(
            self._topic, self._retry, topic, numbers, from_start=from_start, report=self._context.report
        )
        return {(topic, number): start for number, start in found.items()}

    def _on_revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop the records in hand of revoked partitions, after the transaction that is under way."""
        with self.write_lock:
            self._drop_partitions([(one.topic, one.partition) for one in partitions])

    def _drop_partitions(self, keys: Sequence[PartitionKey]) -> None:
        count = self._assignment.remove_partitions(keys)
        self._paused -= set(keys)
        self._not_due -= set(keys)
        self._progress = {key: offset for key, offset in self._progress.items() if key not in keys}
        # Without partitions it waits for a new assignment, and cannot tell whether it has caught up.
        self._is_assigned &= bool(self._progress)
        self._ends.reset()
        # Their next owner reads them again. If that is this process, it begins before them.
        self._left = [one for one in self._left if (one.topic(), one.partition()) not in keys]
        self.on_revoked(set(keys))
        self._account.refuse(count, RefusalReason.INTERRUPTED)
        if count:
            self._context.report(f"{count:,} messages in hand are left to the next owner of their partitions")
