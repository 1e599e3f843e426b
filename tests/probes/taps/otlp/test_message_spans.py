"""Messages that spans tell of, by the messaging conventions of today and of before."""

from __future__ import annotations

from typing import Any, Final

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hopwatch.probes.taps.otlp.message_spans import read_message_spans
from hopwatch.testing import EPOCH_US
from tests.support.otlp_requests import (
    FAILED,
    IS_LOCAL,
    IS_REMOTE,
    TOPIC,
    build_attributes,
    build_consumer_span,
    build_producer_span,
)

NOW_NS: Final = EPOCH_US * 1_000
ONE, OTHER, OWN = (bytes([number]) * 24 for number in (1, 2, 3))


def send(**changed: Any) -> Span:  # noqa: ANN401 - fields of a span
    """Return a producer span of 5 ms."""
    return build_producer_span(ONE, NOW_NS, NOW_NS + 5_000_000, **changed)


def take(*contexts: bytes, operation: str = "process", **changed: Any) -> Span:  # noqa: ANN401 - as above
    """Return a consumer span of 5 ms."""
    return build_consumer_span(OWN, contexts, NOW_NS, NOW_NS + 5_000_000, operation, **changed)


@pytest.mark.parametrize(
    "attributes",
    [
        TOPIC,
        {"messaging.destination": "orders"},
        TOPIC | {"messaging.operation": "publish"},
        TOPIC | {"messaging.operation.type": "send"},
    ],
)
def test_a_producer_span_has_sent_its_message(attributes: dict[str, str]) -> None:
    """Its start is the event time, its end the departure, its own context the creation context."""
    (sent,) = read_message_spans([send(attributes=build_attributes(attributes))]).sent
    assert (sent.context, sent.destination, sent.event_us, sent.left_us) == (ONE, "orders", EPOCH_US, EPOCH_US + 5_000)


def test_a_producer_span_that_failed_has_sent_nothing() -> None:
    """The message may have arrived nevertheless: it is known, and nobody expects it."""
    (sent,) = read_message_spans([send(status=FAILED)]).sent
    assert sent.left_us is None


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": Span.SPAN_KIND_CLIENT},
        {"attributes": []},
        {"attributes": build_attributes({"messaging.destination.name": "no stream"})},
        {"attributes": build_attributes({"messaging.destination.name": 7})},
        {"attributes": build_attributes(TOPIC | {"messaging.destination.temporary": True})},
        {"trace_id": b"", "span_id": b"1"},
    ],
)
def test_other_spans_send_nothing(changed: dict[str, Any]) -> None:
    """Of no destination, of a temporary one, of one that is no name of a stream, or without ids."""
    told = read_message_spans([send(**changed)])
    assert (told.sent, told.taken, told.untimed) == ([], [], 0)


def test_messages_that_were_created_by_themselves_are_not_sent_twice() -> None:
    """A span that sends what others have created links these; they are the messages."""
    create = send(attributes=build_attributes(TOPIC | {"messaging.operation.type": "create"}))
    batch = send(links=[Span.Link(trace_id=ONE[:16], span_id=ONE[16:])])
    assert [one.context for one in read_message_spans([create, batch]).sent] == [ONE]


def test_a_consumer_span_takes_in_what_it_links() -> None:
    """Each link is a message, whatever parent the span has, and each counts once."""
    (taken,) = read_message_spans([take(ONE, OTHER, ONE, parent_span_id=b"x" * 8, flags=IS_LOCAL)]).taken
    assert (taken.contexts, taken.unnamed) == ((ONE, OTHER), 0)
    assert (taken.operation, taken.arrived_us, taken.handled_us) == ("process", EPOCH_US, EPOCH_US + 5_000)


@pytest.mark.parametrize("flags", [IS_REMOTE, 0])
def test_without_links_the_parent_of_another_process_is_the_message(flags: int) -> None:
    """Also that of an SDK that does not say where a parent is."""
    (taken,) = read_message_spans([take(trace_id=ONE[:16], parent_span_id=ONE[16:], flags=flags)]).taken
    assert (taken.contexts, taken.unnamed) == ((ONE,), 0)


def test_a_consumer_span_inside_another_one_takes_in_nothing() -> None:
    """Its parent is of the same process, and has the messages."""
    assert read_message_spans([take(parent_span_id=ONE[16:], flags=IS_LOCAL)]).taken == []


def test_the_span_of_an_empty_poll_takes_in_nothing() -> None:
    """Neither a destination nor a message is in it."""
    assert read_message_spans([take(attributes=[])]).taken == []


def test_a_message_without_a_context_is_one_that_nobody_can_name() -> None:
    """One that is expected may have lost its headers on the way."""
    (taken,) = read_message_spans([take()]).taken
    assert (taken.contexts, taken.unnamed) == ((), 1)


def test_links_that_an_sdk_has_cut_are_messages_that_nobody_can_name() -> None:
    """An SDK keeps 128 links of a span by default."""
    (taken,) = read_message_spans([take(ONE, dropped_links_count=3)]).taken
    assert (taken.contexts, taken.unnamed) == ((ONE,), 3)


@pytest.mark.parametrize(
    ("operation", "status", "handled_us"),
    [("process", None, EPOCH_US + 5_000), ("process", FAILED, None), ("receive", None, None)],
)
def test_a_message_is_handled_once_its_process_span_ended_well(
    operation: str, status: object, handled_us: int | None
) -> None:
    """A span that only receives has not handled it, nor has one that failed."""
    (taken,) = read_message_spans([take(ONE, operation=operation, **({"status": status} if status else {}))]).taken
    assert taken.handled_us == handled_us


def test_the_name_of_a_span_tells_its_operation() -> None:
    """Instrumentations of before have no attribute for it."""
    (taken,) = read_message_spans([take(ONE, attributes=build_attributes(TOPIC), name="orders receive")]).taken
    assert taken.operation == "receive"


@pytest.mark.parametrize(
    ("attributes", "labels"),
    [
        (
            {"messaging.destination.partition.id": "3", "messaging.consumer.group.name": "g"},
            (("partition", "3"), ("group", "g")),
        ),
        (
            {"messaging.kafka.destination.partition": 0, "messaging.kafka.consumer.group": "g" * 99},
            (("partition", "0"), ("group", "g" * 64)),
        ),
        ({"messaging.kafka.partition": 7}, (("partition", "7"),)),
        ({"messaging.consumer.group.name": ""}, ()),
    ],
)
def test_partition_and_group_are_labels(attributes: dict[str, str | int], labels: tuple[tuple[str, str], ...]) -> None:
    """By names of today and of before, cut where they are longer than labels may be."""
    (taken,) = read_message_spans([take(ONE, attributes=build_attributes(TOPIC | attributes))]).taken
    assert taken.labels == labels


@pytest.mark.parametrize(
    ("start_ns", "end_ns"), [(0, NOW_NS), (NOW_NS, 0), (NOW_NS, NOW_NS - 1), (NOW_NS, 2**63), (2**64 - 1, 2**64 - 1)]
)
def test_spans_without_times_that_can_be_are_counted(start_ns: int, end_ns: int) -> None:
    """Each message of theirs is one that cannot be stamped."""
    times: dict[str, Any] = {"start_time_unix_nano": start_ns, "end_time_unix_nano": end_ns}
    told = read_message_spans([send(**times), take(ONE, OTHER, **times), take(**times)])
    assert (told.sent, told.taken, told.untimed) == ([], [], 4)
