"""Tests of records in a topic: each is validated or rejected, and a rejection has its reasons."""

from __future__ import annotations

import struct
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import CheckedEvent, EventPolicy
from hopwatch.gate.fields import RecordFields
from hopwatch.gate.framing import ValueFraming
from hopwatch.gate.record_checks import MAX_METADATA_BYTES, RecordChecker, TopicRecord, UnknownSchemaPolicy
from hopwatch.gate.records import decode_rejected
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.gate.rules import Action, Enumeration, EventRule, FieldPath, Freshness, NumberRange, Required
from hopwatch.probes.avro_reader import PREFIX_BYTES
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.values import TimeUnit
from hopwatch.testing import EPOCH_US, ManualClock
from tests.gate.events import with_event
from tests.support.examples import examples
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, SCHEMAS, SECOND, Json, changed, record, schema

AGE_US = 3_600_000_000
HEADERS = {ID_HEADER: b"7", TIME_HEADER: b"%d" % EPOCH_US}


def validating(*said: Json, rules: tuple[EventRule, ...] = (), **more: Any) -> RecordChecker:  # noqa: ANN401 - what it takes
    """Return what judges the records of a subject with some versions."""
    registry = Registry(MemoryShelf())
    registry.set_level(CompatibilityLevel.NONE)
    for one in said:
        registry.register("orders", schema(one))
    return RecordChecker(
        "orders", ResolutionCache(registry, "orders", ManualClock()), EventPolicy(AGE_US, rules), **more
    )


def came(value: bytes | None, headers: dict[str, Any] | None = None, recorded_us: int | None = EPOCH_US) -> TopicRecord:
    """Return a record."""
    return TopicRecord("orders.raw/3/17", value, HEADERS if headers is None else headers, recorded_us)


def judged(value: bytes | None, **more: Any) -> CheckedEvent:  # noqa: ANN401 - as above
    """Return what becomes of a value in a topic of two versions."""
    return validating(FIRST, SECOND).check(came(value, **more), EPOCH_US)


OLD = Codec(schema(FIRST)).encode(b'{"a":1}')
NEW = Codec(schema(SECOND)).encode(b'{"a":1,"b":7}')


@pytest.mark.parametrize(
    ("value", "schema_name"),
    [
        (OLD, "orders/1"), (NEW, "orders/2"), (NEW[:-1], "orders/2"), (b'{"a": 1}', ""), (None, ""),
        (b"\x81" + b"\xab" * 32 + b"\2", "ab" * 6), (b"\0\0\0\0\x63\2", "id 99"),
    ],
)  # fmt: skip
def test_a_record_says_which_schema_wrote_it(value: bytes | None, schema_name: str) -> None:
    """Subject and version, whether it may enter or not; of an unknown schema the reference in the record."""
    assert judged(value).schema == schema_name


@pytest.mark.parametrize(
    "value", [OLD, NEW, b"\0\0\0\0\x01" + OLD[PREFIX_BYTES:], b"\0\0\0\0\x02" + NEW[PREFIX_BYTES:], b'{"a":1}']
)
def test_whatever_form_it_had_it_leaves_as_the_latest_version(value: bytes) -> None:
    """In the envelope, with the reader's fingerprint."""
    found = judged(value)
    assert (found.record, found.action, found.faults) == (NEW, None, ())
    assert (found.event_id, found.event_us) == (id_bytes("7"), EPOCH_US)


@settings(max_examples=examples(200))
@given(SCHEMAS.flatmap(lambda said: st.tuples(with_event(said), changed(said))), st.binary(max_size=3))
def test_every_record_may_enter_or_may_not(drawn: Json, more: bytes) -> None:
    """Never both, never neither; what may not has a reason, and among the rejected the bytes that came."""
    (said, (written, _)), changed_to = drawn
    value = Codec(schema(said)).encode(orjson.dumps(written)) + more
    held = validating(said, changed_to)
    found = held.check(came(value), EPOCH_US)
    assert (found.action is None) == bool(found.record) == (not found.faults)
    if found.action is None:
        assert found.record[1:PREFIX_BYTES] == schema(changed_to).fingerprint
        Codec(schema(changed_to)).decode(found.record)
    else:
        kept = decode_rejected(held.build_rejected(found, came(value), EPOCH_US).encode())
        assert kept.data == value  # type: ignore[union-attr]
        assert kept.producer == "orders.raw/3/17"  # type: ignore[union-attr]
        assert found.reason


