"""Tests of resolution: values of one schema are read as those of another, and invalid bytes are refused."""

from __future__ import annotations

import io
from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate.avro_body import ResolutionError, UnreadableError
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.compatibility import is_readable
from hopwatch.gate.resolution import Resolution
from hopwatch.probes.avro_reader import PREFIX_BYTES
from tests.gate.events import with_event
from tests.support.examples import examples
from tests.support.schemas import FIRST, SCHEMAS, SECOND, Json, changed, record, schema


def library_reads(body: bytes, writer: Json, reader: Json) -> Any:  # noqa: ANN401 - what the schema says
    """Return what Avro's resolution gives, as fastavro has it."""
    wrote, reads_it = (fastavro.parse_schema(orjson.loads(orjson.dumps(one))) for one in (writer, reader))
    return fastavro.schemaless_reader(io.BytesIO(body), wrote, reads_it)


@settings(max_examples=examples(400))
@given(SCHEMAS.flatmap(lambda said: st.tuples(with_event(said), changed(said))))
def test_what_an_older_version_wrote_arrives_as_avro_resolves_it(drawn: Json) -> None:
    """With each reader that the registry calls compatible: defaults filled in, promoted, renamed by aliases."""
    (said, (written, _)), changed_to = drawn
    writer, reader = schema(said), schema(changed_to)
    if not is_readable(reader, writer):
        return
    record = Codec(writer).encode(orjson.dumps(written))
    codec = Codec(reader)
    value = Resolution(writer, reader).read(record, PREFIX_BYTES)
    assert codec.decode(codec.encode_value(value)) == library_reads(record[PREFIX_BYTES:], said, changed_to)


@settings(max_examples=examples(200))
@given(SCHEMAS.flatmap(with_event))
def test_what_the_reader_wrote_itself_arrives_to_the_byte(drawn: Json) -> None:
    """Each value of a union under the type that it was written as."""
    said, (written, _) = drawn
    codec = Codec(schema(said))
    record = codec.encode(orjson.dumps(written))
    assert codec.encode_value(Resolution(codec.schema, codec.schema).read(record, PREFIX_BYTES)) == record


@settings(max_examples=examples(200))
@given(SCHEMAS.flatmap(lambda said: st.tuples(st.just(said), changed(said))), st.binary(max_size=40))
def test_no_bytes_raise_anything_else(drawn: Json, data: bytes) -> None:
    """Any bytes resolve, or raise a ResolutionError, whether the schemas fit or not."""
    writer, reader = (schema(one) for one in drawn)
    with suppress(ResolutionError):
        Codec(reader).encode_value(Resolution(writer, reader).read(data, 0))


