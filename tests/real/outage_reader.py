"""Reader of a topic that finds out where to begin in the callback of its assignment, and polls through an outage.

A program by itself: URL. It says ``assigned``, and what it hears of the brokers; one poll lasts for ten seconds.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, TopicPartition

from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.start_offsets import find_start_offsets
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import SourceTopic

POLL_S = 10.0


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read(url: str) -> None:
    """Poll until partitions are assigned, and to the end of that poll."""
    around, assigned = RunContext(say), list[int]()
    topic = SourceTopic(url, "outage", around, from_start=True)
    topic.check()
    name = topic.place.topic

    def begin(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [one.partition for one in partitions]
        starts = find_start_offsets(topic, KafkaRetry(around), name, numbers, from_start=True, report=around.report)
        consumer.incremental_assign([TopicPartition(name, number, one.offset) for number, one in starts.items()])
        assigned.extend(numbers)
        say("assigned")

    topic.consumer.subscribe([name], on_assign=begin)
    while not assigned:
        topic.poll(100, POLL_S)


if __name__ == "__main__":
    read(sys.argv[1])