@given(st.none() | st.binary(max_size=60) | st.binary(max_size=60).map(lambda one: OLD[:PREFIX_BYTES] + one))
def test_nothing_that_comes_raises(value: bytes | None) -> None:
    """A value of any bytes is checked without an error."""
    assert HELD.check(came(value), EPOCH_US).event_id == id_bytes("7")


HELD = validating(FIRST, SECOND)


def test_it_arrived_when_its_topic_took_it() -> None:
    """A validator that is late makes no event old; a time ahead of now is none."""
    assert validating(FIRST).check(came(OLD), EPOCH_US + 100 * AGE_US).action is None
    old = validating(FIRST).check(came(OLD, recorded_us=EPOCH_US + 2 * AGE_US), EPOCH_US + 2 * AGE_US)
    assert old.faults[0].detail == "the event time is 7200 s old, 3600 s are allowed"
    ahead = came(OLD, {TIME_HEADER: b"%d" % (EPOCH_US + AGE_US)}, recorded_us=EPOCH_US + AGE_US)
    assert "ahead of now" in validating(FIRST).check(ahead, EPOCH_US).faults[0].detail
    assert "7200 s old" in validating(FIRST).check(came(OLD, recorded_us=None), EPOCH_US + 2 * AGE_US).reason


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({ID_HEADER: b"7"}, "it has no event time: no header hopwatch-time"),
        ({ID_HEADER: b"7", TIME_HEADER: b"x"}, "the header hopwatch-time: an event time is a number, got 'x'"),
        (
            {ID_HEADER: b"", TIME_HEADER: b"7"},
            "the header hopwatch-id: an id is a text of 1 to 1024 characters, got ''",
        ),
    ],
)
def test_headers_that_cannot_be_are_told(headers: dict[str, Any], told: str) -> None:
    """By their names."""
    found = judged(OLD, headers=headers)
    assert found.action is Action.REJECT
    assert told in [one.detail for one in found.faults]


def test_without_an_id_the_place_is_the_id() -> None:
    """The same again, whenever it is read; also for a bad one."""
    time = {TIME_HEADER: b"%d" % EPOCH_US}
    assert judged(OLD, headers=time).event_id == id_bytes("orders.raw/3/17")
    assert judged(OLD, headers=time | {ID_HEADER: b""}).event_id == id_bytes("orders.raw/3/17")


MOMENT = {"type": "long", "logicalType": "timestamp-millis"}


