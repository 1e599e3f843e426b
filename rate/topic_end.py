"""End of a partition, from which a reader reads on."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, TopicPartition

ANSWER_S: Final = 10.0


def find_end(consumer: Consumer, topic: str, number: int) -> TopicPartition:
    """Find the end of a partition.

    Raises:
        KafkaException: no broker answers.
    """
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_S)
    return TopicPartition(topic, number, end)
