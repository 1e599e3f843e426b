"""Topics of events that the gate writes, checked as that of observations is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hopwatch.monitor import topics
from hopwatch.monitor.topics import TopicProblem
from hopwatch.probes.contract.kafka import SCHEME, KafkaPlace

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings


def find_gate_topics(chosen: Settings) -> list[KafkaPlace]:
    """Return the topics that the entrances of a gate write, each once, in the order of the configuration."""
    urls = [url for stream, said in chosen.gate.streams.items() for url in (said.to, said.rejected_url(stream))]
    return list(dict.fromkeys(KafkaPlace.parse(url) for url in urls if url.startswith(SCHEME)))


def find_topic_problems(chosen: Settings) -> Iterator[TopicProblem]:
    """Yield the problems of all topics that the gate writes.

    Raises:
        TransportError: no broker answers, or none lets us in.
    """
    for place in find_gate_topics(chosen):
        found = topics.describe_topic(place, chosen.transport.access)
        if found is None:
            what = f"the topic {place.topic} is not on {place.brokers}"
            advice = f"make it with replication {topics.REPLICATION} and min.insync.replicas {topics.MIN_INSYNC}"
            yield TopicProblem(what, f"{advice}, or correct [gate.streams]", is_readable=False)
        else:
            yield from topics.find_weaknesses(place, found)
