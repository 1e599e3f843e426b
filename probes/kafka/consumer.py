"""Messages and offsets of a Kafka consumer: records up to an end, ends of partitions, a record's time and headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from hopwatch.probes.kafka.client import ask_topic

_MAX_MESSAGES: Final = 10_000
_NO_TIME_MS: Final = -1
"""Kafka's timestamp of a record without one."""
_ask_headers: Final[Callable[[Message], list[tuple[str, str | bytes]] | None]] = methodcaller("headers")


def is_partition_end(error: KafkaError | None) -> bool:
    """Return whether the error of a message says that its partition has been read to its end."""
    return error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - public in all but name


def read_end_offset(consumer: Consumer, message: Message) -> int:
    """Return the end of a message's partition by the last fetch, records of open transactions included.

    A consumer of committed records alone is told the end of a partition where its first open transaction begins.
    """
    place = TopicPartition(message.topic() or "", message.partition() or 0)
    return consumer.get_watermark_offsets(place, cached=True)[1]


def read_to_end(consumer: Consumer, topic: str, answer_s: float) -> Iterator[Message]:
    """Yield the committed records of a topic up to its end; the consumer asks to be told the ends of partitions.

    Transactions that a killed process left open are waited for: they hide what others committed behind them.

    Raises:
        KafkaException: nothing came for ``answer_s``, not even the end of a partition.
    """
    left = set(consumer.list_topics(topic, answer_s).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
    while left:
        first = consumer.poll(answer_s)
        if first is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - public in all but name
        for message in (first, *consumer.consume(_MAX_MESSAGES, 0)):
            error = message.error()
            if error is None:
                yield message
            elif is_partition_end(error) and (message.offset() or 0) >= read_end_offset(consumer, message):
                left.discard(message.partition() or 0)


class GroupPosition(NamedTuple):
    """Position of a consumer group in a topic, by partition: what it has committed, negative where nothing, and bounds.

    Of a consumer of committed records a partition ends where its first open transaction begins.
    """

    committed: Mapping[int, int]
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def find_partitions(consumer: Consumer, topic: str, answer_s: float) -> list[TopicPartition]:
    """Return the partitions of a topic, in order.

    Raises:
        KafkaException: no broker answers within ``answer_s``, or the topic is not there or refused.
    """
    found = ask_topic(consumer, topic, answer_s)
    if found.error is not None:
        raise KafkaException(found.error)
    return [TopicPartition(topic, number) for number in sorted(found.partitions)]


def read_group_position(consumer: Consumer, partitions: Sequence[TopicPartition], answer_s: float) -> GroupPosition:
    """Return the position of the consumer's group in the partitions of a topic; each answer may take ``answer_s``.

    Raises:
        KafkaException: the brokers do not answer.
    """
    committed = {one.partition: one.offset for one in consumer.committed(list(partitions), answer_s)}
    bounds = {one.partition: consumer.get_watermark_offsets(one, answer_s) for one in partitions}
    starts, ends = ({number: pair[side] for number, pair in bounds.items()} for side in (0, 1))
    return GroupPosition(committed, starts, ends)


def take_until(messages: Iterable[Message], left: dict[int, int]) -> Iterator[Message]:
    """Yield the records before the end offsets in ``left``; a partition that has been read that far is removed there.

    Errors are skipped.
    """
    for message in messages:
        error, number, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is None and offset < left.get(number, 0):
            yield message
        if is_partition_end(error) or (error is None and offset + 1 >= left.get(number, 0)):
            left.pop(number, None)


def read_recorded_us(message: Message) -> int | None:
    """Return a record's own timestamp, by its producer or broker, µs since 1970; None without one."""
    kind, found_ms = message.timestamp()
    return found_ms * 1_000 if kind and found_ms != _NO_TIME_MS else None


def read_headers(message: Message) -> list[tuple[str, str | bytes]]:
    """Return the headers of a record.

    Of a name that is no UTF-8 confluent-kafka 2.16 makes a null pointer, and leaves its error to whatever is called
    next, or to nothing: a call that checks for it asks for the headers. They are empty afterwards, as whoever reads
    them would crash.

    Raises:
        ValueError: the name of one is no UTF-8.
    """
    try:
        return list(_ask_headers(message) or ())
    except (SystemError, UnicodeDecodeError):
        message.set_headers([])
        raise ValueError("the name of a header is no UTF-8") from None