def body_of(said: Json, value: Json) -> bytes:
    """Return the body of a value."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(orjson.loads(orjson.dumps(said))), value)
    return body.getvalue()


def named(kind: str, name: str = "N", **more: Json) -> Json:
    """Return a named type."""
    return {"type": kind, "name": name, **more}


RESOLVED: list[tuple[Json, Json, Json, Any]] = [
    ("int", 3, "double", 3.0),
    ("long", 2**53 + 1, ["float", "long"], ("long", 2**53 + 1)),
    ("int", 3, ["string", "double", "long"], ("long", 3)),
    (["float", "double"], ("double", 0.1), ["float", "double"], ("double", 0.1)),
    ("string", "é", "bytes", "é".encode()),
    ("bytes", b"e", "string", "e"),
    (["null", "int"], 3, "long", 3),
    (named("enum", symbols=["A", "B"]), "B", named("enum", symbols=["A", "C"], default="C"), "C"),
    (named("fixed", size=2), b"ab", ["null", named("fixed", size=2)], ("N", b"ab")),
    ({"type": "array", "items": "int"}, [1, 2], {"type": "array", "items": "long"}, [1, 2]),
    ({"type": "map", "values": "int"}, {"k": 1}, {"type": "map", "values": ["null", "int"]}, {"k": ("int", 1)}),
    ("long", 1_500, {"type": "long", "logicalType": "timestamp-millis"}, 1_500),
    ("string", "0190e5a3-1c00-7000-8000-00000000000a", {"type": "string", "logicalType": "uuid"},
     UUID("0190e5a3-1c00-7000-8000-00000000000a")),
    ("bytes", b"\xff", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("-0.01")),
    ([named("record", "a.N", fields=[{"name": "x", "type": "int"}]),
      named("record", "b.N", fields=[{"name": "x", "type": "int"}])], ("b.N", {"x": 1}),
     [named("record", "a.N", fields=[{"name": "x", "type": "int"}]),
      named("record", "b.N", fields=[{"name": "x", "type": "int"}])], ("b.N", {"x": 1})),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "value", "reader", "found"), RESOLVED)
def test_types_are_read_as_others(writer: Json, value: Json, reader: Json, found: Any) -> None:  # noqa: ANN401
    """Of a union's types the same one, else the nearest; by the reader's logical types."""
    wrote, reads_it = record({"name": "a", "type": writer}), record({"name": "a", "type": reader})
    read = Resolution(schema(wrote), schema(reads_it)).read(body_of(wrote, {"a": value}), 0)
    assert read == {"a": found}
    assert type(read["a"]) is type(found)
    Codec(schema(reads_it)).encode_value(read)


DEFAULTS: list[tuple[Json, Json, Any]] = [
    ("bytes", "\u00ff", b"\xff"),
    (named("fixed", size=1), "\u00ff", b"\xff"),
    ("double", 1, 1.0),
    (["null", "int"], None, None),
    (["int", "null"], 3, ("int", 3)),
    (named("enum", symbols=["A"]), "A", "A"),
    ({"type": "array", "items": ["null", "string"]}, ["x", None], [("string", "x"), None]),
    (named("record", fields=[{"name": "x", "type": "int", "default": 5}, {"name": "y", "type": "int"}]), {"y": 1},
     {"x": 5, "y": 1}),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0005", Decimal("0.05")),
    ({"type": "long", "logicalType": "timestamp-millis"}, 7, 7),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "default", "value"), DEFAULTS)
def test_what_was_not_written_is_its_default(kind: Json, default: Json, value: Any) -> None:  # noqa: ANN401
    """Of any type, in a form that is written."""
    wrote = record()
    reads_it = record({"name": "a", "type": kind, "default": default})
    found = Resolution(schema(wrote), schema(reads_it)).read(b"", 0)
    assert found == {"a": value}
    Codec(schema(reads_it)).encode_value(found)


UNRESOLVED: list[tuple[Json, Json, str, str]] = [
    (record("int"), record("string"), "/f0", "a value written as int cannot be read as string"),
    (record("int"), record("int", name="Other"), "", "the record is named Other, not Order"),
    (FIRST, record({"name": "c", "type": "int"}, namespace="x"), "/c", "the field was not written, and has no default"),
    (
        record(named("fixed", size=2)),
        record(named("fixed", size=3)),
        "/f0",
        "a fixed of 2 bytes is not read as one of 3",
    ),
    (record("int"), record(["null", "string"]), "/f0", "a value written as int matches no type of the reader's union"),
    (record(["int", "null"]), record("string"), "/f0", "no type of the writer's union can be read"),
    (
        record(),
        record({"name": "a", "type": "bytes", "default": "\u0100"}),
        "/a",
        "its default does not match its type",
    ),
    (
        record(),
        record({"name": "a", "type": named("enum", symbols=["A"]), "default": "Z"}),
        "/a",
        "its default does not match",
    ),
]


@pytest.mark.parametrize(("writer", "reader", "place", "told"), UNRESOLVED)
def test_schemas_that_do_not_resolve_are_told_with_the_place(writer: Json, reader: Json, place: str, told: str) -> None:
    """Before any of their bytes is looked at."""
    with pytest.raises(ResolutionError, match=told) as caught:
        Resolution(schema(writer), schema(reader))
    assert caught.value.place == place


UNREADABLE: list[tuple[Json, bytes, str, str]] = [
    (record("int"), b"", "", "it ends within a value"),
    (record("int"), b"\x02\x00", "", "1 bytes follow the event"),
    (record("int"), b"\x80\x80\x80\x80\x20", "/f0", "an int has 32 bits, got"),
    (record("long"), b"\xff" * 9 + b"\x03", "/f0", "a number has at most 64 bits"),
    (record("boolean"), b"\x05", "/f0", "a boolean is 0 or 1, got 5"),
    (record("string"), b"\x03abc", "/f0", "-2 bytes were expected, 3 are left"),
    (record("string"), b"\xfe\xff\xff\xff\x0f", "/f0", "2147483647 bytes were expected, 0 are left"),
    (record("string"), b"\x02\xff", "/f0", "a text is UTF-8"),
    (record(["null", "int"]), b"\x03", "/f0", "the union has 2 types, got number -2"),
    (record(named("enum", symbols=["A"])), b"\x01", "/f0", "the enum has 1 symbols, got number -1"),
    (record({"type": "array", "items": "int"}), b"\xfe\xff\xff\xff\x0f\x00", "/f0/0", "2147483647 items were expected"),
    (record({"type": "array", "items": "boolean"}), b"\x04\x01\x07", "/f0/1", "a boolean is 0 or 1, got 7"),
    (record({"type": "map", "values": "boolean"}), b"\x02\x02k\x07", "/f0/k", "a boolean is 0 or 1, got 7"),
    (record({"type": "string", "logicalType": "uuid"}), b"\x02x", "/f0", "badly formed"),
    (record({"type": "int", "logicalType": "time-millis"}), b"\x01", "/f0", "a time lies within a day, got -1"),
    (record({"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 0}), b"\x02\x0a", "/f0",
     "a decimal has at most 1 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "body", "place", "told"), UNREADABLE)
def test_bytes_that_are_no_event_are_told_with_the_place(said: Json, body: bytes, place: str, told: str) -> None:
    """Also those that other readers take for a value."""
    with pytest.raises(UnreadableError, match=told) as caught:
        Resolution(schema(said), schema(said)).read(body, 0)
    assert caught.value.place == place


def test_a_type_that_the_reader_lacks_is_missed_where_it_comes() -> None:
    """Events of the union's other types are read."""
    read = Resolution(schema(record(["int", "string"])), schema(record("int"))).read
    assert read(b"\x00\x06", 0) == {"f0": 3}
    with pytest.raises(UnreadableError, match="a value written as string cannot be read as int"):
        read(b"\x02\x02x", 0)


