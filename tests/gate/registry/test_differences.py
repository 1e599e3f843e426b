"""Tests of differences: each place that is not the same, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given

from hopwatch.gate.registry.differences import find_differences
from tests.support.schemas import SCHEMAS, Json, record, schema

INNER = record({"name": "zip", "type": "int"}, name="Address")
INNER_TEXT = record({"name": "zip", "type": "string"}, name="Address")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (record(), record({"name": "a", "type": "int", "default": 0}), [("a", "", "int, default 0")]),
        (record({"name": "a", "type": "int"}), record(), [("a", "int", "")]),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": ["null", "int"]}),
         [("a", "int", "null | int")]),
        (record({"name": "a", "type": {"type": "array", "items": INNER}}),
         record({"name": "a", "type": {"type": "array", "items": INNER_TEXT}}), [("a[].zip", "int", "string")]),
        (record({"name": "a", "type": ["null", INNER]}), record({"name": "a", "type": ["null", INNER_TEXT]}),
         [("a.zip", "int", "string")]),
        (record({"name": "a", "type": {"type": "map", "values": "int"}}),
         record({"name": "a", "type": {"type": "map", "values": "long"}}), [("a{}", "int", "long")]),
        (record({"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}}),
         record({"name": "a", "type": "long"}), [("a", 'long, logicalType "timestamp-millis"', "long")]),
        (record(name="Order"), record(name="Sale", aliases=["Order"]),
         [("", "record Order", 'record Sale, aliases ["Order"]')]),
        ("int", "long", [("", "int", "long")]),
        ([record({"name": "id", "type": "int"}, name="A"), record({"name": "id", "type": "int"}, name="B")],
         [record({"name": "id", "type": "string"}, name="A"), record({"name": "id", "type": "int"}, name="B")],
         [("(A).id", "int", "string")]),
    ],
)  # fmt: skip
def test_each_place_is_told(old: Json, new: Json, told: list[tuple[str, str, str]]) -> None:
    """Each difference has its place and both schemas' values."""
    assert find_differences(schema(old), schema(new)) == told


@given(SCHEMAS)
def test_a_schema_does_not_differ_from_itself(said: Json) -> None:
    """And from an empty record in each of its fields."""
    one, empty = schema(said), schema(record(name=said["name"]))
    assert find_differences(one, one) == []
    assert {place for place, _, _ in find_differences(empty, one)} >= {field["name"] for field in said["fields"]}
