"""Settlement of messages in Kafka: rejected and waiting records, and the offsets, in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

from confluent_kafka import TopicPartition

from hopwatch.deliver.assignment import AssignedPartition, Assignment, PartitionKey, SettledRecord
from hopwatch.deliver.kafka_records import build_rejected_record, build_retry_record
from hopwatch.deliver.kafka_source import DeliverySource
from hopwatch.deliver.message import SourcePosition
from hopwatch.deliver.retry_topics import DeliveryTopics
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.deliver.stamper import DeliveryStamper
from hopwatch.gate.retry import STOP_GRACE_S, KafkaRetry, StoppedError
from hopwatch.gate.start_offsets import StartOffset, read_committed
from hopwatch.gate.transactions import OutputRecord, RecordTooLargeError, TransactionalWriter
from hopwatch.probes.metrics.account import Account, Output, RefusalReason
from hopwatch.probes.taps.context import RunContext

REBALANCE_S: Final = 0.1
"""Wait before a transaction that failed is tried again; a rebalance may be under way."""
_NEVER: Final = Event()
_OUTPUTS: Final = {
    Ending.REJECTED: Output.QUARANTINE,
    Ending.DEFERRED: Output.RETRY,
}


class KafkaSettlementSink:
    """Sink of settlements: durable together, or not at all.

    Settlements of partitions that were revoked meanwhile are dropped: their next owner reads the messages again.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        stream: str,
        name: str,
        topics: DeliveryTopics,
        *,
        source: DeliverySource,
        assignment: Assignment,
        writer: TransactionalWriter[tuple[str, ...]],
        stamper: DeliveryStamper,
        account: Account,
        retry: KafkaRetry,
        around: RunContext,
    ) -> None:
        """Take the parts."""
        self._stream, self._name, self._topics = stream, name, topics
        self._source, self._assignment, self._writer, self._stamper = source, assignment, writer, stamper
        self.account, self._retry, self._context = account, retry, around
        self._thread = ThreadPoolExecutor(1, "hopwatch-deliver-settle")
        self._tries_after_stop = 0
        self.is_in_doubt = False
        """Whether it ended without knowing if its last transaction was committed, and so without its stamps."""

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Write what was rejected or deferred and the offsets, in one transaction; stamp what was settled.

        Return what was written; the rest is of partitions that went.

        Raises:
            TapSourceError: a topic or the group cannot be written until an operator fixes it.
            StoppedError: a stop was requested, and the brokers did not answer.
        """
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, self._settle, list(settlements)))

    async def close(self) -> None:
        """Close the client, after what is under way."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._writer.close)
        self._thread.shutdown(wait=False)

    def _settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        settled = self._assignment.settle_records(settlements)
        # The receiver has acknowledged them, whoever settles them in the end.
        self._stamper.stamp_delivered([one for one in settled if one.settlement.ending is Ending.DELIVERED])
        written = self._write(settled)
        kept = [one for one in written if one.settlement.ending is not Ending.DELIVERED]
        for one in kept:
            self._stamper.stamp_kept(one)
            self.account.emit(1, _OUTPUTS[one.settlement.ending])
        self.account.emit(len(written) - len(kept), Output.RECEIVER)
        self.account.refuse(len(settled) - len(written), RefusalReason.INTERRUPTED)
        return [one.settlement for one in written]

    def _write(self, settled: Sequence[SettledRecord]) -> Sequence[SettledRecord]:
        """Write in one transaction, again and again until it is committed; return what was written."""
        cut: set[SourcePosition] = set()
        while True:
            with self._source.write_lock:
                mine = self._assignment.filter_assigned(settled)
                if not mine:
                    return mine
                offsets = self._assignment.find_offsets(mine)
                self.is_in_doubt = True
                records = {one.held.message.position: self._build_record(one, cut) for one in mine}
                outs = [record for record in records.values() if record is not None]
                try:
                    is_written = self._writer.write(outs, offsets, self._source.get_group_metadata())
                except RecordTooLargeError as error:
                    settled = _shrink_largest(mine, records, cut, error)
                    continue
            partitions = {one.key: one.partition for one in mine}
            if is_written or self._is_committed(offsets, partitions):
                self.is_in_doubt = False
                for one in offsets:
                    partitions[one.topic, one.partition].committed = _describe(one)
                return mine
            self.is_in_doubt = False
            self._await_rebalance()

    def _await_rebalance(self) -> None:
        """Wait before the next try.

        Raises:
            StoppedError: a stop was requested, and the group finds no rest.
        """
        self._tries_after_stop += self._context.stop.is_set()
        if self._tries_after_stop * REBALANCE_S > STOP_GRACE_S:
            raise StoppedError
        _NEVER.wait(REBALANCE_S)

    def _build_record(self, settled: SettledRecord, cut: Collection[SourcePosition]) -> OutputRecord | None:
        match settled.settlement.ending:
            case Ending.REJECTED:
                return build_rejected_record(
                    settled.settlement,
                    settled.held,
                    self._topics,
                    stream=self._stream,
                    name=self._name,
                    is_cut=settled.held.message.position in cut,
                )
            case Ending.DEFERRED:
                return build_retry_record(settled.settlement, settled.held, self._topics)
            case Ending.DELIVERED:
                return None

    def _is_committed(
        self, offsets: Sequence[TopicPartition], partitions: Mapping[PartitionKey, AssignedPartition]
    ) -> bool:
        """Return whether a transaction whose answer was lost was committed all the same.

        Nobody else commits while the partitions are assigned here. Where a commit would change nothing, as its metadata
        has room for no more, it cannot be told, and is written again: rather twice than never.
        """
        asked = [one for one in offsets if partitions[one.topic, one.partition].committed != _describe(one)]
        if not asked:
            return False
        for topic in {one.topic for one in asked}:
            wanted = {one.partition: _describe(one) for one in asked if one.topic == topic}
            found = read_committed(self._source.consumer, self._retry, topic, sorted(wanted))
            if any(_describe_start(found.get(number)) != said for number, said in wanted.items()):
                return False
        return True


def _shrink_largest(
    settled: Sequence[SettledRecord],
    records: Mapping[SourcePosition, OutputRecord | None],
    cut: set[SourcePosition],
    error: RecordTooLargeError,
) -> list[SettledRecord]:
    """Reject the largest of the refused messages if it was deferred, and cut it short if it was rejected.

    Others may be refused with it, as they are in one batch of the client.

    Raises:
        RecordTooLargeError: the topic does not even take a short record.
    """
    refused = {position: out for position, out in records.items() if any(out is one for one in error.records)}
    largest = max(refused, key=lambda position: _count_bytes(refused[position]), default=None)
    if largest is None or largest in cut:
        raise error
    found = []
    for one in settled:
        settlement, topic = one.settlement, error.records[0].topic
        if one.held.message.position != largest:
            found.append(one)
        elif settlement.ending is Ending.DEFERRED:
            reason = f"{settlement.reason}: too large to wait in {topic}"
            rejected = settlement._replace(ending=Ending.REJECTED, reason=reason, until_us=0, tier=0)
            found.append(one._replace(settlement=rejected))
        else:
            cut.add(largest)
            found.append(one)
    return found


def _count_bytes(out: OutputRecord | None) -> int:
    if out is None:
        return 0
    return len(out.value) + len(out.key or b"") + sum(len(name) + len(value or b"") for name, value in out.headers)


def _describe(one: TopicPartition) -> tuple[int, str]:
    return one.offset, one.metadata or ""


def _describe_start(start: StartOffset | None) -> tuple[int, str]:
    return (-1, "") if start is None else (start.committed, start.metadata)