def test_a_symbol_that_the_reader_lacks_is_missed_where_it_comes() -> None:
    """The others are read."""
    writer, reader = (schema(record(named("enum", symbols=one))) for one in (["A", "B"], ["A"]))
    read = Resolution(writer, reader).read
    assert read(b"\x00", 0) == {"f0": "A"}
    with pytest.raises(UnreadableError, match="the reader's enum has no B and no default"):
        read(b"\x02", 0)


def test_items_in_blocks_with_their_size_are_read() -> None:
    """As Java's writers may write them."""
    said = schema(record({"type": "array", "items": "int"}))
    assert Resolution(said, said).read(b"\x03\x04\x02\x04\x00", 0) == {"f0": [1, 2]}


def test_few_bytes_do_not_grow_by_defaults() -> None:
    """A hundred thousand bytes that would be as many records with long defaults."""
    items = [{"name": f"d{at}", "type": "string", "default": "x" * 100} for at in range(10)]
    writer = record({"type": "array", "items": record("int", name="Item")})
    reader = record({"type": "array", "items": record("int", *items, name="Item")})
    read = Resolution(schema(writer), schema(reader)).read
    body = body_of(writer, {"f0": [{"f0": 1}] * 100_000})
    with pytest.raises(UnreadableError, match="more than 1,048,576 bytes of defaults"):
        read(body, 0)


def test_an_older_version_and_a_newer_one() -> None:
    """The example of the registry's page."""
    assert Resolution(schema(FIRST), schema(SECOND)).read(b"\x02", 0) == {"a": 1, "b": 7}
    assert Resolution(schema(SECOND), schema(FIRST)).read(b"\x02\x04", 0) == {"a": 1}
