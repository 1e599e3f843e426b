"""Tests of the topic of registrations, on a broker of librdkafka's own and without one."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from hopwatch.gate.outlets import OutletError, change_topic
from hopwatch.gate.outlets.change_topic import ChangeTopic
from hopwatch.gate.registry.changes import ChangeRecord
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from tests.support.raw_producer import PATIENCE_S, produce_raw, raw_cluster


def test_what_is_acknowledged_is_in_the_topic() -> None:
    """In order, under its keys."""
    with raw_cluster() as cluster:
        topic = ChangeTopic(KafkaPlace(cluster.brokers, "schemas"), KafkaAccess())
        with pytest.raises(OutletError, match=r"schemas cannot be written: .*: create it, or leave \[gate\.registry\]"):
            topic.check()
        produce_raw(cluster.brokers, "schemas", b"", [])
        topic.check()
        records = [ChangeRecord(b"orders/%d" % at, b'{"version": %d}' % at) for at in range(1, 4)]
        assert [topic.write(records[:2]), topic.write(records[2:]), topic.write([])] == ["", "", ""]
        topic.close()
        consumer = Consumer({"bootstrap.servers": cluster.brokers, "group.id": "g"})
        try:
            numbers = consumer.list_topics("schemas", PATIENCE_S).topics["schemas"].partitions
            consumer.assign([TopicPartition("schemas", number, OFFSET_BEGINNING) for number in numbers])
            found = consumer.consume(4, PATIENCE_S)
        finally:
            consumer.close()
    assert sorted((one.key(), one.value()) for one in found if one.key()) == records


def test_a_topic_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start with what to check; later as the reason for which a record is not written."""
    monkeypatch.setattr(change_topic, "WRITE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(change_topic, "_CHECK_TIMEOUT_S", 0.2)
    topic = ChangeTopic(KafkaPlace("127.0.0.1:1", "schemas"), KafkaAccess())
    with pytest.raises(
        OutletError, match=r"127\.0\.0\.1:1 cannot be reached: .*: check the address, and what \[transport"
    ):
        topic.check()
    assert topic.write([ChangeRecord(b"a/1", b"{}")])
    topic.close()
