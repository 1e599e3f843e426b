"""Tests of the propagator for OpenTelemetry, with a real SDK, and headers as clients of Kafka have them."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.instrumentation.aiokafka.utils import AIOKafkaContextGetter
from opentelemetry.instrumentation.confluent_kafka.utils import KafkaContextSetter
from opentelemetry.trace import SpanKind

from hopwatch.integrations.opentelemetry import HopwatchPropagator
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.integrations import opentelemetry
from hopwatch.probes.integrations.opentelemetry import MESSAGE_HEADER, MessageMark
from hopwatch.probes.integrations.propagator_entry import load_propagator
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US, MemorySink, Observation, id_bytes
from tests.support.report import reported
from tests.support.spool import at_us
from tests.support.traced_service import TRACED_CONFIGURATION, TracedService, close_services
from tests.support.workspace import Workspace

MARK = MessageMark("0badcafe", EPOCH_US, "orders", "order 7")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """End all services with the test."""
    yield
    close_services()


def stamps(service: TracedService) -> list[tuple[str, str, Observation]]:
    """Return stream, node and observation of all that a service has stamped, and end it."""
    return [(one.stream, one.node, seen) for one in service.close() for seen in batch_observations(one)]


def streams(service: TracedService) -> list[str]:
    """Return the stream of each stamp of a service, and end it."""
    return [stream for stream, _, _ in stamps(service)]


def missed(batches: list[Batch]) -> dict[tuple[str, str], int]:
    """Return how many messages were not stamped, by stream and cause."""
    return {(one.stream, drop.cause): drop.count for one in batches for drop in one.drops}


def find_marks(headers: Any) -> list[MessageMark]:  # noqa: ANN401 - headers as any client has them
    """Return the marks of some headers."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [MessageMark.parse(value) for name, value in pairs if name == MESSAGE_HEADER]


def test_a_message_is_stamped_where_it_leaves_and_where_it_arrives() -> None:
    """The stream is the destination, the nodes are the services, the id begins with trace and span."""
    shop, billing = TracedService("shop"), TracedService("billing")
    headers: list[Any] = [("own", b"1")]
    with shop.sending("orders", headers) as span:
        assert shop.sinks == []
        (mark,) = find_marks(headers)
        spanned = span.get_span_context()
        assert mark.message_id.startswith(f"{spanned.trace_id:032x}-{spanned.span_id:016x}-")
        # A stamp is behind the announcement of its probe.
        shop.clock.advance(0.25)
    assert headers[0] == ("own", b"1")
    billing.clock.advance(0.5)
    billing.receive(headers)
    message_id = id_bytes(mark.message_id)
    left, arrived = Observation(message_id, EPOCH_US, None, 0), Observation(message_id, EPOCH_US, 0, None)
    assert stamps(shop) == [("orders", "shop", left._replace(out_us=EPOCH_US + 250_001))]
    assert stamps(billing) == [("orders", "billing", arrived._replace(in_us=EPOCH_US + 500_001))]


def test_a_mapping_of_headers_is_marked_too() -> None:
    """Some clients take headers as a mapping."""
    shop, billing = TracedService("shop"), TracedService("billing")
    billing.receive(shop.send("orders", {}))
    assert (streams(shop), streams(billing)) == (["orders"], ["orders"])


def test_a_message_that_was_not_sent_is_not_stamped() -> None:
    """A client that raises, such as with a full queue, ends the span with an error; the next try is another message."""
    shop = TracedService("shop")
    with pytest.raises(BufferError), shop.sending("orders", []):
        raise BufferError
    shop.send("orders")
    assert streams(shop) == ["orders"]


@pytest.mark.parametrize("name", ["messaging.destination.name", "messaging.destination"])
def test_the_destination_stands_in_an_attribute(name: str) -> None:
    """By the conventions of today, and by older ones."""
    shop = TracedService("shop")
    with shop.provider.get_tracer("test").start_as_current_span("x", kind=SpanKind.PRODUCER, attributes={name: "a.b"}):
        shop.propagator.inject({})
    assert streams(shop) == ["a.b"]


@pytest.mark.parametrize("name", ["orders send", "orders publish", "send orders", "publish orders", "create orders"])
def test_the_destination_may_stand_in_the_name_of_the_span_alone(name: str) -> None:
    """Some clients set the attributes once the message was sent."""
    shop = TracedService("shop")
    with shop.provider.get_tracer("test").start_as_current_span(name, kind=SpanKind.PRODUCER):
        shop.propagator.inject({})
    assert streams(shop) == ["orders"]


