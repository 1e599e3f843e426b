"""Search for lost messages in the topic that the last node which saw them wrote.

A partition is read from the time index on, and up to its end as it was when the search began: copies that were sent
again lie there, whatever their time. The consumer joins no group, and commits nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from hopwatch.deliver.redrive.messages import REDRIVEN_HEADER, RedriveKey, read_redrives
from hopwatch.gate.retry import StoppedError
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end, read_headers, read_recorded_us, take_until
from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.topic import ANSWER_S

if TYPE_CHECKING:
    from confluent_kafka import Message

    from hopwatch.probes.taps.context import RunContext
    from hopwatch.probes.taps.messages import RecordReader
    from hopwatch.probes.taps.topic import SourceTopic

SILENCE_S: Final = 30.0
"""Time without a record or an end after which the topic counts as unreadable."""
_POLL_S: Final = 0.2
_MAX_MESSAGES: Final = 1_000
_ALL_GONE_US: Final = 2**63 - 1


class RecordPlace(NamedTuple):
    """Place of a record in its topic."""

    partition: int
    offset: int


class PartitionSpan(NamedTuple):
    """Offsets of a partition to read, and whether records before the first of them are gone."""

    begin: int
    end: int
    is_cut: bool


@dataclass(slots=True)
class TopicSearchResult:
    """Messages that were found, and what else the search saw.

    ``redrives`` is how often an id was sent again. ``read`` counts records, ``unreadable`` those without a readable id
    or event time, by reason. ``gone_before_us``: records of an earlier time are gone from some partition.
    """

    places: dict[RedriveKey, RecordPlace] = field(default_factory=dict)
    redrives: dict[bytes, int] = field(default_factory=dict)
    read: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    gone_before_us: int = 0


class TopicSearch:
    """Search in one topic; ``advance`` is told how many records were read."""

    def __init__(
        self, topic: SourceTopic, reader: RecordReader, around: RunContext, advance: Callable[[int], object]
    ) -> None:
        """Take the parts; nothing is read yet."""
        self._topic, self._reader, self._context, self._advance = topic, reader, around, advance

    def find_messages(self, wanted: Collection[RedriveKey], since_us: int) -> TopicSearchResult:
        """Return the last record of each wanted message, of those whose records are not older than ``since_us``.

        Raises:
            TapSourceError: the topic cannot be read.
            StoppedError: a stop was requested.
        """
        keys, ids = frozenset(wanted), frozenset(key.message_id for key in wanted)
        result = TopicSearchResult()
        consumer = self._topic.open_reader()
        try:
            spans = self._find_spans(consumer, since_us)
            untimed = {number for number, span in spans.items() if span.is_cut}
            for message in self._read_spans(consumer, spans):
                result.read += 1
                number = message.partition() or 0
                if number in untimed:
                    untimed.discard(number)
                    first_us = read_recorded_us(message)
                    result.gone_before_us = max(result.gone_before_us, _ALL_GONE_US if first_us is None else first_us)
                self._note_record(message, keys, ids, result)
            if untimed:
                result.gone_before_us = _ALL_GONE_US
        except KafkaException as error:
            what = describe_kafka_error(error, self._topic.place.brokers)
            raise TapSourceError(f"the topic {self._topic.place} cannot be searched: {what}") from None
        finally:
            consumer.close()
        return result

    def read_records(self, places: Iterable[RecordPlace]) -> Iterator[Message]:
        """Yield the records at some places, partition by partition in their order; those that are gone are left out.

        Raises:
            TapSourceError: the topic cannot be read.
            StoppedError: a stop was requested.
        """
        wanted: dict[int, set[int]] = defaultdict(set)
        for place in places:
            wanted[place.partition].add(place.offset)
        consumer = self._topic.open_reader()
        try:
            for number, offsets in sorted(wanted.items()):
                span = PartitionSpan(min(offsets), max(offsets) + 1, is_cut=False)
                for message in self._read_spans(consumer, {number: span}):
                    if message.offset() in offsets:
                        yield message
        finally:
            consumer.close()

    def _find_spans(self, consumer: Consumer, since_us: int) -> dict[int, PartitionSpan]:
        """Return what is to be read of each partition, by the time index; without those that have nothing of it."""
        topic = self._topic.place.topic
        asked = [
            TopicPartition(topic, number, max(0, since_us // 1_000)) for number in self._topic.find_partitions(topic)
        ]
        spans = {}
        for found in consumer.offsets_for_times(asked, ANSWER_S):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, found.partition), ANSWER_S)
            # Without a record of that time or later the answer is no offset.
            begin = found.offset if found.offset >= 0 else high
            is_cut = low > 0 and begin <= low
            if begin < high or is_cut:
                spans[found.partition] = PartitionSpan(max(begin, low), high, is_cut)
        return spans

    def _read_spans(self, consumer: Consumer, spans: dict[int, PartitionSpan]) -> Iterator[Message]:
        topic = self._topic.place.topic
        left = {number: span.end for number, span in spans.items() if span.end > span.begin}
        consumer.assign([TopicPartition(topic, number, spans[number].begin) for number in left])
        heard_s = self._context.monotonic_s()
        while left:
            if self._context.stop.is_set():
                raise StoppedError
            # The client would wait the whole time for as many as it is asked for.
            messages = consumer.consume(1, _POLL_S)
            messages += consumer.consume(_MAX_MESSAGES, 0)
            for error in (message.error() for message in messages):
                if error is not None and not is_partition_end(error):
                    self._topic.report_error(error)
            now_s = self._context.monotonic_s()
            if any(message.error() is None or is_partition_end(message.error()) for message in messages):
                heard_s = now_s
            elif now_s - heard_s > SILENCE_S:
                told = f"the topic {self._topic.place} cannot be read: nothing came for {SILENCE_S:g} s"
                raise TapSourceError(f"{told}: look at the brokers, then start again")
            self._advance(len(messages))
            yield from take_until(messages, left)
            # The time that whoever reads the records takes is no silence of the brokers.
            heard_s += self._context.monotonic_s() - now_s

    def _note_record(
        self, message: Message, keys: frozenset[RedriveKey], ids: frozenset[bytes], result: TopicSearchResult
    ) -> None:
        found = self._reader.read(message)
        if isinstance(found, SkippedMessage):
            result.unreadable[str(found.reason)] += 1
            return
        if not isinstance(found, StampableMessage) or found.message_id not in ids:
            return
        try:
            headers = read_headers(message)
        except ValueError:
            # It could not be sent again as it was.
            result.unreadable[REDRIVEN_HEADER] += 1
            return
        # A copy that was sent again counts whatever its event time: of a topic with the broker's time it is another.
        message_id = bytes(found.message_id)
        result.redrives[message_id] = max(result.redrives.get(message_id, 0), read_redrives(headers))
        key = RedriveKey(found.event_us // WINDOW_US * WINDOW_US, message_id)
        if key in keys:
            result.places[key] = RecordPlace(message.partition() or 0, message.offset() or 0)
