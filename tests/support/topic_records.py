"""Records of a topic, read to its end."""

from __future__ import annotations

from confluent_kafka import Consumer, Message

from hopwatch.probes.kafka.consumer import read_to_end
from servers.kafka import Kafka
from servers.process import PATIENCE_S


def read_records(kafka: Kafka, topic: str) -> list[Message]:
    """Return all committed records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "test", "enable.partition.eof": True})
    try:
        found = list(read_to_end(consumer, topic, PATIENCE_S))
    finally:
        consumer.close()
    return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))
