"""Tests of records as messages, and of settled messages as records."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import Message

from hopwatch.deliver.kafka_records import (
    MAX_REJECTED_BYTES,
    RecordParser,
    build_rejected_record,
    build_retry_record,
    reject_poison,
)
from hopwatch.deliver.retry_topics import build_topics
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.gate.retry_headers import parse_retry_headers
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.values import TimeUnit

NOW_US = 1_700_000_000_000_000
TOPICS = build_topics("orders", "billing", (30_000_000, 300_000_000))
PARSER = RecordParser(TOPICS)


class BadlyNamed:
    """Record of which the client cannot read the headers, and returns null pointers the second time."""

    def __init__(self) -> None:
        """Begin unread."""
        self._record, self._is_read = record(), False

    def __getattr__(self, name: str) -> object:
        """Return what the record has otherwise."""
        return getattr(self._record, name)

    def headers(self) -> object:
        """Fail, once."""
        assert not self._is_read, "the second time is a segmentation fault"
        self._is_read = True
        return b"\xff".decode()


def record(
    value: bytes | None = b"{}",
    headers: list[tuple[str, str | bytes]] | None = None,
    topic: str = "orders",
    at_ms: int = 5_000,
) -> Message:
    """Return a record of a topic, at a place and a time."""
    build = cast("Any", Message)
    return cast(
        "Message",
        build(topic=topic, partition=1, offset=7, key=b"k", value=value, headers=headers or [], timestamp=(1, at_ms)),
    )


def test_id_and_event_time_are_read_from_headers() -> None:
    """The other headers go along."""
    held = PARSER.parse(record(headers=[("hopwatch-id", "a"), ("hopwatch-time", b"12"), ("team", b"blue")]), NOW_US)
    message = held.message
    assert (message.message_id, message.event_us, message.key, held.fault) == ("a", 12, b"k", "")
    assert held.stamp_id == id_bytes("a")
    assert message.headers == (("hopwatch-id", b"a"), ("hopwatch-time", b"12"), ("team", b"blue"))


def test_without_headers_place_and_time_of_the_record_stand_for_them() -> None:
    """The id is the same however often it is read."""
    message = PARSER.parse(record(), NOW_US).message
    assert (message.message_id, message.event_us) == ("orders/1/7", 5_000_000)


def test_id_and_event_time_are_read_from_json_values() -> None:
    """At their paths, in their unit; an integer id is stamped as one."""
    parser = RecordParser(TOPICS, "meta.id", "at", TimeUnit.S)
    held = parser.parse(record(b'{"meta":{"id":5},"at":9}'), NOW_US)
    assert (held.message.message_id, held.message.event_us, held.stamp_id) == ("5", 9_000_000, id_bytes(5))


@pytest.mark.parametrize(
    ("parser", "made", "fault"),
    [
        (PARSER, record(None), "the record has no value, and there is nothing to send"),
        (PARSER, record(headers=[("hopwatch-time", b"soon")]), "the header hopwatch-time: "),
        (PARSER, record(headers=[("hopwatch-id", b"\xff")]), "the header hopwatch-id: "),
        (PARSER, record(at_ms=2**62), "the record's own time: an event time lies between 1970 and 2255, got "),
        (PARSER, cast("Message", BadlyNamed()), "the name of a header is no UTF-8"),
        (RecordParser(TOPICS, "id"), record(b"{"), "the value is not JSON, where id or event time are to be"),
        (RecordParser(TOPICS, "id"), record(b"{}"), "the value at id: "),
        (RecordParser(TOPICS, "", "at"), record(b"{}"), "the value at at: "),
    ],
)
def test_poison_has_its_reason(parser: RecordParser, made: Message, fault: str) -> None:
    """Poison is rejected under the id of its place, which nobody takes for another message's."""
    held = parser.parse(made, NOW_US)
    assert held.fault.startswith(fault)
    settled = reject_poison(held, NOW_US)
    assert (settled.ending, settled.reason) == (Ending.REJECTED, held.fault)
    rejected = decode_rejected(build_rejected_record(settled, held, TOPICS, stream="s", name="billing").value)
    assert isinstance(rejected, RejectedRecord)
    assert (rejected.owns_id, rejected.producer) == (False, "orders/1/7")


