"""Tests of topics in which a killed process left a transaction open: it hides what others committed behind it."""

from __future__ import annotations

import uuid
from threading import Timer

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from hopwatch.deliver.backlog import TopicBacklog, read_backlogs
from hopwatch.demo.service.topics import read_topic_ids
from hopwatch.probes.contract.kafka import KafkaAccess
from servers.kafka import Kafka
from servers.process import PATIENCE_S

ACCESS = KafkaAccess()


def begin_transaction(kafka: Kafka, topic: str, message_id: bytes) -> Producer:
    """Return a producer that has written a record, and has not committed it."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"test.{uuid.uuid4()}"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"", headers=[("hopwatch-id", message_id)], partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def read_backlog(kafka: Kafka, topic: str, group: str = "g") -> TopicBacklog:
    """Return the backlog of a group that begins at the start of a topic."""
    (found,) = read_backlogs(kafka.bootstrap, ACCESS, group, [topic], from_start=True)
    return found


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "aborted"])
def test_what_waits_behind_an_open_transaction_is_in_the_backlog(kafka: Kafka, *, is_committed: bool) -> None:
    """A drain that took it for an empty topic would end with messages that wait for a retry."""
    topic = f"open-{is_committed}".lower()
    kafka.create_topic(topic, partitions=2)
    assert read_backlog(kafka, topic) == TopicBacklog(topic)
    open_one = begin_transaction(kafka, topic, b"open")
    assert read_backlog(kafka, topic) == TopicBacklog(topic, 1)
    begin_transaction(kafka, topic, b"behind").commit_transaction(PATIENCE_S)
    hidden = read_backlog(kafka, topic)
    assert (hidden.waiting, hidden.oldest_us) == (3, None)
    (open_one.commit_transaction if is_committed else open_one.abort_transaction)(PATIENCE_S)
    seen = read_backlog(kafka, topic)
    assert seen.waiting == 4
    assert seen.oldest_us is not None
    settle_offsets(kafka, topic, 2 if is_committed else 1)
    assert read_backlog(kafka, topic).waiting == (0 if is_committed else 3)
    settle_offsets(kafka, topic, 2)
    assert read_backlog(kafka, topic) == TopicBacklog(topic)


def settle_offsets(kafka: Kafka, topic: str, offset: int) -> None:
    """Let the group have settled what is before an offset of the first partition."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_marks_and_aborted_records_alone_are_no_backlog(kafka: Kafka) -> None:
    """Nobody will ever settle them."""
    kafka.create_topic("aborted", partitions=1)
    begin_transaction(kafka, "aborted", b"gone").abort_transaction(PATIENCE_S)
    assert read_backlog(kafka, "aborted") == TopicBacklog("aborted")


def test_the_account_waits_for_the_end_of_an_open_transaction(kafka: Kafka) -> None:
    """A rejected message behind it would count as lost."""
    kafka.create_topic("account", partitions=2)
    open_one = begin_transaction(kafka, "account", b"gone")
    begin_transaction(kafka, "account", b"kept").commit_transaction(PATIENCE_S)
    ending = Timer(1.0, open_one.abort_transaction, [PATIENCE_S])
    ending.start()
    try:
        assert read_topic_ids(kafka.url("account")) == [b"kept"]
    finally:
        ending.join()
