"""Tests of the codec: accepted events keep their values, and mismatches are reported with their place."""

from __future__ import annotations

import io
from contextlib import suppress
from decimal import Decimal
from typing import Any

import fastavro
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate.codec import Codec, EnvelopeError, SchemaMismatchError, parse_fingerprint
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.compatibility import is_readable
from hopwatch.probes.avro_reader import PREFIX_BYTES
from hopwatch.probes.http.problems import Fault
from tests.gate.events import with_event
from tests.support.examples import examples
from tests.support.schemas import ORDER, SCHEMAS, Json, changed, record, schema


@settings(max_examples=examples(300))
@given(SCHEMAS.flatmap(with_event))
def test_what_is_taken_keeps_its_value(drawn: tuple[Json, tuple[Json, Json]]) -> None:
    """JSON in, the envelope out, and from it the value as any library of Avro reads it."""
    said, (written, value) = drawn
    codec = Codec(schema(said))
    found = codec.encode(orjson.dumps(written))
    assert parse_fingerprint(found) == codec.schema.fingerprint
    assert codec.decode(found) == value


@settings(max_examples=examples(200))
@given(SCHEMAS.flatmap(lambda said: st.tuples(with_event(said), changed(said))))
def test_what_is_taken_is_read_by_every_reader_that_fits(drawn: Json) -> None:
    """A schema that the registry calls compatible reads each event of the writer's."""
    (said, (written, _)), changed_to = drawn
    writer, reader = schema(said), schema(changed_to)
    if not is_readable(reader, writer):
        return
    body = Codec(writer).encode(orjson.dumps(written))[PREFIX_BYTES:]
    wrote, reads_it = (fastavro.parse_schema(orjson.loads(one.text)) for one in (writer, reader))
    found: Json = fastavro.schemaless_reader(io.BytesIO(body), wrote, reads_it)
    assert set(found) == {field["name"] for field in changed_to["fields"]}


LOGICAL: list[tuple[Json, Json, Any]] = [
    ({"type": "int", "logicalType": "date"}, "1970-01-03", 2),
    ({"type": "int", "logicalType": "date"}, 2, 2),
    ({"type": "int", "logicalType": "time-millis"}, "00:00:01.250", 1_250),
    ({"type": "long", "logicalType": "time-micros"}, "00:00:01.000002", 1_000_002),
    ({"type": "long", "logicalType": "time-micros"}, 7, 7),
    ({"type": "long", "logicalType": "timestamp-millis"}, "1970-01-01T01:00:01.5+01:00", 1_500),
    ({"type": "long", "logicalType": "timestamp-millis"}, 1_500, 1_500),
    ({"type": "long", "logicalType": "timestamp-micros"}, "1970-01-01T00:00:00.000007Z", 7),
    ({"type": "long", "logicalType": "timestamp-micros"}, "1969-12-31T23:59:59Z", -1_000_000),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, "1970-01-01T00:00:02", 2_000),
    ({"type": "string", "logicalType": "uuid"}, "0190e5a3-1c00-7000-8000-00000000000a",
     "0190e5a3-1c00-7000-8000-00000000000a"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "12.5", (1250).to_bytes(2, "big")),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "-0.01", b"\xff"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "written", "value"), LOGICAL)
def test_logical_types_are_written_as_apis_do(said: Json, written: Json, value: Json) -> None:
    """Moments as RFC 3339 or whole units, decimals and UUIDs as text; as a union's type too."""
    for kind_of, named in ((said, {}), (["null", said], {})):
        codec = Codec(schema(record({"name": "a", "type": kind_of})))
        assert codec.decode(codec.encode(orjson.dumps({"a": written} | named))) == {"a": value}


