"""Offsets from which a consumer group reads newly assigned partitions: the committed ones, with their metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from hopwatch.gate.retry import ANSWER_TIMEOUT_S, KafkaRetry
from hopwatch.probes.taps.topic import SourceTopic


class StartOffset(NamedTuple):
    """Offset of the next record of a partition.

    ``committed`` is the committed offset, before the first record that is still there where some had aged out, and
    ``metadata`` what its commit carries; -1 and empty without one.
    """

    offset: int
    committed: int = -1
    metadata: str = ""


def read_committed(consumer: Consumer, retry: KafkaRetry, topic: str, numbers: Sequence[int]) -> dict[int, StartOffset]:
    """Return the committed offset of each partition that has one.

    Raises:
        StoppedError: a stop was requested while the brokers did not answer.
    """
    asked = [TopicPartition(topic, number) for number in numbers]
    found = retry.call(lambda: consumer.committed(asked, ANSWER_TIMEOUT_S)) if asked else []
    return {one.partition: StartOffset(one.offset, one.offset, one.metadata or "") for one in found if one.offset >= 0}


def find_start_offsets(  # noqa: PLR0913 - what a group begins by
    source: SourceTopic,
    retry: KafkaRetry,
    topic: str,
    numbers: Sequence[int],
    *,
    from_start: bool,
    report: Callable[[str], None],
) -> dict[int, StartOffset]:
    """Return the start offset of each partition; those of a new group are committed before anything is read.

    The first member of a new group commits those of all partitions: another one that joins at the same time would take
    its own for partitions that were added since.

    Raises:
        StoppedError: a stop was requested while the brokers did not answer.
    """
    consumer, every = source.consumer, retry.call(lambda: source.find_partitions(topic))
    committed = read_committed(consumer, retry, topic, sorted({*every, *numbers}))
    begins, new = {}, []
    for number in numbers if committed else sorted({*every, *numbers}):
        at = TopicPartition(topic, number)
        low, high = retry.call(lambda at=at: consumer.get_watermark_offsets(at, ANSWER_TIMEOUT_S))  # type: ignore[misc]
        if number not in committed:
            # A partition added to a topic that the group already reads is read from its beginning.
            begins[number] = StartOffset(low if from_start or committed else high)
            new.append(TopicPartition(topic, number, begins[number].offset))
            continue
        found = committed[number]
        begins[number] = found if found.offset >= low else found._replace(offset=low)
        if low > found.offset:
            report(f"{low - found.offset:,} records of {topic}/{number} had aged out unread")
    if new:
        # It fails after another rebalance, and then the callback of an assignment is called again.
        with suppress(KafkaException):
            retry.call(lambda: consumer.commit(offsets=new, asynchronous=False))
    return {number: begins[number] for number in numbers}
