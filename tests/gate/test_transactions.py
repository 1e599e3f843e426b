"""Tests of transactions whose client does not keep its deadlines; real brokers are in tests/real."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from hopwatch.gate import retry
from hopwatch.gate import transactions as room
from hopwatch.gate.retry import KafkaRetry, StoppedError
from hopwatch.gate.transactions import OutputRecord, OutputTopics, RecordTimeError, TransactionalWriter
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.taps.context import RunContext


class Client:
    """A producer whose call for offsets does what a test says; what it was asked is in ``calls``."""

    def __init__(self, send: Any) -> None:  # noqa: ANN401 - what is called
        """Take what the call for offsets does."""
        self.calls: list[str] = []
        self._send = send

    def send_offsets_to_transaction(self, *_: object) -> None:
        """Do it."""
        self.calls.append("send_offsets_to_transaction")
        self._send()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any other call of a producer
        """Return a call that does nothing."""
        return lambda *_, **__: self.calls.append(name)


@pytest.fixture
def around() -> RunContext:
    """Return what a validator is given from outside."""
    return RunContext(lambda _: None)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Yield what ends a call that waits for a coordinator; deadlines are short."""
    monkeypatch.setattr(room, "ANSWER_TIMEOUT_S", 0.05)
    monkeypatch.setattr(room, "_ANSWER_MARGIN_S", 0.05)
    came = Event()
    yield came
    came.set()


def turns_with(
    client: Client, around: RunContext, monkeypatch: pytest.MonkeyPatch
) -> TransactionalWriter[OutputTopics]:
    """Return turns whose next producer is this client."""
    monkeypatch.setattr("confluent_kafka.cimpl.Producer", lambda *_, **__: client)
    return TransactionalWriter(
        "127.0.0.1:9", OutputTopics("good", "bad"), KafkaAccess(), group="g", patience=KafkaRetry(around)
    )


RECORD = OutputRecord("good", b"{}", None, [])


def test_a_client_that_never_answers_is_given_up(
    away: Event, around: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn has failed, nothing is committed, and the next one has another client."""
    client = Client(away.wait)
    turns = turns_with(client, around, monkeypatch)
    assert turns.write([RECORD], [], object()) is False
    assert "commit_transaction" not in client.calls
    assert turns._client.current is None


def test_a_stop_is_heeded_while_a_client_never_answers(
    away: Event, around: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the brokers were waited for as long as a stop allows."""
    monkeypatch.setattr(retry, "STOP_GRACE_S", -1.0)
    around.stop.set()
    turns = turns_with(Client(away.wait), around, monkeypatch)
    with pytest.raises(StoppedError):
        turns.write([RECORD], [], object())


def test_what_a_client_says_is_what_a_turn_failed_by(
    away: Event, around: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a client is the cause of a transaction's failure, from the thread that asked."""
    del away

    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    with pytest.raises(Exception, match="let this client read and commit as its group"):
        turns_with(Client(fail), around, monkeypatch).write([RECORD], [], object())


def test_a_client_that_answers_commits(away: Event, around: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order: the records, how far was read, the commit."""
    del away
    client = Client(lambda: None)
    assert turns_with(client, around, monkeypatch).write([RECORD], [], object()) is True
    opening = ["init_transactions", "begin_transaction"]
    assert client.calls == [*opening, "produce", "send_offsets_to_transaction", "commit_transaction"]


class TimeRefuser(Client):
    """A producer of whose records the topic takes no time but now."""

    def produce(self, *_: object, on_delivery: Any, timestamp: int, **__: object) -> None:  # noqa: ANN401 - a callback
        """Refuse a record."""
        self.calls.append(f"produce at {timestamp}")
        on_delivery(KafkaError(KafkaError.INVALID_TIMESTAMP), None)

    def commit_transaction(self, *_: object) -> None:
        """Fail as librdkafka does."""
        raise KafkaException(KafkaError(KafkaError.INVALID_TIMESTAMP))


def test_a_time_that_a_topic_does_not_take_is_told(around: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything waits: the next transaction would fail by the same record; the client is kept."""
    client = TimeRefuser(lambda: None)
    turns = turns_with(client, around, monkeypatch)
    with pytest.raises(RecordTimeError, match="the topic good does not take the time of a record"):
        turns.write([RECORD._replace(recorded_ms=7)], [], None)
    assert client.calls[-2:] == ["produce at 7", "abort_transaction"]
    assert turns._client.current is cast("Any", client)


def test_a_clock_that_differs_from_the_brokers_is_waited_for(
    around: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of this machine is refused, as a record has none of its own."""
    monkeypatch.setattr(retry, "RETRY_S", 0.01)
    assert turns_with(TimeRefuser(lambda: None), around, monkeypatch).write([RECORD], [], None) is False
