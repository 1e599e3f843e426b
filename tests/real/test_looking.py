"""Tests of a broker as it comes, which makes each topic that a client asks for: no client of ours asks so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hopwatch.demo.link import LinkError
from hopwatch.demo.links.topics import TopicInlet, TopicOutlet
from hopwatch.gate import quarantine
from hopwatch.gate.outlets import OutletError
from hopwatch.gate.outlets.kafka import KafkaOutlet
from hopwatch.gate.quarantine import QuarantineError
from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.transactions import OutputTopics, TransactionalWriter
from hopwatch.monitor import topics
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.sinks.kafka import KafkaSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.topic import SourceTopic
from servers.kafka import Kafka
from servers.process import until
from tests.real.program_folder import Workplace

ACCESS = KafkaAccess()
ONE_COPY = ("--partitions", "3", "--replication", "1", "--min-insync", "1", "--allow-weak")


def test_a_topic_that_was_looked_for_is_not_there_and_can_be_made(kafka: Kafka, tmp_path: Path) -> None:
    """By the check, the doctor and a monitor: each says that it is not there, and it is made as it was asked for."""
    work = Workplace(tmp_path, kafka.url("looked-for"))
    missing = f"the topic looked-for is not on {kafka.bootstrap}"
    for command in (("topics", "check"), ("doctor",), ("run",)):
        done = work.run(*command)
        assert missing in done.stdout + done.stderr, command
    made = work.call("topics", "create", *ONE_COPY)
    assert made.returncode == 0, made.stderr
    assert made.stderr.startswith("made the topic looked-for: 3 partitions, ")


def probe(place: KafkaPlace) -> None:
    """Look as the sink of a probe does, and send a record all the same."""
    with closing(KafkaSink(place, "orders.a")) as sink:
        with pytest.raises(OSError, match="cannot be written"):
            sink.check()
        assert sink.send(b"x")
        assert not sink.settle(1.0)


def tap(place: KafkaPlace) -> None:
    """Look as ``hopwatch tap kafka`` and ``hopwatch validate`` do, and for the ends of its partitions."""
    topic = SourceTopic(str(place), "g", RunContext(print), from_start=True, access=ACCESS)
    with closing(topic.consumer), closing(topic.open_reader()) as apart:
        with pytest.raises(TapSourceError, match="cannot be read"):
            topic.check()
        topic.read_cluster_id()
        assert topic.request_end_offsets([0])[0].exception(10) is not None
        topic.consumer.subscribe([place.topic])
        topic.consumer.consume(1, 1.0)
        apart.list_topics(place.topic, 10)


def gate(place: KafkaPlace) -> None:
    """Look as a gate's outlet does."""
    with closing(KafkaOutlet(place, ACCESS)) as outlet, pytest.raises(OutletError, match="create it"):
        outlet.check()


def validator(place: KafkaPlace) -> None:
    """Look for what ``hopwatch validate`` writes to."""
    turns = TransactionalWriter(
        place.brokers, OutputTopics(place.topic, place.topic), ACCESS, group="g", patience=KafkaRetry(RunContext(print))
    )
    with pytest.raises(TapSourceError, match="create it"):
        turns.check("")


def replay(place: KafkaPlace) -> None:
    """Look as ``hopwatch quarantine`` does."""
    with pytest.raises(QuarantineError, match="cannot be read"):
        quarantine.read_rejected(str(place), ACCESS)


def node(place: KafkaPlace) -> None:
    """Look as a node of the demo does whose topics are deleted already."""
    TopicOutlet.open(place.brokers, place.topic)._producer.list_topics(place.topic, 10)
    inlet = TopicInlet.open(place.brokers, place.topic)
    with suppress(LinkError):
        inlet.receive(2.0)


@pytest.mark.parametrize("look", [probe, tap, gate, validator, replay, node], ids=lambda look: look.__name__)
def test_who_looks_for_a_topic_does_not_make_it(look: Callable[[KafkaPlace], None], kafka: Kafka) -> None:
    """Readers and writers of a missing topic do not create it, so that it can be created as requested."""
    place = KafkaPlace.parse(kafka.url(f"unmade-{look.__name__}"))
    look(place)
    topics.create_topic(place, ACCESS, partitions=3, replication=1, min_insync=1)
    until(lambda: (found := topics.describe_topic(place, ACCESS)) is not None and found.partitions == 3, "the topic")
