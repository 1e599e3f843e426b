"""Records of a topic, read to its end."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition

from hopwatch.probes.kafka.consumer import take_until
from servers.kafka import Kafka
from servers.process import PATIENCE_S


def read_records(kafka: Kafka, topic: str) -> list[Message]:
    """Return all committed records of a topic, partition by partition."""
    # The end of a transaction has an offset, too: the end of a partition is told where it is no record's.
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "test", "enable.partition.eof": True})
    found: list[Message] = []
    try:
        for number in sorted(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), PATIENCE_S)
            consumer.assign([TopicPartition(topic, number, low)])
            left = {number: high} if high > low else {}
            while left:
                found += take_until(consumer.consume(1_000, 0.2), left)
    finally:
        consumer.close()
    return found