@pytest.mark.parametrize(
    ("kind", "name", "attributes"),
    [
        (SpanKind.CLIENT, "orders send", {"messaging.destination.name": "orders"}),
        (SpanKind.PRODUCER, "enqueue", {}),
        (SpanKind.PRODUCER, "a b send", {}),
        (SpanKind.PRODUCER, "x", {"messaging.destination.name": "replies", "messaging.destination.temporary": True}),
        (SpanKind.PRODUCER, "x", {"messaging.destination.name": "replies", "messaging.destination.anonymous": True}),
    ],
)
def test_other_spans_mark_nothing(kind: SpanKind, name: str, attributes: dict[str, Any]) -> None:
    """Calls, spans without a destination, and destinations that only one message has."""
    shop, headers = TracedService("shop"), {}  # type: tuple[TracedService, dict[str, str]]
    with shop.provider.get_tracer("test").start_as_current_span(name, kind=kind, attributes=attributes):
        shop.propagator.inject(headers)
    assert (headers, stamps(shop)) == ({}, [])


def test_a_span_that_has_ended_marks_nothing() -> None:
    """The end of the span was told already."""
    shop, headers = TracedService("shop"), {}  # type: tuple[TracedService, dict[str, str]]
    span = shop.provider.get_tracer("test").start_span("orders send", kind=SpanKind.PRODUCER)
    span.end()
    with trace.use_span(span):
        shop.propagator.inject(headers)
    assert headers == {}


def test_a_destination_that_is_no_name_of_a_stream_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Once; its messages are not marked."""
    shop = TracedService("shop")
    assert [shop.send("to/all"), shop.send("to/all")] == [[], []]
    told = ["messages to 'to/all' are not stamped: no stream has a name like that"]
    assert [one.getMessage() for one in caplog.records] == told


@pytest.mark.parametrize("name", [None, "unknown_service:python", "my shop", "x" * 129])
def test_a_service_without_a_name_is_told(name: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing that it sends is marked, and nothing that it receives is stamped."""
    shop, headers = TracedService(name), [(MESSAGE_HEADER, MARK.format().encode())]
    assert shop.send("orders") == []
    shop.receive(headers)
    assert shop.sinks == []
    (record,) = caplog.records
    told = "no message is stamped, as the service has no name: set OTEL_SERVICE_NAME to 1 to 128 of the characters A-Z"
    assert record.getMessage().startswith(told)


