"""Messages of a Kafka consumer: records up to a wanted end, ends of partitions, and a record's time and headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import methodcaller
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

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
