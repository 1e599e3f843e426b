"""Laws of compiled schemas: what is read of a record is what fastavro reads, whatever stands around it."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.files.avro_program import compile_schema
from hopwatch.probes.files.avro_rows import read_avro_rows
from hopwatch.probes.files.errors import CutError, MappingError, UnreadableFileError
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.source import ByteStream

AROUND: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("float", st.just(0.5)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=300)),
    ({"type": "array", "items": "long"}, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)),
    (
        {"type": "map", "values": ["null", "string"]},
        st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=3),
    ),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, st.sampled_from(["A", "B"])),
    (
        {"type": "array", "items": {"type": "array", "items": "string"}},
        st.lists(st.lists(st.text(max_size=2), max_size=2), max_size=2),
    ),
    ({"type": "array", "items": "null"}, st.lists(st.none(), max_size=3)),
]
NAMED = {"type": "record", "name": "Meta", "namespace": "a.b", "fields": [{"name": "at", "type": ["long", "null"]}]}


def container(schema: Any, records: list[Any], codec: str = "null") -> ByteStream:  # noqa: ANN401 - JSON
    """Return a container file of some records."""
    import pyarrow as pa  # noqa: PLC0415 - a helper

    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec, sync_interval=64)
    return ByteStream(pa.BufferReader(file.getvalue()))


@given(st.data())
def test_columns_are_what_fastavro_reads(data: st.DataObject) -> None:
    """Of any neighbours, nested and named types, nulls."""
    around = data.draw(st.lists(st.sampled_from(AROUND), max_size=4, unique_by=str))
    fields = [{"name": f"x{place}", "type": kind} for place, (kind, _) in enumerate(around)]
    own: list[dict[str, Any]] = [
        {"name": "id", "type": data.draw(st.sampled_from(["string", "long", ["null", "string"], ["int", "null"]]))},
        {"name": "meta", "type": NAMED},
        {"name": "again", "type": "a.b.Meta"},
    ]
    schema = {"type": "record", "name": "R", "fields": [*data.draw(st.permutations([*fields, *own[:2]])), own[2]]}
    ids: st.SearchStrategy[Any] = st.text(max_size=5) if "string" in str(own[0]["type"]) else st.integers(-9, 2**31 - 1)
    if "null" in str(own[0]["type"]):
        ids = st.none() | ids
    at = st.fixed_dictionaries({"at": st.none() | st.integers(0, 2**62)})
    of_each = {f"x{place}": values for place, (_, values) in enumerate(around)} | {"id": ids, "meta": at, "again": at}
    records = data.draw(st.lists(st.fixed_dictionaries(of_each), min_size=1, max_size=12))
    found: list[tuple[Any, Any]] = []
    mapping = FileMapping("id", "again.at")
    for columns in read_avro_rows(container(schema, records), mapping):
        read = [columns[name].to_pylist() for name in mapping.columns]
        found += zip(*read, strict=True)
    plain = [(one.decode() if isinstance(one, bytes) else one, at_us) for one, at_us in found]
    assert plain == [(record["id"], record["again"]["at"]) for record in records]


@given(st.binary(max_size=60), st.integers(0, 400))
def test_broken_bytes_end_a_file_and_nothing_else(junk: bytes, place: int) -> None:
    """No byte makes the compiled loop read beyond a block, or walk for ever."""
    import pyarrow as pa  # noqa: PLC0415 - of this test alone

    schema = {"type": "record", "name": "R", "fields": [
        {"name": "tags", "type": {"type": "array", "items": ["null", {"type": "map", "values": "string"}]}},
        {"name": "id", "type": "string"}, {"name": "at", "type": "long"},
    ]}  # fmt: skip
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"tags": [None, {"a": "b"}], "id": "x", "at": 1}] * 20, sync_interval=64)
    data = bytearray(file.getvalue())
    data[place : place + len(junk)] = junk
    try:
        for columns in read_avro_rows(ByteStream(pa.BufferReader(bytes(data))), FileMapping("id", "at")):
            assert len(columns["id"]) <= 20
    except (CutError, UnreadableFileError, MappingError):
        pass


def test_a_schema_that_stands_for_too_many_types_is_refused() -> None:
    """A record without fields takes no step, and a few names of names stand for billions of it."""
    schema: dict[str, Any] = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, 7):
        others = [{"name": f"x{place}", "type": f"R{level - 1}"} for place in range(40)]
        schema = {"type": "record", "name": f"R{level}", "fields": [{"name": "x", "type": schema}, *others]}
    with pytest.raises(UnreadableFileError, match="its schema is too deep, or too large"):
        compile_schema(schema, ["id"])


RECURSIVE = {"type": "record", "name": "R", "fields": [{"name": "id", "type": ["null", "R"]}]}
REFUSED = [
    ("long", "its schema is that of no record"),
    (RECURSIVE, "its schema holds itself, or names 'R', which it does not have"),
    ({"type": "record", "name": "R", "fields": [{"name": "id"}]}, "its schema is none .KeyError 'type'"),
]


@pytest.mark.parametrize(("schema", "told"), REFUSED)
def test_schemas_that_cannot_be_walked_are_refused(schema: Any, told: str) -> None:  # noqa: ANN401 - JSON
    """With a word on what is wrong with them."""
    with pytest.raises(UnreadableFileError, match=told):
        compile_schema(schema, ["id"])


def test_a_column_has_one_type() -> None:
    """An id that is a number in one record and a text in another names two messages."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": ["string", "long"]}]}
    with pytest.raises(UnreadableFileError, match="a column is string and long in its schema: an id or a time has one"):
        list(read_avro_rows(container(schema, [{"id": "a"}]), FileMapping("id", "id")))


def test_timestamps_keep_their_unit() -> None:
    """So that no flag is needed, and those without a zone need one."""
    for logical, kind in (("timestamp-millis", "timestamp[ms, tz=UTC]"), ("local-timestamp-micros", "timestamp[us]")):
        field = {"name": "at", "type": {"type": "long", "logicalType": logical}}
        schema = {"type": "record", "name": "R", "fields": [field]}
        (columns,) = read_avro_rows(container(schema, [{"at": 5}]), FileMapping("at", "at"))
        assert str(columns["at"].type) == kind
