"""Lag of consumer groups in the topics that nodes of a stream write, as the brokers tell it; no group is joined."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException

from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.kernel.group_lag import GroupLag, PartitionLag, measure_lag
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import find_partitions, read_group_position

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

ANSWER_S: Final = 5.0
"""Time that the brokers have for each answer."""


def read_group_lags(settings: Settings, stream: str) -> Iterator[GroupLag]:
    """Yield the lags of the groups that the configuration names for nodes of a stream, in the order of the path.

    Raises:
        TransportError: the brokers do not answer, or refuse.
    """
    known = settings.streams[stream]
    for node, source in known.list_group_topics():
        place = KafkaPlace.parse(known.topics[source])
        partitions = read_partition_lags(place, known.groups[node], settings.transport.access)
        yield GroupLag(node, source, place.topic, known.groups[node], partitions)


def read_partition_lags(place: KafkaPlace, group: str, access: KafkaAccess) -> tuple[PartitionLag, ...]:
    """Return the lag of a group in each partition of a topic, open transactions and their records included.

    Raises:
        TransportError: the brokers do not answer, or refuse.
    """
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
    try:
        with closing(Consumer(build_client_config(place.brokers, access, "hopwatch-lag") | own)) as consumer:
            partitions = find_partitions(consumer, place.topic, ANSWER_S)
            committed, starts, ends = read_group_position(consumer, partitions, ANSWER_S)
    except KafkaException as error:
        told = describe_kafka_error(error, place.brokers)
        raise TransportError(f"the lag of the group {group} in {place} cannot be read: {told}") from None
    return tuple(
        measure_lag(number, committed.get(number, -1), starts[number], ends[number]) for number in sorted(ends)
    )