def test_a_deferred_message_comes_back_with_its_tries() -> None:
    """From the topic of its tier; a state in the source topic is somebody else's, and counts for nothing."""
    held = PARSER.parse(record(headers=[("hopwatch-tries", b"9"), ("team", b"blue")]), NOW_US)
    assert held.message.tries == 0
    sent = held.message._replace(tries=3, first_sent_us=NOW_US)
    settled = Settlement(sent, Ending.DEFERRED, NOW_US, 500, "down", until_us=NOW_US + 5, tier=1)
    out = build_retry_record(settled, held, TOPICS)
    assert (out.topic, out.key, out.value) == ("orders.billing.retry.5m", b"k", b"{}")
    again = PARSER.parse(record(out.value, out.headers, out.topic), NOW_US + 9)
    assert (again.message.tries, again.message.first_sent_us, again.until_us) == (3, NOW_US, NOW_US + 5)
    assert (again.message.message_id, again.message.event_us) == ("orders/1/7", 5_000_000)
    assert again.stamp_id == held.stamp_id
    assert dict(again.message.headers)["team"] == b"blue"
    assert "hopwatch-tries" not in dict(again.message.headers)


@pytest.mark.parametrize("name", ["hopwatch-id", "hopwatch-time"])
def test_a_header_without_a_value_is_none(name: str) -> None:
    """Its message keeps id and event time on its way through a retry topic all the same, where both change."""
    held = PARSER.parse(record(headers=[(name, b"12"), (name, cast("bytes", None))]), NOW_US)
    assert (held.message.message_id, held.message.event_us) == ("orders/1/7", 5_000_000)
    out = build_retry_record(Settlement(held.message, Ending.DEFERRED, NOW_US, 500, "down"), held, TOPICS)
    again = PARSER.parse(record(out.value, out.headers, out.topic, 9_000), NOW_US)
    assert again.message[1:3] == held.message[1:3]
    assert again.stamp_id == held.stamp_id


@pytest.mark.parametrize(
    ("until_us", "first_sent_us", "waits_until_us", "expires_from_us"),
    [
        (NOW_US + 30_000_000, NOW_US - 5, NOW_US + 30_000_000, NOW_US - 5),
        (NOW_US + 90_000_000, NOW_US, NOW_US + 90_000_000, NOW_US),
        (NOW_US + 90_000_001, NOW_US + 1, 0, NOW_US),
        (10**18 - 1, 10**18 - 1, 0, NOW_US),
    ],
)
def test_a_time_that_cannot_be_holds_up_nothing(
    until_us: int, first_sent_us: int, waits_until_us: int, expires_from_us: int
) -> None:
    """A message waits as long as its topic says, a minute longer where clocks differ; another one is tried at once."""
    headers: list[tuple[str, str | bytes]] = [
        ("hopwatch-not-before", str(until_us)), ("hopwatch-first-sent", str(first_sent_us)), ("hopwatch-tries", "3"),
    ]  # fmt: skip
    held = PARSER.parse(record(headers=headers, topic=TOPICS.tiers[0].topic), NOW_US)
    assert (held.until_us, held.message.first_sent_us, held.message.tries) == (waits_until_us, expires_from_us, 3)


def test_a_rejected_message_has_reason_answer_and_delivery() -> None:
    """A long value is cut, and it says so; the state of a retry is left out."""
    headers: list[tuple[str, str | bytes]] = [("hopwatch-id", "a"), ("hopwatch-tries", "3")]
    made = record(b"x" * (MAX_REJECTED_BYTES + 1), headers, TOPICS.tiers[0].topic)
    held = PARSER.parse(made, NOW_US)
    settled = Settlement(held.message, Ending.REJECTED, NOW_US, 404, "HTTP 404 Not Found", b" gone \n")
    out = build_rejected_record(settled, held, TOPICS, stream="s", name="billing")
    found = decode_rejected(out.value)
    assert isinstance(found, RejectedRecord)
    assert [one.detail for one in found.reasons] == [
        "HTTP 404 Not Found",
        "the receiver's answer: gone",
        f"of {MAX_REJECTED_BYTES + 1:,} bytes the first {MAX_REJECTED_BYTES:,} are kept",
    ]
    assert (found.event_id, len(found.data), found.owns_id) == (id_bytes("a"), MAX_REJECTED_BYTES, True)
    assert dict(out.headers)["hopwatch-delivery"] == "billing"
    assert parse_retry_headers(out.headers).tries == 0
