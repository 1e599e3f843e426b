"""Offsets of a consumer group in a topic, as the brokers tell them; no message is read, and the group is not joined."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from hopwatch.gate.throttle.queue_wait import GroupOffsets
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import find_partitions, read_group_position

ANSWER_S: Final = 5.0
"""Time that the brokers have for each answer."""
PARTITIONS_EVERY_S: Final = 60.0


class OffsetsUnknownError(Exception):
    """The offsets of a group are not known now."""


class GroupOffsetsReader:
    """Reader of the offsets of one group in one topic."""

    def __init__(self, place: KafkaPlace, group: str, access: KafkaAccess) -> None:
        """Make the client, without connecting yet."""
        self._place, self._group = place, group
        own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        self._consumer = Consumer(build_client_config(place.brokers, access, "hopwatch-gate-throttle") | own)
        self._partitions: list[TopicPartition] = []
        self._asked_s = -PARTITIONS_EVERY_S

    def read(self, now_s: float) -> GroupOffsets:
        """Return the ends of all partitions, and what the group has committed of them.

        Raises:
            OffsetsUnknownError: no broker answers, the topic is not there, or the group has committed nothing.
        """
        try:
            if now_s - self._asked_s >= PARTITIONS_EVERY_S:
                partitions = find_partitions(self._consumer, self._place.topic, ANSWER_S)
                self._partitions, self._asked_s = partitions, now_s
            found = read_group_position(self._consumer, self._partitions, ANSWER_S)
        except KafkaException as error:
            self._asked_s = -PARTITIONS_EVERY_S
            where = f"the offsets of the group {self._group} in {self._place}"
            why = describe_kafka_error(error, self._place.brokers)
            raise OffsetsUnknownError(f"{where} cannot be read: {why}") from None
        if all(offset < 0 for offset in found.committed.values()):
            raise OffsetsUnknownError(f"the group {self._group} has committed nothing of {self._place.topic} yet")
        # What has aged out waits for nobody any more.
        known = {number: offset for number, offset in found.committed.items() if offset >= 0}
        return GroupOffsets(found.ends, {number: max(at, found.starts[number]) for number, at in known.items()})

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
