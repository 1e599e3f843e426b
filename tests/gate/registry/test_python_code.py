"""Tests of generated modules: they are typed, and what they encode they decode, also what other versions wrote."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import subprocess
import sys
import types
import uuid
from pathlib import Path

import fastavro
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.python_code import CodeGenerationError, generate_module
from tests.gate.events import with_event
from tests.support.examples import examples
from tests.support.schemas import ORDER, SCHEMAS, Json, record, schema

LINE = record(
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    name="Line", doc='What was "bought".',
)  # fmt: skip
FULL: dict[str, Json] = {
    **ORDER,
    "fields": [
        *ORDER["fields"],
        {"name": "lines", "type": {"type": "array", "items": LINE}, "default": []},
        {"name": "last", "type": ["null", "Line"], "default": None},
        {"name": "by_name", "type": {"type": "map", "values": "Line"}, "default": {}},
        {"name": "either", "type": ["null", "Line", record("int", name="Other"), "string"], "default": None},
        {"name": "mark", "type": ["null", {"type": "fixed", "name": "Mark", "size": 2}], "default": None},
        {"name": "share", "type": "double", "default": 0.5},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 0},
        {"name": "id_of_all", "type": ["null", "string"], "default": None, "doc": "a\u0000b"},
    ],
}


def loaded(text: str) -> types.ModuleType:
    """Return a module of a source."""
    made = types.ModuleType("made")
    sys.modules["made"] = made
    exec(compile(text, "made.py", "exec"), made.__dict__)  # noqa: S102 - what is tested
    return made


def source(said: Json, *others: Json) -> str:
    """Return the module of a schema, the latest version behind others."""
    versions = {number: schema(one) for number, one in enumerate([*others, said], start=1)}
    return generate_module(schema(said), versions, "orders", len(versions))


def test_what_is_encoded_is_decoded() -> None:
    """Records in records, lists, maps and unions, enums, moments and decimals; and any library of Avro reads it."""
    made = loaded(source(FULL))
    line = made.Line(price=decimal.Decimal("2.50"), kind=made.Kind.B)
    at = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    order = made.Order(
        id=uuid.UUID(int=7),
        at=at,
        pieces=3,
        lines=[line],
        last=line,
        by_name={"x": line},
        either=made.Other(f0=7),
        mark=b"ab",
        day=dt.date(2026, 1, 31),
    )
    record_of = order.encode()
    assert made.Order.decode(record_of) == order
    assert record_of[1:33] == schema(FULL).fingerprint
    read: Json = fastavro.schemaless_reader(io.BytesIO(record_of[33:]), fastavro.parse_schema(FULL), None)
    assert (read["pieces"], read["either"], read["lines"][0]["kind"]) == (3, {"f0": 7}, "B")
    for either in (None, "x", line):
        one = made.Order(id=order.id, at=at, pieces=1, either=either, day=order.day)
        assert made.Order.decode(one.encode()) == one
        assert (one.lines, one.share) == ([], 0.5)
    assert made.Line.__doc__ == "What was 'bought'."


@settings(max_examples=examples(100))
@given(SCHEMAS.flatmap(with_event))
def test_events_of_the_gate_are_decoded(drawn: Json) -> None:
    """Of any schema that a module can be made of; encoded again they are the same bytes."""
    said, (written, _) = drawn
    one = schema(said)
    event = Codec(one).encode(orjson.dumps(written))
    made = loaded(generate_module(one, {1: one}, "orders", 1))
    outermost = made.__dict__["_BY_NAME"][said["name"]].__self__
    found = outermost.decode(event)
    assert outermost.decode(found.encode()) == found


def test_what_an_older_version_wrote_is_read() -> None:
    """By its fingerprint, resolved against the module's own schema; a version that it does not read is not known."""
    old, other = record({"name": "a", "type": "int"}), record({"name": "c", "type": "int"})
    new = record({"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "x"})
    made = loaded(source(new, old, other))
    assert made.Order.decode(Codec(schema(old)).encode(b'{"a":7}')) == made.Order(a=7, b="x")
    with pytest.raises(ValueError, match=f"no event of a known schema: 81{schema(other).fingerprint.hex()}"):
        made.Order.decode(Codec(schema(other)).encode(b'{"c":7}'))


@given(st.binary(min_size=1, max_size=80))
def test_other_bytes_raise_one_error(data: bytes) -> None:
    """Cut, followed by more, or none of an event's."""
    good = MADE.Order(a=7).encode()
    for wrong, told in (
        (data, "no event of a known schema: "),
        (good[:-1], "an event of the schema was expected: "),
        (good + data, f"{len(data)} bytes follow the event"),
    ):
        with pytest.raises(ValueError, match=told):
            MADE.Order.decode(wrong)


MADE = loaded(source(record({"name": "a", "type": "int"})))


RIGHT = """from orders import Order


def pieces(record: bytes) -> int:
    return Order.decode(record).pieces
"""


def test_a_module_is_typed(tmp_path: Path) -> None:
    """As strictly as the code of this house, with uses of it that are right; and a wrong use is noticed."""
    (tmp_path / "orders.py").write_text(source(FULL, ORDER), "utf-8")
    (tmp_path / "right.py").write_text(RIGHT, "utf-8")
    (tmp_path / "wrong.py").write_text("from orders import Order\n\nORDER = Order(pieces='x')\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-untyped-imports"]
    for file, code in (("right.py", 0), ("wrong.py", 1)):
        run = subprocess.run([*command, file], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == code, run.stdout


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["null", "int"], 'a module is made of a record, got ["null","int"]: register a record'),
        ("int", 'a module is made of a record, got "int"'),
        (record({"name": "class", "type": "int"}), "the name 'class' of Order cannot be an attribute in Python"),
        (record({"type": "enum", "name": "K", "symbols": ["mro"]}), "the name 'mro' of K cannot be an attribute"),
        (record({"name": "_of", "type": "int"}), "the name '_of' of Order cannot be an attribute in Python"),
    ],
)
def test_what_no_module_can_be_made_of_is_told(said: Json, told: str) -> None:
    """With what to do."""
    with pytest.raises(CodeGenerationError, match=told.replace("[", r"\[").replace("|", r"\|")):
        source(said)
