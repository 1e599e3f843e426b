"""Tests of the reader of a group's offsets, on a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from hopwatch.gate.throttle import group_offsets
from hopwatch.gate.throttle.group_offsets import GroupOffsetsReader, OffsetsUnknownError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from tests.support.raw_producer import RawCluster, raw_cluster

TOPIC = "throttled"


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RawCluster]:
    """Return a broker."""
    with raw_cluster() as cluster:
        yield cluster


def test_ends_and_commits_are_those_of_the_group(cluster: RawCluster) -> None:
    """A group that has committed nothing is not known; then each partition has its end, those with a commit that."""
    producer = Producer({"bootstrap.servers": cluster.brokers, "log_level": 0})
    for number in range(7):
        producer.produce(TOPIC, b"", partition=number % 2)
    assert producer.flush(20) == 0
    reader = GroupOffsetsReader(KafkaPlace(cluster.brokers, TOPIC), "billing", KafkaAccess())
    with pytest.raises(OffsetsUnknownError, match="the group billing has committed nothing of throttled yet"):
        reader.read(0.0)
    consumer = Consumer({"bootstrap.servers": cluster.brokers, "group.id": "billing", "log_level": 0})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
    found = reader.read(1.0)
    assert (found.ends[0], found.ends[1], found.committed) == (4, 3, {0: 3})
    consumer.close()
    reader.close()


def test_brokers_that_do_not_answer_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets are not known, for the reason that the client gives."""
    monkeypatch.setattr(group_offsets, "ANSWER_S", 0.3)
    reader = GroupOffsetsReader(KafkaPlace("127.0.0.1:1", TOPIC), "billing", KafkaAccess())
    with pytest.raises(
        OffsetsUnknownError,
        match=r"the offsets of the group billing in kafka://127\.0\.0\.1:1/throttled cannot be read: ",
    ):
        reader.read(0.0)
    reader.close()
