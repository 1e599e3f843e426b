"""Records of a topic of observations, read again by their offsets."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.payloads import SetAside
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.segment import MAGIC, encode_frame
from hopwatch.probes.kafka.client import build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import take_until

PATIENCE_S: Final = 30.0
"""Time without a record after which the topic counts as unreadable."""
_POLL_S: Final = 0.5
_GROUP: Final = "hopwatch-discovery"
_MAX_MESSAGES: Final = 1_000


def read_records(place: KafkaPlace, access: KafkaAccess, wanted: Iterable[SetAside]) -> Iterator[bytes]:
    """Yield some records, each as a segment of its own; those that are gone are left out.

    The consumer joins no group, and commits nothing.

    Raises:
        TransportError: the topic cannot be read.
    """
    offsets: dict[int, set[int]] = defaultdict(set)
    for one in wanted:
        topic, _, partition = one.path.rpartition("/")
        if topic == place.topic and partition.isdecimal():
            offsets[int(partition)].add(one.position)
    if not offsets:
        return
    asked = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = Consumer(build_client_config(place.brokers, access, _GROUP) | asked | {"group.id": _GROUP})
    try:
        yield from _read_partitions(consumer, place, offsets)
    except KafkaException as error:
        told = describe_kafka_error(error, place.brokers)
        raise TransportError(f"the topic {place} cannot be read: {told}") from None
    finally:
        consumer.close()


def _read_partitions(consumer: Consumer, place: KafkaPlace, offsets: dict[int, set[int]]) -> Iterator[bytes]:
    consumer.assign([TopicPartition(place.topic, number, min(wanted)) for number, wanted in offsets.items()])
    left = {number: max(wanted) + 1 for number, wanted in offsets.items()}
    heard_s = time.monotonic()
    while left:
        messages = [*consumer.consume(1, _POLL_S), *consumer.consume(_MAX_MESSAGES, 0)]
        if messages:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > PATIENCE_S:
            told = f"the topic {place} cannot be read: nothing came for {PATIENCE_S:g} s"
            raise TransportError(f"{told}: look at the brokers, then try again")
        for message in take_until(messages, left):
            if message.offset() in offsets.get(message.partition() or 0, ()):
                yield MAGIC + encode_frame(message.value() or b"")
