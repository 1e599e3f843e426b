"""Tests of schemas: what a text says, and what of that the fingerprint does not cover."""

from __future__ import annotations

import re
import warnings
from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.registry.avro_schema import MAX_SCHEMA_BYTES, Schema, SchemaError, logical_type
from hopwatch.gate.registry.breaks import is_compatible
from hopwatch.probes.contract import envelope
from tests.support.schemas import ORDER, SCHEMAS, Json, record, schema

NOTHING = {"name": "a", "type": "double"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def test_a_fingerprint_is_that_of_the_wire() -> None:
    """The schema of the probes' own batches is known under the one that WIRE.md names."""
    assert schema(envelope.SCHEMA).fingerprint == envelope.FINGERPRINT
    assert schema(envelope.SCHEMA).name == "hopwatch.v2.ObservationBatch"
    assert schema(envelope.SCHEMA_1).fingerprint == envelope.FINGERPRINT_1


WARNED: Final[list[Json]] = [
    {"type": "int", "logicalType": "\x1b[2J\nforged"},
    {"type": "long", "logicalType": "date"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "fixed", "name": "F", "size": 4, "logicalType": "x"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
    {"type": "array", "items": {"type": "string", "logicalType": "x"}, "logicalType": "y"},
    {"type": "map", "values": ["null", {"type": "string", "logicalType": "x"}]},
    {"type": "enum", "name": "E", "symbols": ["A"], "logicalType": "x"},
    {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "int", "logicalType": "x"}}]},
]
"""Types of which Avro's library would warn, and of each text keeps the warning for good."""


@pytest.mark.parametrize("said", WARNED)
def test_no_text_of_a_stranger_becomes_a_warning(said: Json) -> None:
    """A warning is printed as it is, with whatever moves a cursor or begins a line, and never forgotten."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        schema(record(said))
        schema(said)
    assert found == []


@given(st.text())
def test_a_logical_type_is_known_and_decides_nothing(name: str) -> None:
    """A logical type of any name reads, and is read by, the type without it."""
    meant, plain = schema({"type": "int", "logicalType": name}).parsed, schema("int").parsed
    assert (logical_type(meant), logical_type(plain)) == (name, None)
    assert is_compatible(meant, plain)
    assert is_compatible(plain, meant)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record(MILLIS), record(MICROS)),
        (record(MILLIS), record("long")),
        (record({"name": "a", "type": "int", "default": 1}), record({"name": "a", "type": "int", "default": 2})),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": "int", "aliases": ["b"]})),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": "int", "order": "descending"})),
        (record(), record(aliases=["Sale"])),
        (record(name="c.Order", aliases=["Old"]), record(name="c.Order", aliases=["Older"])),
        (record(NOTHING | {"default": 0.0}), record(NOTHING | {"default": -0.0})),
        (record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}),
         record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})),
        (record({"type": "enum", "name": "K", "symbols": ["A"], "default": "A"}),
         record({"type": "enum", "name": "K", "symbols": ["A"]})),
    ],
)  # fmt: skip
def test_an_equal_fingerprint_may_stand_for_another_meaning(one: Json, other: Json) -> None:
    """Logical types, defaults, aliases and orders are what it leaves out."""
    assert schema(one).fingerprint == schema(other).fingerprint
    assert schema(one).meaning != schema(other).meaning


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record("int"), record("int", doc="orders")),
        (record("int"), record({"type": "int"})),
        (
            record({"name": "a", "type": "double", "default": 1}),
            record({"name": "a", "type": "double", "default": 1.0}),
        ),
        (record("int", name="a.Order"), record("int", namespace="a")),
        (record({"name": "a", "type": "int", "order": "ascending"}), record({"name": "a", "type": "int"})),
        (record("int", aliases=["b", "a"]), record("int", aliases=["a", "b"])),
        (record("int", name="c.Order", aliases=["Old"]), record("int", name="c.Order", aliases=["c.Old"])),
        (
            record({"type": "bytes", "logicalType": "decimal", "precision": 4}),
            record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0}),
        ),
    ],
)
def test_one_meaning_may_be_written_in_two_ways(one: Json, other: Json) -> None:
    """Words for people, the form of a name, and what is so by default say nothing to a reader."""
    assert schema(one).text != schema(other).text
    assert schema(one).meaning == schema(other).meaning
    assert schema(one).fingerprint == schema(other).fingerprint


@given(SCHEMAS)
def test_equal_meaning_is_an_equal_fingerprint(said: Json) -> None:
    """And what is kept says the same when it is read again."""
    one = schema(said)
    again = Schema.parse(one.text)
    assert again == one
    spaced = Schema.parse(orjson.dumps(said, option=orjson.OPT_INDENT_2))
    assert (spaced.meaning, spaced.fingerprint, spaced.text) == (one.meaning, one.fingerprint, one.text)


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("x", "", "a schema is JSON: "),
        ('"' + "x" * MAX_SCHEMA_BYTES + '"', "", "a schema has at most 1,048,576 bytes, got 1,048,578"),
        ('{"type":"array","items":"null"}', "", "an item of an array would have no bytes"),
        ('["null", {"type": "map", "values": "Order"}]', "/1/values", "there is no type 'Order'"),
        ('{"type":"enum","name":"K","symbols":["A","A"]}', "", "Avro does not accept it as a schema: "),
        ('{"type":"record","name":"1","fields":[]}', "/name", "a name has letters, digits and underscores, got '1'"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
            "",
            "Avro does not accept it",
        ),
        ('{"type":"bytes","logicalType":"decimal","precision":"x"}', "/precision", "a decimal has a precision of 1 "),
        ('{"type":"int","more":' + "[" * 300 + "]" * 300 + "}", "", "Avro does not accept it as a schema: "),
        ('{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000, "", "a schema is JSON: "),
        ("\ud800", "", "a schema is JSON: "),
        ('{"type":"fixed","name":"A","size":1,"size":2}', "/size", "the member is repeated: which of the two is meant"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","type":"long"}]}',
            "/fields/0/type",
            "repeated",
        ),
    ],
)
def test_what_is_no_schema_is_refused(text: str, place: str, told: str) -> None:
    """In words, with a pointer to the part."""
    with pytest.raises(SchemaError, match=re.escape(told)) as caught:
        Schema.parse(text)
    assert not place or caught.value.place == place


def test_a_schema_without_a_name_has_none() -> None:
    """A union, or a primitive type."""
    assert [schema(said).name for said in ("int", ["null", "int"], ORDER)] == ["", "", "com.example.orders.v1.Order"]
