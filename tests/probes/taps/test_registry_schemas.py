"""Tests of schemas from a registry: each value by its own writer's, and what waits, for what, and how long."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

import fastavro.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.schema_registry import ForeignSchemaError, RegistryDownError, UnknownSchemaError
from hopwatch.probes.taps import registry_schemas
from hopwatch.probes.taps.avro import AvroFraming, SchemaWaitError, WriterSchema
from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
from hopwatch.probes.taps.messages import FieldSource, MessageField, MessageReader
from hopwatch.probes.taps.registry_schemas import ASK_AGAIN_S, RegistrySchemas
from hopwatch.probes.taps.unknown_schemas import MAX_HOLD_S, UnknownSchema
from hopwatch.probes.values import SkipReason
from tests.probes.taps.avro_values import ORDER, body
from tests.probes.taps.value_messages import FRAMED, LATER, RENAMED, SEEN_IN_VALUE, Record, Source
from tests.support.fake_registry import FakeRegistry
from tests.support.tap_bench import Place


def reader(source: Source, place: Place, **more: Any) -> MessageReader:  # noqa: ANN401 - of the schemas
    """Return a reader of messages whose id and event time stand in their values."""
    schemas = RegistrySchemas(source, place.around, **more)
    return MessageReader(MessageField(FieldSource.AVRO, "id"), MessageField(FieldSource.AVRO, "at"), avro=schemas)


def test_each_value_is_read_by_the_schema_that_wrote_it() -> None:
    """By number and by fingerprint, in any order, fields renamed and moved; each schema is asked for once.

    The message says which: by subject and version, or by the first digits of a fingerprint that has none.
    """
    source, place = Source(n7=ORDER, n8=RENAMED), Place()
    canonical = fastavro.schema.to_parsing_canonical_form(fastavro.parse_schema(RENAMED))
    fingerprint = bytes.fromhex(fastavro.schema.fingerprint(canonical, "SHA-256"))
    source.schemas[fingerprint] = RENAMED
    read = reader(source, place)
    first, later = FRAMED[7] + body(), FRAMED[8] + body(LATER, RENAMED)
    named = (first, "orders/7"), (later, "orders/8")
    for value, name in (*named, (b"\x81" + fingerprint + body(LATER, RENAMED), fingerprint.hex()[:12]), *named):
        assert read.read(Record(value)) == SEEN_IN_VALUE._replace(schema=name)
    assert source.asked == [7, 8, fingerprint]
    for value in (b"", b"{}", b"\0\0", b"\x81x", first[:-1], later + b"x"):
        assert read.read(Record(value)) == SkippedMessage(SkipReason.UNDECODABLE)
    assert place.heard == []


def test_a_framing_may_be_the_only_one() -> None:
    """Values of the other are not read."""
    place = Place()
    for framing, good, bad in (
        (AvroFraming.CONFLUENT, 7, bytes(32)), (AvroFraming.FINGERPRINT, bytes(32), 7),
    ):  # fmt: skip
        source = Source(n7=ORDER)
        source.schemas[bytes(32)] = ORDER
        values = {7: FRAMED[7] + body(), bytes(32): b"\x81" + bytes(32) + body()}
        read = reader(source, place, framing=framing)
        name = "orders/7" if good == 7 else WriterSchema(ORDER).label
        assert read.read(Record(values[good])) == SEEN_IN_VALUE._replace(schema=name)
        assert read.read(Record(values[bad])) == SkippedMessage(SkipReason.UNDECODABLE)


def test_a_registry_that_is_away_is_waited_for() -> None:
    """And asked less and less; what is known goes on meanwhile. It is said once, and once that it is back."""
    source, place = Source(n7=ORDER, n8=RENAMED), Place()
    read = reader(source, place)
    assert read.read(Record(FRAMED[7] + body())) == SEEN_IN_VALUE._replace(schema="orders/7")
    source.failure = RegistryDownError("the registry is away")
    asked_s: list[float] = []
    while len(asked_s) < 8:
        before = len(source.asked)
        with pytest.raises(SchemaWaitError, match="8"):
            read.read(Record(FRAMED[8] + body(LATER, RENAMED)))
        if len(source.asked) > before:
            asked_s.append(place.clock.monotonic_ns() / 1e9)
        place.clock.advance(0.5)
    pauses = [after - before for before, after in pairwise(asked_s)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert read.read(Record(FRAMED[7] + body())) == SEEN_IN_VALUE._replace(schema="orders/7")
    place.clock.advance(30)
    source.failure = None
    assert read.read(Record(FRAMED[8] + body(LATER, RENAMED))) == SEEN_IN_VALUE._replace(schema="orders/8")
    assert place.heard == [
        "the registry is away: what needs a schema of it waits, nothing is lost", "the registry answers again",
    ]  # fmt: skip


def test_an_unknown_schema_counts_as_bad_until_it_is_registered() -> None:
    """The registry is asked again after some seconds only."""
    source, place = Source(), Place()
    read, value = reader(source, place), Record(FRAMED[7] + body())
    for _ in range(3):
        assert read.read(value) == SkippedMessage(SkipReason.UNKNOWN_SCHEMA)
    source.schemas[7] = ORDER
    place.clock.advance(ASK_AGAIN_S - 1)
    assert read.read(value) == SkippedMessage(SkipReason.UNKNOWN_SCHEMA)
    place.clock.advance(1)
    assert read.read(value) == SEEN_IN_VALUE._replace(schema="orders/7")
    assert source.asked == [7, 7]
    assert place.heard == [
        "the schema 7 is not registered: its messages count as unknown_schema until it is",
        "the schema 7 is registered now",
    ]


def test_a_message_may_wait_for_its_schema_up_to_a_limit() -> None:
    """Then it counts as bad: a schema that never comes does not hold the topic for ever."""
    source, place = Source(), Place()
    read, value = reader(source, place, unknown=UnknownSchema.HOLD, hold_s=60.0), Record(FRAMED[7] + body())
    for _ in range(60):
        with pytest.raises(SchemaWaitError):
            read.read(value)
        place.clock.advance(1)
    assert read.read(value) == SkippedMessage(SkipReason.UNKNOWN_SCHEMA)
    assert len(source.asked) == 60 / ASK_AGAIN_S + 1
    assert place.heard == [
        "the schema 7 is not registered: its messages wait until it is, 60 s at most",
        "the schema 7 is not registered: its messages count as unknown_schema until it is",
    ]
    held = reader(Source(), place, unknown=UnknownSchema.HOLD)
    with pytest.raises(SchemaWaitError):
        held.read(value)
    assert MAX_HOLD_S == 3_600


def test_a_schema_that_cannot_be_used_is_told_once() -> None:
    """Its values cannot be read; nobody waits for it to become another."""
    source, place = Source(n7={"type": "array", "items": "null"}), Place()
    read = reader(source, place)
    for _ in range(2):
        assert read.read(Record(FRAMED[7] + body())) == SkippedMessage(SkipReason.UNDECODABLE)
    source.failure = ForeignSchemaError("it is of the kind JSON, and not AVRO")
    for _ in range(2):
        assert read.read(Record(FRAMED[8] + body())) == SkippedMessage(SkipReason.UNDECODABLE)
    assert source.asked == [7, 8]
    assert [told.partition(": ")[0] for told in place.heard] == [
        "the schema 7 cannot be used", "the schema 8 cannot be used",
    ]  # fmt: skip


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes, and is asked for again when it comes."""
    monkeypatch.setattr(registry_schemas, "MAX_SCHEMAS", 2)
    source, place = Source(n7=ORDER, n8=ORDER, n9=ORDER), Place()
    schemas = RegistrySchemas(source, place.around)
    for number in (7, 8, 9, 8, 7):
        schemas.find_body(FRAMED[number] + body())
    assert source.asked == [7, 8, 9, 7]
    for number in range(10, 15):
        with pytest.raises(UnknownSchemaError):
            schemas.find_body(b"\0" + struct.pack(">I", number))
    assert (len(schemas._writers), len(schemas._unknown)) == (2, 2)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(value: bytes) -> None:
    """Any value is stamped or counted, whatever stands in it."""
    place = Place()
    registry = FakeRegistry({"/schemas/ids/7": {"schema": json.dumps(ORDER)}})
    schemas = RegistrySchemas(registry, place.around)
    read = MessageReader(MessageField(FieldSource.AVRO, "id"), MessageField(FieldSource.AVRO, "at"), avro=schemas)
    for framed in (value, FRAMED[7] + value, b"\0" + value):
        found = read.read(Record(framed))
        assert isinstance(found, StampableMessage | SkippedMessage)
