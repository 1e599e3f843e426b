"""Tests of instrumented clients of kafka-python, on clients that reach no broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.future import Future

from hopwatch.integrations.kafka_python import instrument
from hopwatch.probes import Probe, message_headers
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation
from tests.probes.integrations.sent_stamps import said
from tests.support.drops import drops

MARKED = [("hopwatch-id", b"order 7"), ("hopwatch-time", b"%d" % EPOCH_US)]
ARRIVED = Observation(id_bytes("order 7"), EPOCH_US, EPOCH_US + 500_000, None)
LEFT = ARRIVED._replace(in_us=None, out_us=EPOCH_US + 500_000)


class Sender(KafkaProducer):  # type: ignore[misc]  # kafka-python has no types
    """Producer that keeps what it is sent, and delivers when a test says so."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._closed = True
        self.sent: list[dict[str, Any]] = []
        self.futures: list[Future] = []

    def __del__(self) -> None:
        """End without what the client would close."""

    def send(
        self, topic: str, value: object = None, key: object = None, headers: object = None,
        partition: object = None, timestamp_ms: object = None,
    ) -> Future:  # fmt: skip
        """Take a message."""
        del timestamp_ms
        self.sent.append({"topic": topic, "value": value, "key": key, "partition": partition, "headers": headers})
        self.futures.append(Future())
        return self.futures[-1]


class Receiver(KafkaConsumer):  # type: ignore[misc]  # as above
    """Consumer of messages that a test has made."""

    def __init__(self, *headers: object) -> None:
        """Take the headers of each message."""
        self._closed = True
        self.messages = [SimpleNamespace(headers=one, topic="orders", partition=3) for one in headers]

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> Any:  # noqa: ANN401 - messages
        """Return all messages."""
        del timeout_ms, max_records
        found, self.messages = self.messages, []
        return {"orders-3": found}

    def __next__(self) -> Any:  # noqa: ANN401 - a message
        """Return the next message."""
        if not self.messages:
            raise StopIteration
        return self.messages.pop(0)

    def __enter__(self) -> Self:
        """Open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.messages = []


def test_a_message_is_marked_where_it_is_made(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Id and event time are set, what the host sent stays, and the delivery is stamped when it is told."""
    sender = Sender()
    future = instrument(sender, probe=probe, clock=clock).send("orders", b"value", b"key", iter([("own", b"1")]), 3)
    (message,) = sender.sent
    assert future is sender.futures[0]
    assert message["headers"][0] == ("own", b"1")
    assert message | {"headers": None} == {
        "topic": "orders", "value": b"value", "key": b"key", "partition": 3, "headers": None,
    }  # fmt: skip
    made = message_headers.parse_headers(message["headers"])
    assert made is not None
    assert (made.event_us, said(probe, sink)) == (EPOCH_US, [])
    clock.advance(0.5)
    future.success(SimpleNamespace(partition=3))
    assert said(probe, sink) == [LEFT._replace(message_id=made.message_id)]


def test_what_is_not_delivered_is_not_stamped(probe: Probe, sink: MemorySink) -> None:
    """Of two messages with marks one is refused."""
    sender = Sender()
    producer: Any = instrument(sender, probe=probe)
    for _ in range(2):
        producer.send("orders", headers=MARKED)
    assert [one["headers"] for one in sender.sent] == [MARKED] * 2
    sender.futures[0].failure(OSError("away"))
    assert said(probe, sink) == []
    sender.futures[1].success(None)
    assert [one.message_id for one in said(probe, sink)] == [LEFT.message_id]


def test_what_is_received_is_stamped(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Many at once, or in a loop; a message without marks counts as one that was missed."""
    clock.advance(0.5)
    found: Any = instrument(Receiver(MARKED, MARKED), probe=probe)
    assert len(found.poll(timeout_ms=1)["orders-3"]) == 2
    assert [one.partition for one in instrument(Receiver(MARKED, []), probe=probe)] == [3, 3]
    assert said(probe, sink) == [ARRIVED] * 3
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("unmarked message", 1)]


def test_a_node_that_consumes_makes_no_messages(probe: Probe) -> None:
    """A message that it sends without headers is sent as it is."""
    instrument(Receiver(), probe=probe)
    sender = Sender()
    instrument(sender, probe=probe).send("orders", b"x")
    assert sender.sent[0]["headers"] is None


def test_all_else_is_the_client_s(probe: Probe) -> None:
    """Class, attributes, and the block that closes it; a mistake raises what it raised."""
    receiver = Receiver(MARKED)
    client: Any = instrument(receiver, probe=probe)
    with client as opened:
        assert opened is client
        assert isinstance(opened, KafkaConsumer)
        assert opened.messages is receiver.messages
    assert receiver.messages == []
    producer: Any = instrument(Sender(), probe=probe)
    with pytest.raises(TypeError, match=r"Sender.send\(\)"):
        producer.send("orders", 1, value=2)


def test_a_probe_is_made_of_the_names(sink: MemorySink) -> None:
    """Without one that exists."""
    client: Any = instrument(Receiver(), stream="orders", node="router", sink=sink)
    assert (client.hopwatch_probe.stream, client.hopwatch_probe.node) == ("orders", "router")
    client.hopwatch_probe.close()
