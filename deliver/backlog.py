"""Backlog of a delivery: the records of a topic that its group has not settled yet, and the age of the oldest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.gate.retry_headers import parse_retry_headers
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import is_partition_end, read_headers, read_recorded_us
from hopwatch.probes.taps.errors import TapSourceError

ANSWER_S: Final = 10.0
_READ_S: Final = 5.0
_POLL_S: Final = 0.2
_MAX_MESSAGES: Final = 100


class TopicBacklog(NamedTuple):
    """Backlog of a group in a topic.

    ``waiting`` counts offsets: records, and the marks that Kafka writes after transactions. ``oldest_us`` is the time
    of the oldest waiting message, µs since 1970: its first request, or its record's own time; None without one.
    """

    topic: str
    waiting: int = 0
    oldest_us: int | None = None


class BacklogReader:
    """Reader of backlogs: a consumer that joins no group."""

    def __init__(self, brokers: str, access: KafkaAccess, group: str, clock: Clock | None = None) -> None:
        """Make the client, without connecting yet."""
        self._clock = clock or SystemClock()
        config = {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True}
        self._brokers = brokers
        self._consumer = Consumer(build_client_config(brokers, access, "hopwatch-deliver") | config)

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def read_backlog(self, topic: str, *, from_start: bool) -> TopicBacklog:
        """Return the backlog of a topic; a group that has not begun begins at its start, or else at its end.

        Raises:
            TapSourceError: the topic is not there, or the brokers do not answer.
        """
        try:
            answer = ask_topic(self._consumer, topic, ANSWER_S)
            if answer.error is not None:
                raise KafkaException(answer.error)  # noqa: TRY301 - the same end
            return self._read(topic, sorted(answer.partitions), from_start=from_start)
        except KafkaException as error:
            what = describe_kafka_error(error, self._brokers)
            raise TapSourceError(f"the backlog of {topic} at {self._brokers} cannot be read: {what}") from None

    def _read(self, topic: str, numbers: list[int], *, from_start: bool) -> TopicBacklog:
        asked = [TopicPartition(topic, number) for number in numbers]
        starts: dict[int, int] = {}
        waiting: dict[int, int] = {}
        for one in self._consumer.committed(asked, ANSWER_S):
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, one.partition), ANSWER_S)
            begin = max(low, one.offset) if one.offset >= 0 else (low if from_start else high)
            if high > begin:
                starts[one.partition], waiting[one.partition] = begin, high - begin
        oldest = self._find_oldest(topic, starts)
        times = [at_us for at_us in oldest.values() if at_us is not None]
        return TopicBacklog(topic, sum(waiting[number] for number in oldest), min(times, default=None))

    def _find_oldest(self, topic: str, starts: Mapping[int, int]) -> dict[int, int | None]:
        """Return the time of the first waiting record of each partition, None where it does not come in time.

        Partitions that have marks of transactions alone are left out.
        """
        found: dict[int, int | None] = {}
        left = set(starts)
        self._consumer.assign([TopicPartition(topic, number, offset) for number, offset in starts.items()])
        end_ns = self._clock.monotonic_ns() + int(_READ_S * 1e9)
        while left and self._clock.monotonic_ns() < end_ns:
            for message in self._consumer.consume(_MAX_MESSAGES, _POLL_S):
                number = message.partition() or 0
                if message.error() is None and number not in found:
                    found[number] = _read_first_sent_us(message) or read_recorded_us(message)
                if message.error() is None or is_partition_end(message.error()):
                    left.discard(number)
        self._consumer.unassign()
        return found | dict.fromkeys(left)


def _read_first_sent_us(message: Message) -> int:
    try:
        return parse_retry_headers(read_headers(message)).first_sent_us
    except ValueError:
        return 0


def read_backlogs(
    brokers: str, access: KafkaAccess, group: str, names: Sequence[str], *, from_start: bool
) -> list[TopicBacklog]:
    """Return the backlog of a group in each of some topics.

    Raises:
        TapSourceError: a topic is not there, or the brokers do not answer.
    """
    reader = BacklogReader(brokers, access, group)
    try:
        return [reader.read_backlog(topic, from_start=from_start) for topic in names]
    finally:
        reader.close()
