"""Backlog of a delivery: the records of a topic that its group has not settled yet, and the age of the oldest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from hopwatch.gate.retry_headers import parse_retry_headers
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.kafka.client import build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import (
    find_partitions,
    is_partition_end,
    read_end_offset,
    read_group_position,
    read_headers,
    read_recorded_us,
)
from hopwatch.probes.taps.errors import TapSourceError

ANSWER_S: Final = 10.0
_READ_S: Final = 5.0
_POLL_S: Final = 0.2
_MAX_MESSAGES: Final = 100
_FETCH_WAIT_MS: Final = 20
"""Time that a broker waits before it says that a partition has no more."""


class TopicBacklog(NamedTuple):
    """Backlog of a group in a topic.

    ``waiting`` counts offsets: records, and the marks that Kafka writes after transactions. Records behind an open
    transaction, which a member that was killed leaves for ten seconds, wait too, though nobody can read them yet.
    ``oldest_us`` is the time of the oldest waiting message, µs since 1970: its first request, or its record's own
    time; None without one that can be read.
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
        config |= {"fetch.wait.max.ms": _FETCH_WAIT_MS}
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
            partitions = find_partitions(self._consumer, topic, ANSWER_S)
            return self._read(topic, partitions, from_start=from_start)
        except KafkaException as error:
            what = describe_kafka_error(error, self._brokers)
            raise TapSourceError(f"the backlog of {topic} at {self._brokers} cannot be read: {what}") from None

    def _read(self, topic: str, partitions: Sequence[TopicPartition], *, from_start: bool) -> TopicBacklog:
        committed, lows, readable_ends = read_group_position(self._consumer, partitions, ANSWER_S)
        unbegun = lows if from_start else readable_ends
        starts = {
            number: max(lows[number], offset) if offset >= 0 else unbegun[number]
            for number, offset in committed.items()
        }
        oldest, read_ends = self._find_oldest(topic, starts)
        ends = {**readable_ends, **read_ends}
        times = [at_us for at_us in oldest.values() if at_us is not None]
        waiting = sum(max(ends[number] - starts[number], 0) for number in oldest)
        return TopicBacklog(topic, waiting, min(times, default=None))

    def _find_oldest(self, topic: str, starts: Mapping[int, int]) -> tuple[dict[int, int | None], dict[int, int]]:
        """Return the times of the first waiting records, and the ends of the partitions, open transactions included.

        A time is None where no record came, be it in time or because a transaction is open. Partitions that have
        nothing, or marks of transactions alone, have no time.
        """
        found: dict[int, int | None] = {}
        ends: dict[int, int] = {}
        left = set(starts)
        self._consumer.assign([TopicPartition(topic, number, offset) for number, offset in starts.items()])
        end_ns = self._clock.monotonic_ns() + int(_READ_S * 1e9)
        while left and self._clock.monotonic_ns() < end_ns:
            # The client would wait the whole time for as many as it is asked for.
            messages = self._consumer.consume(1, _POLL_S)
            for message in [*messages, *self._consumer.consume(_MAX_MESSAGES, 0)]:
                number = message.partition() or 0
                if number not in left or not (message.error() is None or is_partition_end(message.error())):
                    continue
                left.discard(number)
                ends[number] = read_end_offset(self._consumer, message)
                if message.error() is None:
                    found[number] = _read_first_sent_us(message) or read_recorded_us(message)
                elif (message.offset() or 0) < ends[number]:
                    found[number] = None
        self._consumer.unassign()
        return found | dict.fromkeys(left), ends


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
