"""Tests of the source over a consumer that hands out what a test says; real brokers are in tests/real."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from hopwatch.deliver import kafka_source
from hopwatch.deliver.assignment import Assignment
from hopwatch.deliver.kafka_records import HeldRecord, RecordParser
from hopwatch.deliver.kafka_source import DeliverySource
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.retry_topics import build_topics
from hopwatch.gate.retry import KafkaRetry
from hopwatch.probes.metrics.account import DELIVERY_OUTCOMES, Account
from hopwatch.probes.taps import end_offsets
from hopwatch.probes.taps.context import RunContext

TOPICS = build_topics("orders", "billing", (30_000_000,))
ONE = TopicPartition("orders", 0)
Polled = Sequence[Message] | Callable[[], Sequence[Message]]


def records(*offsets: int) -> list[Message]:
    """Return records at some offsets."""
    build = cast("Any", Message)
    return [build(topic="orders", partition=0, offset=at, value=b"{}", timestamp=(1, 5)) for at in offsets]


class Broker:
    """Topic and consumer in one: each poll returns the next of what a test has put there."""

    def __init__(self, committed: int = 0) -> None:
        """Begin with nothing, and a group that has committed so far."""
        self.consumer, self.committed_offset = self, committed
        self.polls: list[Polled] = []
        self.paused: set[int | None] = set()
        """Paused partitions; as the real client does, it keeps those that are revoked."""
        self.callbacks: list[Callable[[Any, list[TopicPartition]], None]] = []
        self.generation = 0
        self.end = 0
        """End of the partition, as the brokers say it."""
        self.caught_up = 0
        """How often the delivery has said that it has caught up."""
        self._calling = threading.RLock()
        """Held by the thread that calls: the real client serves one at a time."""

    def poll(self, *_: object) -> list[Message]:
        """Return the next records, of which a function may call the callbacks."""
        with self._calling:
            found = self.polls.pop(0) if self.polls else ()
            return list(found() if callable(found) else found)

    def consumer_group_metadata(self) -> int:
        """Return the generation, once no other thread calls."""
        with self._calling:
            return self.generation

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Note the pause of partitions."""
        self.paused |= {one.partition for one in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Note the end of it."""
        self.paused -= {one.partition for one in partitions}

    def subscribe(self, _: object, *callbacks: Callable[[Any, list[TopicPartition]], None]) -> None:
        """Keep the callbacks."""
        self.callbacks = list(callbacks)

    def assign(self) -> list[Message]:
        """Assign the partition."""
        self.generation += 1
        self.callbacks[0](self, [ONE])
        return []

    def revoke(self) -> list[Message]:
        """Take it away."""
        self.generation += 1
        self.callbacks[1](self, [ONE])
        return []

    def report_error(self, error: KafkaError) -> None:
        """Raise an error of a message, as the topic does with one that lasts."""
        raise KafkaException(error)

    def find_partitions(self, _: str) -> list[int]:
        """Return the partition."""
        return [0]

    def committed(self, asked: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        """Return what is committed."""
        return [TopicPartition(one.topic, one.partition, self.committed_offset) for one in asked]

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        """Return the beginning and the end."""
        return 0, 1_000

    def request_ends(self, asked: list[tuple[str, int]]) -> dict[tuple[str, int], Future[Any]]:
        """Return the end of each partition at once."""
        answers: dict[tuple[str, int], Future[Any]] = {partition: Future() for partition in asked}
        for answer in answers.values():
            answer.set_result(SimpleNamespace(offset=self.end))
        return answers

    def catch_up(self, _: int) -> None:
        """Count what the delivery says."""
        self.caught_up += 1

    def ignore(self, *_: object) -> None:
        """Take whatever a consumer is told."""

    seek = incremental_assign = stamp_polled = ignore


def build_source(broker: Broker, assignment: Assignment | None = None) -> DeliverySource:
    """Return a source over the broker that has joined its group."""
    around, part = RunContext(lambda _: None), cast("Any", broker)
    source = DeliverySource(
        part, ["orders"], RecordParser(TOPICS), assignment=assignment or Assignment(), stamper=part,
        account=Account(DELIVERY_OUTCOMES), retry=KafkaRetry(around), around=around, from_start=False,
    )  # fmt: skip
    source.open()
    return source


def poll(source: DeliverySource, times: int = 1) -> list[int]:
    """Poll some times, and return the offsets that came."""

    async def run() -> list[DeliveryMessage]:
        return [one for _ in range(times) for one in await source.poll(100)]

    return [one.position.offset for one in asyncio.run(run())]


def test_a_settlement_waits_for_no_poll() -> None:
    """The thread that polls waits in a rebalance for the transaction; the transaction needs no call of the client."""
    broker, is_revoking, told = Broker(), threading.Event(), list[object]()
    source = build_source(broker)

    def revoke() -> list[Message]:
        is_revoking.set()
        return broker.revoke()

    def settle() -> None:
        with source.write_lock:
            thread = threading.Thread(target=poll, args=(source,), daemon=True)
            thread.start()
            assert is_revoking.wait(10)
            told.append(source.get_group_metadata())
        thread.join(10)
        told.append(thread.is_alive())

    broker.polls = [broker.assign, revoke]
    poll(source)
    settling = threading.Thread(target=settle, daemon=True)
    settling.start()
    settling.join(30)
    assert told == [1, False]


def test_the_group_metadata_is_that_of_the_last_poll() -> None:
    """Before the first poll there is one, too, as records without one would be committed by nobody."""
    broker = Broker()
    source = build_source(broker)
    assert source.get_group_metadata() == 0
    broker.polls = [broker.assign, broker.revoke]
    for generation in (1, 2):
        poll(source)
        assert source.get_group_metadata() == generation


def pause(source: DeliverySource) -> None:
    """Let records come while the delivery is paused."""
    source.is_paused = True
    assert poll(source) == []
    source.is_paused = False


def stay_in_group(source: DeliverySource) -> None:
    """Let records come while nobody asks for any."""
    source._poll_group()


@pytest.mark.parametrize("wait", [pause, stay_in_group])
def test_what_was_left_of_a_partition_that_came_back_is_not_skipped_to(
    wait: Callable[[DeliverySource], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that were in hand before it, and are not settled, come again first; otherwise they would never come."""
    monkeypatch.setattr(kafka_source, "IDLE_S", 0.0)
    broker = Broker()
    source = build_source(broker)
    broker.polls = [broker.assign, records(0, 1)]
    assert poll(source, 2) == [0, 1]
    broker.polls = [records(2)]
    wait(source)
    for happens in (broker.revoke, broker.assign):
        broker.polls = [happens]
        wait(source)
    broker.polls = [records(0, 1, 2)]
    assert poll(source, 2) == [0, 1, 2]


@pytest.mark.parametrize("wait", [pause, stay_in_group])
def test_what_was_polled_before_a_partition_went_is_not_left(
    wait: Callable[[DeliverySource], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call of the client may return records, and say that their partition went."""
    monkeypatch.setattr(kafka_source, "IDLE_S", 0.0)
    broker = Broker()
    source = build_source(broker)
    broker.polls = [broker.assign, records(0, 1)]
    assert poll(source, 2) == [0, 1]
    broker.polls = [lambda: [*records(2), *broker.revoke()]]
    wait(source)
    broker.polls = [broker.assign, records(0, 1, 2)]
    assert poll(source, 2) == [0, 1, 2]


def test_what_is_left_comes_when_it_is_asked_for() -> None:
    """A pause loses nothing."""
    broker = Broker()
    source = build_source(broker)
    broker.polls = [broker.assign, records(0)]
    assert poll(source) == []
    pause(source)
    broker.polls = [records(1)]
    assert poll(source) == [0, 1]


@pytest.mark.parametrize("wait", [pause, stay_in_group])
def test_an_error_that_came_while_nobody_asked_is_reported(
    wait: Callable[[DeliverySource], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fatal error comes once, without a topic, and no record ever after it."""
    monkeypatch.setattr(kafka_source, "IDLE_S", 0.0)
    broker = Broker()
    source = build_source(broker)
    broker.polls = [broker.assign]
    assert poll(source) == []
    broker.polls = [[cast("Any", Message)(error=KafkaError(KafkaError._FATAL))]]
    wait(source)
    with pytest.raises(KafkaException):
        poll(source)


@pytest.mark.parametrize("wait", [pause, stay_in_group])
def test_a_partition_that_was_paused_when_it_went_is_read_when_it_comes_back(
    wait: Callable[[DeliverySource], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps the pause meanwhile, and would return nothing of it ever after."""
    monkeypatch.setattr(kafka_source, "IDLE_S", 0.0)
    broker = Broker()
    source = build_source(broker)
    broker.polls = [broker.assign, records(0)]
    assert poll(source, 2) == [0]
    broker.polls = [broker.revoke]
    wait(source)
    assert broker.paused == {0}
    broker.polls = [broker.assign, records(0)]
    assert poll(source, 2) == [0]
    assert broker.paused == set()


def test_a_partition_that_comes_during_a_pause_is_paused() -> None:
    """Its records wait in the topic until the delivery is resumed."""
    broker = Broker()
    source = build_source(broker)
    source.is_paused = True
    broker.polls = [broker.assign]
    assert poll(source) == []
    assert broker.paused == {0}


def at_end(offset: int) -> list[Message]:
    """Return what the client says at the end of the partition."""
    build = cast("Any", Message)
    return [build(topic="orders", partition=0, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF))]


@pytest.fixture
def _asks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ends be asked for at each poll."""
    monkeypatch.setattr(end_offsets, "ASK_EVERY_S", 0.0)


@pytest.mark.usefixtures("_asks_always")
def test_a_delivery_has_caught_up_once_it_has_taken_all_that_was_there() -> None:
    """The end counts, where marks of transactions stand behind the last record; without partitions nothing is said."""
    broker = Broker()
    source = build_source(broker)
    assert poll(source, 3) == []
    assert broker.caught_up == 0
    broker.end, broker.polls = 3, [broker.assign, records(0), records(1)]
    assert poll(source, 5) == [0, 1]
    assert broker.caught_up == 0
    broker.polls = [at_end(3)]
    poll(source, 2)
    assert broker.caught_up >= 1
    broker.polls = [broker.revoke]
    poll(source)
    told = broker.caught_up
    poll(source, 5)
    assert broker.caught_up == told


@pytest.mark.usefixtures("_asks_always")
@pytest.mark.parametrize("wait", [pause, stay_in_group])
def test_a_delivery_that_waits_has_not_caught_up(
    wait: Callable[[DeliverySource], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what waits in the topic, or has come and is not taken, is not called lost; it has when it is taken."""
    monkeypatch.setattr(kafka_source, "IDLE_S", 0.0)
    broker = Broker()
    source = build_source(broker)
    broker.end, broker.polls = 1, [broker.assign, records(0)]
    assert poll(source, 4) == [0]
    told = broker.caught_up
    assert told >= 1
    broker.end, broker.polls = 2, [records(1), at_end(2)]
    for _ in range(5):
        wait(source)
    # What had been asked before the record was there may be answered late.
    assert broker.caught_up <= told + 1
    told = broker.caught_up
    assert poll(source, 4) == [1]
    assert broker.caught_up > told


@pytest.mark.usefixtures("_asks_always")
def test_records_that_are_not_due_hold_no_delivery_back() -> None:
    """A retry topic is caught up with while the next record waits for its time, and not while there is no room."""
    broker, assignment = Broker(), Assignment()
    source = build_source(broker, assignment)
    parser, wait_us = source._parser, 60_000_000

    def parse(message: Message, now_us: int) -> HeldRecord:
        return parser.parse(message, now_us)._replace(until_us=now_us + wait_us)

    cast("Any", source)._parser = SimpleNamespace(parse=parse, topics=TOPICS)
    broker.end, broker.polls = 2, [broker.assign, [*records(0, 1), *at_end(2)]]
    assert poll(source, 4) == []
    assert broker.caught_up >= 1
    told, wait_us = broker.caught_up, 0
    assignment.release_due(2**62)
    poll(source, 3)
    assert broker.caught_up <= told + 1
    broker.polls = [[*records(0, 1), *at_end(2)]]
    told = broker.caught_up
    assert poll(source, 4) == [0, 1]
    assert broker.caught_up > told


@pytest.mark.usefixtures("_asks_always")
def test_a_partition_without_room_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next record is due, and waits for those before it to be settled."""
    monkeypatch.setattr(Assignment, "has_room", lambda *_: False)
    broker = Broker()
    source = build_source(broker)
    broker.end, broker.polls = 2, [broker.assign, [*records(0, 1), *at_end(2)]]
    assert poll(source, 4) == []
    assert broker.caught_up == 0


@pytest.mark.usefixtures("_asks_always")
def test_minutes_of_a_pause_that_an_incident_holds_are_complete() -> None:
    """So the incident ends, and the pause with it; a pause that a person made is not over by itself."""
    broker = Broker()
    source = build_source(broker)
    broker.end, broker.polls = 5, [broker.assign, records(0)]
    assert poll(source, 3) == [0]
    source.is_paused = True
    poll(source, 3)
    assert broker.caught_up == 0
    source.is_paused_by_alert = True
    poll(source, 3)
    assert broker.caught_up == 3