def test_decimals_are_exact() -> None:
    """As Avro's library reads them."""
    said = record({"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 5}})
    body = Codec(schema(said)).encode(b'{"a":"1234567890123456789012345.54321"}')[PREFIX_BYTES:]
    found = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(said), None)
    assert found == {"a": Decimal("1234567890123456789012345.54321")}


NUMBERS = record({"name": "a", "type": ["int", "long"]})
MISFITS: list[tuple[Json, bytes, str, str]] = [
    ("int", b'{"a":1.5}', "/a", "Input should be a valid integer"),
    ("int", b'{"a":true}', "/a", "Input should be a valid integer"),
    ("int", b'{"a":2147483648}', "/a", "Input should be less than or equal to 2147483647"),
    ("long", b'{"a":9223372036854775808}', "/a", "Input should be less than or equal to 9223372036854775807"),
    ("string", b'{"a":1}', "/a", "Input should be a valid string"),
    ("string", b"{}", "/a", "Field required"),
    ("string", b'{"a":"x","b":1}', "/b", "Extra inputs are not permitted"),
    ("string", b'{"a":', "", "Invalid JSON"),
    ("string", b"[]", "", "Input should be an object"),
    ("boolean", b'{"a":0}', "/a", "Input should be a valid boolean"),
    ("double", b'{"a":"1"}', "/a", "Input should be a valid number"),
    ("float", b'{"a":1e39}', "/a", "a float is at most 3.4e38, got 1e+39"),
    ("bytes", b'{"a":"%%"}', "/a", "bytes are written in base64, got '%%'"),
    ({"type": "fixed", "name": "M", "size": 3}, b'{"a":"AAA="}', "/a", "3 bytes are required, got 2"),
    ({"type": "enum", "name": "K", "symbols": ["A", "B"]}, b'{"a":"C"}', "/a", "Input should be 'A' or 'B'"),
    ({"type": "array", "items": "int"}, b'{"a":[1,"x"]}', "/a/1", "Input should be a valid integer"),
    ({"type": "map", "values": "int"}, b'{"a":{"b/c":"x"}}', "/a/b~1c", "Input should be a valid integer"),
    (["int", "long"], b'{"a":{"int":1,"long":2}}', "/a", "an object with one member of int, long, got 2"),
    (["int", "long"], b'{"a":1}', "/a", "Input should be an object"),
    ({"type": "int", "logicalType": "date"}, b'{"a":"1970-1-3"}', "/a", "a date is written as 2026-01-31"),
    ({"type": "int", "logicalType": "date"}, b'{"a":2147483647}', "/a", "a date lies between the years 1 and 9999"),
    ({"type": "int", "logicalType": "time-millis"}, b'{"a":86400000}', "/a", "a time lies within a day, got 86400000"),
    ({"type": "long", "logicalType": "timestamp-millis"}, b'{"a":"1970-01-01T00:00:00"}', "/a",
     "the moment has a zone, such as Z, got '1970-01-01T00:00:00'"),
    ({"type": "long", "logicalType": "timestamp-millis"}, b'{"a":"1970-01-01T00:00:00.0001Z"}', "/a",
     "it is finer than the unit of the schema"),
    ({"type": "long", "logicalType": "timestamp-micros"}, b'{"a":"1970-01-01T00:00:00.0000001Z"}', "/a",
     "it is finer than the unit of the schema"),
    ({"type": "long", "logicalType": "timestamp-micros"}, b'{"a":9223372036854775807}', "/a",
     "a moment lies between the years 1 and 9999"),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, b'{"a":"1970-01-01T00:00:00Z"}', "/a",
     "the moment has no zone, got"),
    ({"type": "string", "logicalType": "uuid"}, b'{"a":"0190e5a31c0070008000000000000000"}', "/a",
     "a UUID is written as 32 hexadecimal digits with four dashes"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b'{"a":"123.45"}', "/a",
     "a decimal has at most 4 digits, 2 of them behind the point, got '123.45'"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b'{"a":"NaN"}', "/a",
     "a decimal is written as text such as 12.50, got 'NaN'"),
    *(
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, f'{{"a":"{text}"}}'.encode(), "/a",
         f"a decimal is written as text such as 12.50, got '{text}'")
        for text in ("1_0.5", " 1.5", "١٢", "1.", "")
    ),
    ({"type": "int", "logicalType": "time-millis"}, b'{"a":"12:00:00+05:00"}', "/a", "a time of day has no zone"),
    ({"type": "long", "logicalType": "timestamp-micros"}, b'{"a":"1970-01-01T00:00:00,1234567Z"}', "/a",
     "it is finer than the unit of the schema"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b'{"a":"x"}', "/a",
     "a decimal is written as text such as 12.50, got 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "event", "place", "told"), MISFITS)
def test_what_does_not_fit_is_told(said: Json, event: bytes, place: str, told: str) -> None:
    """With a JSON pointer."""
    with pytest.raises(SchemaMismatchError) as caught:
        Codec(schema(record({"name": "a", "type": said}))).encode(event)
    (one, *_) = caught.value.faults
    assert one.place == place
    assert one.detail.startswith(told)
    assert told in str(caught.value)


def test_all_that_does_not_fit_is_told_at_once() -> None:
    """Up to a bound."""
    with pytest.raises(SchemaMismatchError) as caught:
        Codec(schema(ORDER)).encode(b'{"id":1,"pieces":"x","more":0}')
    assert [one.place for one in caught.value.faults] == ["/id", "/at", "/pieces", "/more"]
    assert isinstance(caught.value.faults[0], Fault)


def test_bytes_that_are_no_event_are_refused() -> None:
    """Of another schema, cut, followed by more, or too short for an envelope."""
    codec = Codec(schema(record("int")))
    good = codec.encode(b'{"f0":7}')
    assert codec.decode(good) == {"f0": 7}
    for wrong, told in (
        (b"\x80" + good[1:], "an event begins with 81"),
        (good[:-1], "an event of the schema was expected"),
        (good + b"x", "1 bytes follow the event"),
    ):
        with pytest.raises(EnvelopeError, match=told):
            codec.decode(wrong)
    for short in (b"", good[: PREFIX_BYTES - 1], b"\x80" + good[1:]):
        with pytest.raises(EnvelopeError, match="an event begins with 81 and a fingerprint, got "):
            parse_fingerprint(short)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    """Any bytes behind the fingerprint can be decoded or raise an EnvelopeError."""
    with suppress(EnvelopeError):
        CODEC.decode(CODEC._prefix + data)
    with suppress(SchemaMismatchError):
        CODEC.encode(data)


CODEC = Codec(Schema.parse(orjson.dumps(ORDER)))
