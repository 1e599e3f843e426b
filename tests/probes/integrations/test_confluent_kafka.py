"""Tests of instrumented clients, on clients that reach no broker; those that do are in tests/real."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from hopwatch.probes import Probe, message_headers
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.integrations.confluent_kafka import instrument
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation
from tests.probes.integrations.clients import Letter, Receiver, Sender, SerializingSender
from tests.probes.integrations.sent_stamps import causes, said
from tests.support.raw_producer import raw_cluster

MARKED = [("hopwatch-id", b"order 7"), ("hopwatch-time", b"%d" % EPOCH_US)]
REFUSED = KafkaError(KafkaError._MSG_TIMED_OUT)


def test_a_message_is_marked_where_it_is_made(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Id and event time are set, what the host sent stays, and the delivery is stamped when it is reported."""
    sender = Sender()
    producer = instrument(sender, probe=probe, clock=clock)
    producer.produce("orders", b"value", b"key", headers={"trace": b"1"}, timestamp=9)
    (sent,) = sender.produced
    assert sent["headers"][0] == ("trace", b"1")
    made = message_headers.parse_headers(sent["headers"])
    assert made is not None
    assert made.event_us == EPOCH_US
    assert sent | {"headers": None} == {
        "topic": "orders", "value": b"value", "key": b"key", "partition": -1, "headers": None, "timestamp": 9,
    }  # fmt: skip
    assert said(probe, sink) == []
    clock.advance(0.5)
    producer.poll(0)
    assert said(probe, sink) == [Observation(made.message_id, EPOCH_US, None, EPOCH_US + 500_000)]


@pytest.mark.parametrize("headers", [MARKED, dict(MARKED), iter(MARKED)])
def test_marks_that_are_there_are_forwarded(probe: Probe, sink: MemorySink, headers: object) -> None:
    """Marks that a message has already are forwarded and stamped unchanged."""
    sender = Sender()
    producer = instrument(sender, probe=probe)
    producer.produce("orders", headers=headers)
    producer.poll(0)
    assert message_headers.parse_headers(sender.produced[0]["headers"]) == message_headers.MessageIdentity(
        id_bytes("order 7"), EPOCH_US
    )
    assert [row.message_id for row in said(probe, sink)] == [id_bytes("order 7")]


@pytest.mark.parametrize("name", ["callback", "on_delivery"])
@pytest.mark.parametrize("is_positional", [False, True])
def test_the_host_s_own_report_is_called_as_ever(probe: Probe, name: str, is_positional: bool) -> None:  # noqa: FBT001
    """With the same arguments, by whatever way it was given, and what it raises is the host's to see."""
    sender, reports = Sender(), []

    def report(*given: object) -> None:
        reports.append(given)
        raise KeyError("the host's own")

    producer: Any = instrument(sender, probe=probe)
    if is_positional:
        before = (b"", b"", -1) if name == "callback" else (b"", b"", -1, None)
        producer.produce("orders", *before, report)
    else:
        producer.produce("orders", **{name: report})
    with pytest.raises(KeyError, match="the host's own"):
        producer.poll(3)
    assert reports == [(None, "message, after 3 s")]


def test_what_is_not_delivered_is_not_stamped(probe: Probe, sink: MemorySink) -> None:
    """The host hears of it, and the message has not left."""
    sender, reports = Sender(), []
    producer = instrument(sender, probe=probe)
    sender.outcomes = [REFUSED]
    producer.produce("orders", on_delivery=lambda *given: reports.append(given))
    producer.poll(0)
    assert reports == [(REFUSED, "message, after 0 s")]
    assert said(probe, sink) == []


def test_the_report_of_the_configuration_is_named_again(probe: Probe) -> None:
    """A report of one message goes before it."""
    sender, reports = Sender(), []
    producer = instrument(sender, probe=probe, on_delivery=lambda *_: reports.append("default"))
    producer.produce("orders")
    producer.produce("orders", on_delivery=lambda *_: reports.append("own"))
    producer.poll(0)
    assert reports == ["default", "own"]


def test_a_serializing_producer_takes_its_arguments_in_its_own_order(probe: Probe, sink: MemorySink) -> None:
    """Key before value; headers may be given by position too."""
    sender = SerializingSender()
    producer = instrument(sender, probe=probe)
    producer.produce("orders", "key", "value", 3, None, 9, MARKED)
    assert sender.produced == [("orders", "key", "value", 3, 9, MARKED)]
    assert [row.message_id for row in said(probe, sink)] == [id_bytes("order 7")]
    with pytest.raises(TypeError, match="unexpected keyword argument 'callback'"):
        producer.produce("orders", callback=print)  # type: ignore[call-arg]  # a mistake


def test_what_is_polled_is_stamped(probe: Probe, sink: MemorySink) -> None:
    """One by one and many at once; no message and an error are none."""
    consumer = instrument(
        Receiver(Letter(MARKED), None, Letter(MARKED, REFUSED), Letter(MARKED), Letter(MARKED)), probe=probe
    )
    assert [consumer.poll(1) is not None for _ in range(3)] == [True, False, True]
    assert len(consumer.consume(5, timeout=1)) == 2
    assert said(probe, sink) == [Observation(id_bytes("order 7"), EPOCH_US, EPOCH_US + 1, None)] * 3