def test_before_there_is_a_provider_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that is received may be the first thing that happens."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "billing")
    sink = MemorySink()
    propagator = HopwatchPropagator(sink)
    for _ in range(2):
        propagator.extract([(MESSAGE_HEADER, MARK._replace(event_us=time.time_ns() // 1_000).format())])
    propagator.close()
    assert {decode(record).node for record in sink.records} == {"billing"}


def test_what_is_known_of_a_service_is_a_label() -> None:
    """Version, host, pod and zone, as far as its resource says them; a long one is cut."""
    shop = TracedService("shop", attributes={"service.version": "1.4", "host.name": "h" * 70, "other": "x"})
    shop.send("orders")
    assert {tuple(sorted(dict(one.labels).items())) for one in shop.close()} == {
        (("host", "h" * 64), ("version", "1.4"))
    }


def test_a_message_that_is_not_sampled_is_expected_nowhere() -> None:
    """A mark that it was passed on with is removed; whether it arrives makes no difference."""
    shop, billing = TracedService("shop"), TracedService("billing")
    headers = shop.send("orders", [(MESSAGE_HEADER, MARK.format().encode())], is_sampled=False)
    billing.receive(headers)
    assert (headers, stamps(shop), stamps(billing)) == ([], [], [])


def test_headers_that_are_passed_on_get_a_mark_of_their_own() -> None:
    """A mark of the destination before would say that the message arrived there again."""
    shop, router, billing = (TracedService(name) for name in ("shop", "router", "billing"))
    headers = shop.send("orders")
    router.receive(headers)
    billing.receive(router.send("routed", list(headers)))
    assert (streams(router), streams(billing)) == (["orders", "routed"], ["routed"])


@pytest.mark.parametrize("headers", [[], {}])
def test_headers_that_messages_share_mark_the_first_alone(headers: Any, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ANN401
    """A client may read them later than it was called: of the others nothing is expected, and a line says so."""
    shop = TracedService("shop")
    shop.send("orders", headers)
    shop.send("orders", headers)
    assert [one.destination for one in find_marks(headers)] == ["orders"]
    assert streams(shop) == ["orders"]
    told = "messages with a list of headers that others have too are not stamped: give each its own"
    assert [one.getMessage() for one in caplog.records] == [told]


def test_all_marks_of_a_message_are_read() -> None:
    """Two threads that share a list of headers may both have marked it."""
    billing = TracedService("billing")
    marks = [MARK._replace(destination=destination) for destination in ("orders", "routed")]
    billing.receive(tuple((MESSAGE_HEADER, mark.format().encode()) for mark in marks))
    assert sorted(streams(billing)) == ["orders", "routed"]


def test_headers_that_cannot_be_changed_are_not_marked() -> None:
    """A message without a mark is expected nowhere."""
    shop, headers = TracedService("shop"), (("own", b"1"),)
    assert shop.send("orders", headers) == headers
    assert stamps(shop) == []


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"1;1;orders",
        b"x;1;orders;1",
        b"1;x;orders;1",
        b"1;1;or ders;1",
        b"1;1;orders;",
        b"1;%d;orders;1" % 2**63,
    ],
)
def test_a_mark_that_cannot_be_read_is_a_message_that_was_missed(value: bytes) -> None:
    """All streams of the service count one that they did not see, as it may be any message."""
    billing = TracedService("billing")
    for destination in ("orders", "routed"):
        billing.receive([(MESSAGE_HEADER, MARK._replace(destination=destination).format().encode())])
    billing.receive([(MESSAGE_HEADER, value)])
    assert missed(billing.close()) == {("orders", "bad marks"): 1, ("routed", "bad marks"): 1}


def test_a_mark_says_what_is_wrong_with_it() -> None:
    """The error names the header, and what it got."""
    told = "hopwatch-message has a process, a time, a destination and an id, got b'x'"
    with pytest.raises(ValueError, match=told):
        MessageMark.parse(b"x")


def test_a_message_without_a_mark_is_of_no_stream() -> None:
    """Such as one of a service that is not traced; the context that others have extracted stays."""
    billing, context = TracedService("billing"), Context({"key": "value"})
    assert billing.propagator.extract([], context, AIOKafkaContextGetter()) == context
    billing.receive(None)
    billing.receive([("own", b"1")])
    assert stamps(billing) == []


def test_a_service_gets_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """Headers that are none are told once."""
    shop = TracedService("shop")
    with shop.sending("orders", [7]):
        shop.receive(7)
    told = ["a message that is sent is not stamped", "a message that is received is not stamped"]
    assert [one.getMessage() for one in caplog.records] == told


def test_without_a_sink_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers stay as they are."""
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    propagator, headers = HopwatchPropagator(), [(MESSAGE_HEADER, MARK.format().encode())]
    with TracedService("shop").provider.get_tracer("test").start_as_current_span("a send", kind=SpanKind.PRODUCER):
        propagator.inject(headers)
    propagator.extract(headers, getter=AIOKafkaContextGetter())
    assert headers == [(MESSAGE_HEADER, MARK.format().encode())]
    assert propagator.fields == {MESSAGE_HEADER}


def test_a_tracer_that_is_no_sdk_marks_nothing() -> None:
    """Nobody would say when its spans end."""
    propagator, headers = HopwatchPropagator(MemorySink()), []  # type: tuple[HopwatchPropagator, list[Any]]
    with trace.use_span(trace.NonRecordingSpan(trace.INVALID_SPAN_CONTEXT)):
        propagator.inject(headers)
    with TracedService("shop").provider.get_tracer("test").start_as_current_span("a send", kind=SpanKind.PRODUCER):
        propagator.inject(headers)
    assert headers == []


def test_further_destinations_are_unknown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A probe of each is announced and ends without a bye, as other instances of the service may stamp them."""
    monkeypatch.setattr(opentelemetry, "MAX_DESTINATIONS", 2)
    monkeypatch.setattr(opentelemetry, "MAX_ANNOUNCED", 4)
    billing = TracedService("billing")
    for number in (0, 1, 2, 3, 4, 2, 0):
        billing.receive([(MESSAGE_HEADER, MARK._replace(destination=f"d{number}").format().encode())])
    batches = billing.close()
    kinds = {name: {one.kind.name for one in batches if one.stream == name} for name in ("d0", "d1", "d2", "d3", "d4")}
    assert [("BYE" in of_stream, "OBSERVATIONS" in of_stream) for of_stream in kinds.values()] == [
        (True, True),
        (True, True),
        (False, False),
        (False, False),
        (False, False),
    ]
    assert (bool(kinds["d3"]), bool(kinds["d4"])) == (True, False)
    told = [one.getMessage() for one in caplog.records if "destinations" in one.getMessage()]
    assert told == [
        "messages of more than 2 destinations are not stamped: of the others all is unknown",
        "messages of more than 4 destinations are not stamped",
    ]


def test_messages_of_a_further_destination_are_unknown_and_not_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another instance of the service stamps the same destination, and has not seen them."""
    # Instances of one process are told apart by when they began.
    begun = (("shop", 10), ("billing", 10), ("billing", 11))
    shop, first, second = (TracedService(name, at_us(second)) for name, second in begun)
    first.receive(shop.send("orders"))
    monkeypatch.setattr(opentelemetry, "MAX_DESTINATIONS", 0)
    second.receive(shop.send("orders"))
    place = Workspace(tmp_path).configure(TRACED_CONFIGURATION)
    place.watch(*shop.close(), *first.close(), *second.close())
    (stream,) = reported(place.store_url)["streams"]
    told = [(one["verdict"], one["known"], one["lost_lower"], one["lost_upper"]) for one in stream["windows"]]
    assert told == [("UNKNOWN", 2, 0, 1)]


def test_errors_of_our_own_cost_a_stamp_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A message that was received counts as one that was missed, one that was sent is expected nowhere."""
    shop, billing = TracedService("shop"), TracedService("billing")
    headers = shop.send("orders")
    billing.receive(headers)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    for service in (shop, billing):
        for name in ("arrived", "departed"):
            monkeypatch.setattr(service.propagator._probes["orders"], name, fail)
    shop.send("orders")
    billing.receive(headers)
    assert len(streams(shop)) == 1
    assert missed(billing.close()) == {("orders", "bad marks"): 1}
    told = [one.getMessage() for one in caplog.records]
    assert told[:2] == ["a message that was sent is not stamped", "a message that is received is not stamped"]


def test_spans_that_never_end_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of the oldest one is expected nowhere."""
    monkeypatch.setattr(opentelemetry, "MAX_OPEN_SPANS", 1)
    shop = TracedService("shop")
    with shop.sending("first", []), shop.sending("second", []):
        pass
    assert streams(shop) == ["second"]


def test_the_child_of_a_fork_marks_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that the parent has marked are those of another process."""
    shop, headers = TracedService("shop"), []  # type: tuple[TracedService, list[Any]]
    shop.send("orders", headers)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    shop.send("orders", headers)
    assert streams(shop) == ["orders", "orders"]
    assert len(find_marks(headers)) == 1


def test_a_second_propagator_of_a_process_leaves_the_mark_of_the_first() -> None:
    """Such as one that the service makes beside that of the environment."""
    shop, second = TracedService("shop"), TracedService("shop")
    second.propagator._seed, second.propagator._given_provider = shop.propagator._seed, shop.provider
    headers: list[Any] = []
    with shop.sending("orders", headers):
        second.propagator.inject(headers, setter=KafkaContextSetter())
    assert len(find_marks(headers)) == 1
    assert (streams(shop), streams(second)) == (["orders"], [])


def test_the_environment_names_the_propagator(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_PROPAGATORS has its name."""
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    (entry,) = entry_points(group="opentelemetry_propagator", name="hopwatch")
    assert isinstance(entry.load()(), HopwatchPropagator)


def test_without_an_sdk_a_service_starts_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A line says what is missing."""
    monkeypatch.setitem(sys.modules, "hopwatch.probes.integrations.opentelemetry", None)
    assert load_propagator().fields == set()
    assert caplog.records[0].getMessage().startswith("no message is stamped: opentelemetry-sdk is needed: ")


def test_spans_that_end_are_heard_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """The propagator is one more processor of the provider."""
    caplog.set_level(logging.DEBUG)
    shop = TracedService("shop")
    for _ in range(3):
        shop.send("orders")
    assert len(shop.provider._active_span_processor._span_processors) == 1
    assert streams(shop) == ["orders"] * 3
