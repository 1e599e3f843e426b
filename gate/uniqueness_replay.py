"""Rebuild the uniqueness state after a restart by re-reading committed records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from hopwatch.gate.retry import ANSWER_TIMEOUT_S, KafkaRetry, StoppedError
from hopwatch.probes.kafka.consumer import take_until
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import SourceTopic

POLL_S: Final = 0.2
MAX_RECORDS: Final = 5_000


class UniquenessReplay:
    """Replay of earlier records, as far back as uniqueness rules need."""

    def __init__(self, topic: SourceTopic, patience: KafkaRetry, around: RunContext, back_us: int) -> None:
        """Begin without any state; with ``back_us`` of 0 nothing is replayed."""
        self._topic, self._retry, self._context, self._lookback_ms = topic, patience, around, back_us // 1_000
        self._known_offsets: dict[int, int] = {}
        """Offset of each partition up to which all records within the lookback are known."""

    def mark_done(self, number: int, offset: int) -> None:
        """Record that all of a partition is known up to an offset."""
        self._known_offsets[number] = offset

    def read_records(self, done: Mapping[int, int], since_ms: int) -> Iterator[Message]:
        """Yield the records of partitions that are not known yet, up to offsets, from ``since_ms`` less the lookback.

        Raises:
            StoppedError: a stop was requested.
        """
        unknown = {number: offset for number, offset in done.items() if self._known_offsets.get(number) != offset}
        if not self._lookback_ms or not unknown:
            return
        reader = self._topic.open_reader()
        try:
            begins = self._find_start_offsets(reader, unknown, max(0, since_ms - self._lookback_ms))
            reader.assign([TopicPartition(self._topic.place.topic, number, at) for number, at in begins.items()])
            yield from self._read_until(reader, {number: unknown[number] for number in begins})
        finally:
            reader.close()
        self._known_offsets |= unknown

    def _find_start_offsets(self, reader: Consumer, unknown: Mapping[int, int], since_ms: int) -> dict[int, int]:
        """Return the start offsets, without partitions that have nothing to read."""
        asked = [TopicPartition(self._topic.place.topic, number, since_ms) for number in unknown]
        found = self._retry.call(lambda: reader.offsets_for_times(asked, ANSWER_TIMEOUT_S))
        begins = {
            one.partition: max(one.offset, self._known_offsets.get(one.partition, 0))
            for one in found
            if one.offset >= 0
        }
        return {number: at for number, at in begins.items() if at < unknown[number]}

    def _read_until(self, reader: Consumer, left: dict[int, int]) -> Iterator[Message]:
        while left:
            if self._context.stop.is_set():
                raise StoppedError
            yield from take_until(reader.consume(MAX_RECORDS, POLL_S), left)