def test_a_node_that_consumes_makes_no_messages(
    probe: Probe, sink: MemorySink, caplog: pytest.LogCaptureFixture
) -> None:
    """A message whose marks were not forwarded is no new one: it is counted, and the log says once what to do."""
    sender = Sender()
    producer = instrument(sender, probe=probe)
    instrument(Receiver(), probe=probe)
    producer.produce("orders", b"value", headers=[("trace", b"1")])
    producer.produce("orders")
    producer.poll(0)
    assert [sent["headers"] for sent in sender.produced] == [[("trace", b"1")], None]
    assert causes(probe, sink) == [("unmarked message", 2)]
    advice = "it has no marks: forward them with headers=message.headers(), or say origin=True"
    assert caplog.text.count(advice) == 1
    instrument(sender, probe=probe, origin=True).produce("orders")
    assert message_headers.parse_headers(sender.produced[-1]["headers"]) is not None


def test_a_node_may_be_told_that_it_makes_none(probe: Probe, sink: MemorySink) -> None:
    """With ``origin=False`` a producer marks no message, as where the consumer is in another process."""
    sender = Sender()
    instrument(sender, probe=probe, origin=False).produce("orders")
    assert sender.produced[0]["headers"] is None
    assert causes(probe, sink) == [("unmarked message", 1)]


def test_a_message_without_marks_is_a_drop(probe: Probe, sink: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    """So that what lost its headers on the way is not taken for lost; the log says by which topic it came."""
    consumer = instrument(Receiver(Letter(None), Letter([("hopwatch-id", b"a")])), probe=probe)
    consumer.consume(2, 1)
    assert causes(probe, sink) == [("bad marks", 1), ("unmarked message", 1)]
    assert "it came without marks by the topic orders: does its producer mark?" in caplog.text
    assert "got hopwatch-id alone" in caplog.text


def test_messages_of_others_may_be_ignored(probe: Probe, sink: MemorySink) -> None:
    """Those without marks count as nothing then; bad marks are still told."""
    consumer = instrument(Receiver(Letter(None), Letter([("hopwatch-id", b"a")])), probe=probe, ignore_unmarked=True)
    consumer.consume(2, 1)
    assert causes(probe, sink) == [("bad marks", 1)]


def test_a_batch_without_headers_is_told(probe: Probe, sink: MemorySink) -> None:
    """A batch without headers is produced as ever, and each of its messages is counted."""
    producer = instrument(Sender(), probe=probe)
    assert producer.produce_batch("orders", [{}, {}, {}]) == 3
    assert causes(probe, sink) == [("unmarked message", 3)]


def test_our_own_errors_stay_with_us(probe: Probe, caplog: pytest.LogCaptureFixture) -> None:
    """Headers that cannot be asked for cost a stamp; the message comes all the same."""
    letter = Letter(RuntimeError("no headers here"))
    assert instrument(Receiver(letter), probe=probe).poll(1) is letter
    assert "no headers here" in caplog.text


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ((1, 2, 3, 4, 5, 6, 7, 8), {}, "positional arguments"),
        ((b"value",), {"value": b"value"}, "multiple values for argument 'value'"),
        ((), {"headers": 5}, "headers are a dict or a list"),
        ((), {"unknown": 5}, "unexpected keyword argument 'unknown'"),
    ],
)
def test_the_host_s_mistakes_raise_what_they_raised(
    probe: Probe, args: tuple[Any, ...], kwargs: dict[str, Any], told: str
) -> None:
    """The client's own words."""
    with pytest.raises(TypeError, match=told):
        instrument(Sender(), probe=probe).produce("orders", *args, **kwargs)


def test_all_else_is_the_client_s(probe: Probe) -> None:
    """Attributes, length, truth, name, type, and the end of a block."""
    sender = Sender()
    producer = instrument(sender, probe=probe)
    assert isinstance(producer, Producer)
    assert isinstance(producer, Sender)
    assert (bool(producer), len(producer), repr(producer), producer.outcomes) == (True, 0, "<Sender>", [])
    with producer as entered:
        assert entered is producer
        assert sender.is_open
    assert not producer.is_open
    with pytest.raises(AttributeError, match="'Sender' object has no attribute 'nothing'"):
        producer.nothing  # type: ignore[attr-defined]  # noqa: B018 - it is asked for to be refused


def test_a_probe_is_made_of_the_names(sink: MemorySink, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has its probe as ``hopwatch_probe``; without a sink it does nothing, and nothing is raised."""
    consumer = instrument(Receiver(Letter(MARKED)), stream="orders", node="router", sink=sink)
    consumer.poll(1)
    made = consumer.hopwatch_probe  # type: ignore[attr-defined]  # beside what the client has
    made.close()
    assert {(decode(record).stream, decode(record).node) for record in sink.records} == {("orders", "router")}
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    for names in ({}, {"stream": "orders", "node": "router"}):
        letter = Letter(MARKED)
        assert instrument(Receiver(letter), **names).poll(1) is letter  # type: ignore[arg-type]


def test_a_header_whose_name_is_no_utf_8_is_missed_and_crashes_no_host(
    probe: Probe, sink: MemorySink, caplog: pytest.LogCaptureFixture
) -> None:
    """Its message counts as dropped, and is one without headers from then on, wherever the host sends it."""
    with raw_cluster() as cluster:
        letters: list[Any] = [cluster.read_back(b"x", [(b"\xff", b"v")], f"raw{turn}") for turn in range(2)]
        consumer = instrument(Receiver(*letters), probe=probe)
        polled, (consumed,) = consumer.poll(1), consumer.consume(1, 1)
    assert [one.headers() for one in (polled, consumed)] == [[], []]
    sender = Sender()
    instrument(sender, probe=probe, origin=False).produce("next", polled.value(), headers=polled.headers())
    assert sender.produced[0]["headers"] == []
    assert causes(probe, sink) == [("bad marks", 2), ("unmarked message", 1)]
    assert caplog.text.count("the name of a header is no UTF-8: it came by the topic raw0") == 1
