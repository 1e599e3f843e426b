"""Tests of the outlet to a topic without brokers: its client is replaced after a fatal error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from hopwatch.gate import ids
from hopwatch.gate.outlets import OutgoingRecord, OutletError
from hopwatch.gate.outlets.kafka import KafkaOutlet
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.kafka import producer as of_producer

PURGED = KafkaError(KafkaError._PURGE_QUEUE)


class Message:
    """Message of which a delivery report is."""

    def __init__(self, key: bytes) -> None:
        """Take its key."""
        self._key = key

    def key(self) -> bytes:
        """Return the key."""
        return self._key

    def topic(self) -> str:
        """Return the topic."""
        return "events"


class Client:
    """Producer that acknowledges nothing, and reports what it has as failed once it is purged."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the callback of errors."""
        self.on_error: Callable[[KafkaError], object] = config["error_cb"]
        self.waiting: list[tuple[bytes, Callable[[KafkaError | None, Message], object]]] = []

    def produce(self, _: str, __: bytes, key: bytes, *, on_delivery: Any, headers: object) -> None:  # noqa: ANN401
        """Queue a record."""
        assert headers
        self.waiting.append((key, on_delivery))

    def poll(self, _: float) -> None:
        """Report nothing."""

    def report(self, error: KafkaError | None) -> None:
        """Report all that waits, with one error or as written."""
        waiting, self.waiting = self.waiting, []
        for key, on_delivery in waiting:
            on_delivery(error, Message(key))

    def purge(self) -> None:
        """Let all that waits fail."""
        self.report(PURGED)

    def flush(self, _: float) -> int:
        """Return how many wait."""
        return len(self.waiting)


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Return the clients that are made."""
    made: list[Client] = []

    def make(config: dict[str, Any], **_: object) -> Client:
        made.append(Client(config))
        return made[-1]

    monkeypatch.setattr("confluent_kafka.cimpl.Producer", make)
    return made


@pytest.fixture
def outlet(clients: list[Client], monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaOutlet]:
    """Return an outlet that replaces its client when it is told to, and not in a thread."""
    assert not clients
    monkeypatch.setattr(KafkaOutlet, "_poll_until_stopped", lambda _: None)
    opened = KafkaOutlet(KafkaPlace("127.0.0.1:1", "events"))
    yield opened
    opened.close()


def record(number: int) -> OutgoingRecord:
    """Return a record of an event with this number."""
    return OutgoingRecord(number.to_bytes(16), 1, 2, b"record")


def test_records_of_a_client_that_is_given_up_fail_once_and_the_next_one_takes_more(
    outlet: KafkaOutlet, clients: list[Client]
) -> None:
    """Between the two nothing is taken."""
    ended: list[frozenset[bytes]] = []
    outlet.write([record(1), record(2)], ended.append)
    clients[0].on_error(KafkaError(KafkaError._FATAL, fatal=True))
    with pytest.raises(OutletError, match="is being replaced"):
        outlet.write([record(3)], ended.append)
    outlet._replace_producer()
    assert ended == [frozenset({record(1).event_id, record(2).event_id})]
    outlet.write([record(4)], ended.append)
    assert [key for key, _ in clients[1].waiting] == [ids.format_uuid(record(4).event_id).encode()]


def test_a_record_never_goes_to_the_client_that_was_released(
    outlet: KafkaOutlet, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a request comes in the moment in which the next client is there: the last one reports nothing more."""
    ended: list[frozenset[bytes]] = []
    clients[0].on_error(KafkaError(KafkaError._FATAL, fatal=True))
    keep_alive = of_producer._keep_alive

    def write_meanwhile(client: Any) -> None:  # noqa: ANN401 - a client by its calls
        keep_alive(client)
        outlet.write([record(1)], ended.append)

    monkeypatch.setattr(of_producer, "_keep_alive", write_meanwhile)
    outlet._replace_producer()
    assert [len(client.waiting) for client in clients] == [0, 1]
    outlet.close()
    assert ended == [frozenset({record(1).event_id})]


def test_an_outage_is_logged_once_however_many_events_it_costs(
    outlet: KafkaOutlet, clients: list[Client], caplog: pytest.LogCaptureFixture
) -> None:
    """One line when the topic takes nothing any more, one when it does again."""
    for error in (PURGED, PURGED, None, None, PURGED):
        outlet.write([record(number) for number in range(100)], lambda _: None)
        clients[0].report(error)
    fails = f"the topic events does not take events: {PURGED.str()}; their senders are told to send them again"
    assert caplog.messages == [fails, "the topic events takes events again", fails]
