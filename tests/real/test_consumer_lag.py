"""Tests of the lag of a real consumer group: committed, not committed, deleted before it was read."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from servers.kafka import Kafka
from tests.real.program_folder import Workplace

STREAMS = """
[streams.orders]
path = "a -> b"
topics = {{ a = "{0}" }}
groups = {{ b = "billing" }}
"""


def produce(kafka: Kafka, topic: str, numbers: dict[int, int]) -> None:
    """Write so many records to partitions of a topic."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition, count in numbers.items():
        for _ in range(count):
            producer.produce(topic, b"x", partition=partition)
    assert not producer.flush(30)


def test_the_lag_of_a_group_is_that_of_its_partitions(kafka: Kafka, tmp_path: Path) -> None:
    """Without joining the group, whose offsets stay as they are; a topic that is not there is told."""
    work = Workplace(tmp_path, kafka.url("lag-stamps"), streams=STREAMS.format(kafka.url("lag-orders")))
    missing = work.call("lag")
    assert (missing.returncode, "the lag of the group billing in" in missing.stderr) == (3, True), missing.stderr
    kafka.create_topic("lag-orders", 3)
    produce(kafka, "lag-orders", {0: 10, 1: 20, 2: 5})
    group = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "billing", "enable.auto.commit": False})
    offsets = [TopicPartition("lag-orders", 0, 4), TopicPartition("lag-orders", 1, 15)]
    group.commit(offsets=offsets, asynchronous=False)
    kafka.age_out("lag-orders", 1)
    produce(kafka, "lag-orders", {1: 2})
    for _ in range(2):
        told = work.call("lag", "--json")
        assert told.returncode == 0, told.stderr
        (stream,) = json.loads(told.stdout)["streams"]
        (found,) = stream["groups"]
        assert (found["node"], found["source"], found["lag"], found["deleted"]) == ("b", "a", 6 + 2 + 5, 5)
        assert [tuple(one.values()) for one in found["partitions"]] == [
            (0, 4, 10, 6, 0),
            (1, 15, 22, 2, 5),
            (2, None, 5, 5, 0),
        ]
    assert [one.offset for one in group.committed(offsets, 30)] == [4, 15]
    group.close()
