"""Tests of a producer's life: made when needed, given up after a fatal error, released once."""

from __future__ import annotations

import logging
import sys

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, cimpl
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor

from hopwatch.probes.kafka.producer import PURGE_S, ReplaceableProducer

LOG = logging.getLogger("test")
FATAL = KafkaError(KafkaError._FATAL, fatal=True)
TROUBLE = KafkaError(KafkaError._TRANSPORT)


class Client:
    """A producer that still has records, until it is purged."""

    def __init__(self, left: int = 0) -> None:
        """Take how many."""
        self.left, self.calls, self.fails = left, list[object](), False

    def __len__(self) -> int:
        """Return how many are left."""
        return self.left

    def flush(self, patience_s: float) -> int:
        """Return how many are left, unless there is a fatal error, which the real one raises here."""
        self.calls.append(patience_s)
        if self.fails:
            raise KafkaException(FATAL)
        return self.left

    def purge(self) -> None:
        """Let them fail."""
        self.calls.append("purge")
        self.left = 0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Client, dict[str, object]]]:
    """Return the clients that are made, and the configuration of each."""
    found: list[tuple[Client, dict[str, object]]] = []

    def make(config: dict[str, object], **_: object) -> Client:
        found.append((Client(), config))
        return found[-1][0]

    monkeypatch.setattr("confluent_kafka.cimpl.Producer", make)
    return found


def current(producer: ReplaceableProducer) -> object:
    """Return the client that there is."""
    return producer.current


def test_a_client_is_made_once_and_anew_after_it_was_discarded(made: list[tuple[Client, dict[str, object]]]) -> None:
    """Each has its own configuration: a transactional id is never used twice."""
    numbers = iter(range(9))
    producer = ReplaceableProducer(lambda: {"number": next(numbers)}, LOG)
    assert not made
    first: object = producer.get()
    assert [first, producer.get(), current(producer)] == [made[0][0]] * 3
    assert producer.discard() == 0
    assert current(producer) is None
    producer.get()
    assert current(producer) is made[1][0]
    assert [config["number"] for _, config in made] == [0, 1]
    producer.discard()


def test_what_a_client_still_has_fails_when_it_is_discarded(made: list[tuple[Client, dict[str, object]]]) -> None:
    """After the patience; their number is returned, and a second time there is nothing."""
    producer = ReplaceableProducer(dict, LOG)
    producer.get()
    client = made[0][0]
    client.left = 3
    assert producer.discard(0.5) == 3
    assert client.calls == [0.5, "purge", PURGE_S]
    assert producer.discard(0.5) == 0


@pytest.mark.parametrize("left", [0, 3])
def test_a_fatal_error_that_the_client_raises_meanwhile_releases_it(
    made: list[tuple[Client, dict[str, object]]], left: int
) -> None:
    """As of one that a newer one has fenced: what it still had fails, and nothing is raised."""
    producer = ReplaceableProducer(dict, LOG)
    producer.get()
    client = made[0][0]
    client.left, client.fails = left, True
    references = sys.getrefcount(client)
    assert producer.discard(0.5) == left
    assert client.calls == [0.5, *(["purge", PURGE_S] if left else [])]
    assert current(producer) is None
    assert sys.getrefcount(client) < references


def test_only_a_fatal_error_gives_a_client_up_until_there_is_another(
    made: list[tuple[Client, dict[str, object]]],
) -> None:
    """All are reported; discarding alone does not make it usable again."""
    heard: list[KafkaError] = []
    producer = ReplaceableProducer(dict, LOG, heard.append)
    producer.get()
    assert made[0][1]["error_cb"] == producer.on_error
    for error, is_over in ((TROUBLE, False), (FATAL, True), (TROUBLE, True)):
        producer.on_error(error)
        assert producer.has_given_up is is_over
    producer.discard()
    states = [producer.has_given_up]
    producer.get()
    states.append(producer.has_given_up)
    assert states == [True, False]
    assert heard == [TROUBLE, FATAL, TROUBLE]
    producer.discard()


def test_a_client_lives_until_it_is_discarded(made: list[tuple[Client, dict[str, object]]]) -> None:
    """One reference more than anybody holds: the child of a fork must not destroy it."""
    producer = ReplaceableProducer(dict, LOG)
    producer.get()
    client = made.pop()[0]
    before = sys.getrefcount(client)
    producer.discard()
    assert sys.getrefcount(client) == before - 2


def test_a_tracer_of_the_service_does_not_trace_our_records() -> None:
    """Instrumentations replace the class of the client; its own one is taken."""
    instrumentor = ConfluentKafkaInstrumentor()
    instrumentor.instrument()
    try:
        assert confluent_kafka.Producer is not cimpl.Producer
        producer = ReplaceableProducer(lambda: {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, LOG)
        assert type(producer.get()) is cimpl.Producer
        producer.discard()
    finally:
        instrumentor.uninstrument()