@pytest.mark.parametrize(
    ("kind", "value", "unit"),
    [
        (MOMENT, EPOCH_US // 1_000, TimeUnit.US),
        (["null", MOMENT], {"long": EPOCH_US // 1_000}, TimeUnit.US),
        ("long", EPOCH_US, TimeUnit.US),
        ("string", "2023-11-14T22:14:00Z", TimeUnit.ISO),
    ],
)
def test_id_and_time_stand_in_the_value(kind: Json, value: Json, unit: TimeUnit) -> None:
    """A field of moments is read by its own unit."""
    said = record(
        {"name": "m", "type": record({"name": "id", "type": "string"}, {"name": "at", "type": kind}, name="M")}
    )
    fields = RecordFields(FieldPath(("m", "id")), FieldPath(("m", "at")), unit)
    written = value["long"] if isinstance(value, dict) else value
    found = validating(said, fields=fields).check(came(orjson.dumps({"m": {"id": "x", "at": written}}), {}), EPOCH_US)
    assert found.faults == ()
    assert (found.event_id, found.event_us) == (id_bytes("x"), EPOCH_US)


def test_what_is_not_in_the_value_is_told_with_its_place() -> None:
    """Faults name their places in the value; a value that cannot be read has one fault."""
    said = record({"name": "id", "type": ["null", "string"]}, {"name": "at", "type": "string"})
    held = validating(said, fields=RecordFields(FieldPath(("id",)), FieldPath(("at",))))
    found = held.check(came(b'{"id":null,"at":"x"}'), EPOCH_US)
    assert [(one.place, one.detail) for one in found.faults] == [
        ("/id", "it has no id"), ("/at", "an event time is a number, got 'x'")
    ]  # fmt: skip
    assert len(held.check(came(b"{"), EPOCH_US).faults) == 1
    assert held.check(came(b"{"), EPOCH_US).event_id == id_bytes("orders.raw/3/17")


def test_the_records_own_time_may_be_the_event_time() -> None:
    """With ``is_record_time`` the record's timestamp is the event time, and a record without one has a fault."""
    held = validating(FIRST, fields=RecordFields(is_record_time=True))
    assert held.check(came(OLD, {}), EPOCH_US).event_us == EPOCH_US
    assert held.check(came(OLD, {}, recorded_us=None), EPOCH_US).faults[0].detail == "the record has no time"


def test_values_that_are_too_long_are_kept_by_their_beginning() -> None:
    """So that what is kept of them fits into a topic."""
    long = b'{"a":1}' + b" " * MAX_EVENT_BYTES
    found = judged(long)
    assert found.faults[0].detail == "an event has at most 262,144 bytes, got 262,151"
    assert HELD.build_rejected(found, came(long), EPOCH_US).data == long[:MAX_EVENT_BYTES]
    wide = TopicRecord("t/0/0", OLD, HEADERS, EPOCH_US, MAX_METADATA_BYTES + 1)
    told = "key and headers have at most 65,536 bytes, got 65,537: they are left out"
    assert HELD.check(wide, EPOCH_US).faults[0].detail == told


def test_a_form_that_was_not_asked_for_is_refused() -> None:
    """--framing holds all values to one."""
    found = validating(FIRST, framing=ValueFraming.FINGERPRINT).check(came(b'{"a":1}'), EPOCH_US)
    assert found.faults[0].detail.startswith("a value begins with 81 and a fingerprint")


NUMBERS = record(
    {"name": "x", "type": "double"},
    {"name": "k", "type": ["null", {"type": "enum", "name": "K", "symbols": ["A", "B"]}]},
)
RULES = (
    EventRule("x in range", NumberRange(FieldPath(("x",)), 0, 10), Action.REJECT),
    EventRule("k known", Enumeration(FieldPath(("k",)), ("A",)), Action.QUARANTINE),
    EventRule("k there", Required(FieldPath(("k",))), Action.NOTE),
    EventRule("fresh", Freshness(1_000_000), Action.NOTE),
)


@pytest.mark.parametrize(
    ("x", "branch", "action"),
    [
        (1.0, b"\x02\x00", None),
        (11.0, b"\x02\x00", Action.REJECT),
        (float("nan"), b"\x02\x00", Action.REJECT),
        (float("inf"), b"\x02\x00", Action.REJECT),
        (1.0, b"\x02\x02", Action.QUARANTINE),
        (1.0, b"\x00", Action.NOTE),
    ],
)
def test_values_in_avro_are_held_to_the_rules(x: float, branch: bytes, action: Action | None) -> None:
    """As those in JSON are; numbers that JSON has not lie in no range."""
    held = validating(NUMBERS, rules=RULES)
    found = held.check(came(b"\0\0\0\0\x01" + struct.pack("<d", x) + branch), EPOCH_US)
    assert found.action is action
    assert held.build_rejected(found, came(b""), EPOCH_US).is_held == (action is Action.QUARANTINE)


def test_a_record_whose_schema_nobody_knows_is_rejected_or_goes_on_as_it_came() -> None:
    """With its id and its time, and no rule looks into it; a body that cannot be read by a known schema is no such."""
    unknown = b"\0\0\0\0\x09" + OLD[PREFIX_BYTES:]
    rule = EventRule("a", NumberRange(FieldPath(("a",)), 5, None), Action.REJECT)
    found = validating(FIRST, SECOND, rules=(rule,)).check(came(unknown), EPOCH_US)
    assert (found.record, found.action) == (b"", Action.REJECT)
    assert found.reason == "/ unknown_schema: there is no schema 9: register the writer's schema"
    stamping = validating(FIRST, SECOND, rules=(rule,), unknown=UnknownSchemaPolicy.STAMP)
    for value in (unknown, b"\x81" + bytes(32) + b"any"):
        entered = stamping.check(came(value), EPOCH_US)
        assert (entered.record, entered.action, entered.faults, entered.rule_event) == (value, None, (), None)
        assert (entered.event_id, entered.event_us) == (id_bytes("7"), EPOCH_US)
    for value, headers in (
        (OLD + b"x", HEADERS),
        (OLD, HEADERS),
        (unknown, {}),
        (unknown + bytes(MAX_EVENT_BYTES), HEADERS),
    ):
        assert stamping.check(came(value, headers), EPOCH_US).action is Action.REJECT
