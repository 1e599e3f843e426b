"""Backlog of a consumer group: messages of a topic that it has not committed yet, summed over partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import read_group_position
from hopwatch.scale.metric import MetricUnavailableError

ANSWER_S: Final = 10.0
"""Time that the brokers have for each answer."""


class GroupBacklog:
    """Reader of the backlog of a group: a consumer that subscribes to nothing, and so is no member of the group."""

    def __init__(self, place: KafkaPlace, group: str, access: KafkaAccess) -> None:
        """Make the client, without connecting yet."""
        self._place, self._group = place, group
        own = {"group.id": group, "enable.auto.commit": False}
        self._consumer = Consumer(build_client_config(place.brokers, access, "hopwatch-scale") | own)

    def read(self) -> float:
        """Return the number of messages that wait.

        Raises:
            MetricUnavailableError: no broker answers, the topic is not there, or the group has committed nothing.
        """
        try:
            found = ask_topic(self._consumer, self._place.topic, ANSWER_S)
            if found.error is not None:
                raise MetricUnavailableError(
                    f"the topic {self._place.topic} cannot be read: {describe_kafka_error(found.error)}"
                )
            partitions = [TopicPartition(self._place.topic, number) for number in found.partitions]
            position = read_group_position(self._consumer, partitions, ANSWER_S)
        except KafkaException as error:
            why = describe_kafka_error(error, self._place.brokers)
            raise MetricUnavailableError(f"the backlog of the group {self._group} cannot be read: {why}") from None
        backlog = sum_backlog(*position)
        if backlog is None:
            raise MetricUnavailableError(f"the group {self._group} has committed nothing of {self._place.topic} yet")
        return float(backlog)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def sum_backlog(committed: Mapping[int, int], starts: Mapping[int, int], ends: Mapping[int, int]) -> int | None:
    """Return how many messages wait: those behind the committed offset of each partition, or all.

    A negative offset stands for none. None if no partition has one: the group has said nothing yet.
    """
    known = {partition: offset for partition, offset in committed.items() if offset >= 0}
    if not known:
        return None
    return sum(max(0, end - max(known.get(partition, 0), starts.get(partition, 0))) for partition, end in ends.items())
