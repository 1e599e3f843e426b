"""Tests of Avro values of other people: what their schema and their bytes may do, and what they may not."""

from __future__ import annotations

import json
import re
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract import envelope
from hopwatch.probes.taps.avro import MAX_SCHEMA_BYTES, AvroFraming, FileSchema, WriterSchema
from hopwatch.probes.taps.errors import TapUsageError
from tests.probes.taps.avro_values import ORDER, VALUE, body


def values(tmp_path: Path, framing: AvroFraming, schema: object = ORDER) -> FileSchema:
    """Return the reader of a schema."""
    file = tmp_path / "schema.avsc"
    file.write_text(json.dumps(schema))
    return FileSchema(file, framing)


def decode(schema: FileSchema, value: bytes) -> object:
    """Return a value by the schema of a file."""
    writer, start = schema.find_body(value)
    return writer.read(value, start)


@pytest.mark.parametrize(
    ("framing", "before"), [(AvroFraming.RAW, b""), (AvroFraming.CONFLUENT, b"\0" + struct.pack(">I", 7))]
)
def test_a_value_is_read_to_its_last_byte(tmp_path: Path, framing: AvroFraming, before: bytes) -> None:
    """In each framing; what its schema calls a time is one."""
    reader = values(tmp_path, framing)
    found = decode(reader, before + body())
    assert isinstance(found, dict)
    assert (str(found["id"]), found["at"]) == (VALUE["id"], VALUE["at"])
    for wrong in (before + body() + b"x", before + body()[:-1], b""):
        with pytest.raises(ValueError, match=r"follow the value|was expected|starts with"):
            decode(reader, wrong)


def test_a_fingerprint_is_that_of_the_schema(tmp_path: Path) -> None:
    """As the wire of the probes themselves has it; another one is refused."""
    reader = values(tmp_path, AvroFraming.FINGERPRINT, envelope.SCHEMA)
    assert reader._prefix == b"\x81" + envelope.FINGERPRINT
    with pytest.raises(ValueError, match=f"a value starts with 81{envelope.FINGERPRINT.hex()}, got 8100"):
        decode(reader, b"\x81" + bytes(40))


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "array", "items": "null"}, "an item of an array would have no bytes"),
        ("x" * MAX_SCHEMA_BYTES, f"it has more than {MAX_SCHEMA_BYTES} bytes"),
    ],
)
def test_a_schema_that_may_do_harm_is_refused(tmp_path: Path, schema: object, told: str) -> None:
    """Before any library sees it; the sentence names the file."""
    with pytest.raises(TapUsageError, match=rf"{tmp_path}/schema\.avsc cannot be used: .*{re.escape(told)}"):
        values(tmp_path, AvroFraming.RAW, schema)


def test_a_schema_that_is_nested_past_all_sense_is_refused(tmp_path: Path) -> None:
    """A depth of which a library would die."""
    (tmp_path / "schema.avsc").write_text('{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000)
    with pytest.raises(TapUsageError, match="cannot be used: "):
        FileSchema(tmp_path / "schema.avsc", AvroFraming.RAW)


def test_a_schema_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With the file, the reason and the flag."""
    told = r"the schema .*none cannot be read: No such file or directory: name a file that is there with --avro-schema"
    with pytest.raises(TapUsageError, match=told):
        FileSchema(tmp_path / "none", AvroFraming.RAW)


@given(st.binary(max_size=200), st.integers(0, 60), st.binary(max_size=4))
def test_no_bytes_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, cut: int, end: bytes
) -> None:
    """Any bytes raise a ValueError or can be read."""
    reader = values(tmp_path_factory.getbasetemp(), AvroFraming.RAW)
    for value in (start, body()[:cut] + end + body()[cut:]):
        with suppress(ValueError):
            decode(reader, value)


RENAMED = {
    "type": "record", "name": "Order", "namespace": "shop", "aliases": ["Purchase"],
    "fields": [
        {"name": "order_id", "type": "string", "aliases": ["id"]},
        {"name": "head", "aliases": ["meta"], "type": ["null", {"type": "record", "name": "Head", "fields": [
            {"name": "made", "type": "long", "aliases": ["at"]}]}]},
        {"name": "last", "type": ["null", "Head", {"type": "map", "values": "shop.Head"}]},
        {"name": "lines", "type": {"type": "array", "items": "Head"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"]}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("order_id", "order_id"), ("id", "order_id"), ("meta.at", "head.made"), ("meta.made", "head.made"),
        ("last.at", "last.made"), ("last.x.at", "last.x.made"), ("kind.at", "kind.at"), ("nothing.at", "nothing.at"),
        ("lines.at", "lines.at"), ("id.at", "order_id.at"),
    ],
)  # fmt: skip
def test_a_field_that_was_renamed_is_found_by_its_alias(path: str, keys: str) -> None:
    """In records, unions and maps, at any depth; what a schema does not have stays as it was asked for."""
    schema = WriterSchema(RENAMED)
    for _ in range(2):
        assert schema.find_keys(tuple(path.split("."))) == tuple(keys.split("."))


def test_a_schema_whose_name_is_an_alias_of_another_keeps_its_own() -> None:
    """A name goes before an alias: a version that has both fields means the one of the name."""
    both = {"type": "record", "name": "A", "fields": [
        {"name": "b", "type": "int", "aliases": ["a"]}, {"name": "a", "type": "int"}]}  # fmt: skip
    assert WriterSchema(both).find_keys(("a",)) == ("a",)
    assert WriterSchema("string").find_keys(("a", "b")) == ("a", "b")
