"""Tests of explanations: which field, in which version, what would break, what to do."""

from __future__ import annotations

import pytest

from hopwatch.gate.registry.compatibility import CompatibilityLevel, Direction, SchemaVersion, find_conflicts
from hopwatch.gate.registry.explanations import WHOLE_SCHEMA, describe_new_major, explain_conflicts
from tests.support.schemas import Json, record, schema

AB = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
A = {"type": "enum", "name": "Kind", "symbols": ["A"]}
INNER = record({"name": "zip", "type": "int"}, name="Address")
INNER_TEXT = record({"name": "zip", "type": "string"}, name="Address")
TYPE_FIX = "keep the type, widen it (int, long, float, double; string and bytes), or add a field of another name,"
FIX_BACK = f"{TYPE_FIX} with a default, beside it"
FIX_FORTH = "keep the type, or add a field of another name beside it"


def one(kind: Json) -> dict[str, Json]:
    """Return a record of one field ``a``."""
    return record({"name": "a", "type": kind})


BACKWARD: list[tuple[Json, Json, str, str, str]] = [
    (record(), one("int"), "a", "the field is new, of type int, and has no default", "give it a default"),
    (one("string"), one("int"), "a", "string in version 3, int in the new schema", FIX_BACK),
    (one("int"), one(["null", "int"]), "", "", ""),
    (one(["null", "int"]), one("int"), "a", "null in version 3, int in the new schema", FIX_BACK),
    (one(["int", "string"]), one(["null", "int"]), "a", "string in version 3 has no place in null | int",
     "take the type of before into the union"),
    (one(AB), one(A), "a", "the symbols B of version 3 are gone, and the enum has no default",
     "keep them, or give the enum a default for symbols that it does not know"),
    (one({"type": "fixed", "name": "M", "size": 2}), one({"type": "fixed", "name": "M", "size": 3}), "a",
     "2 bytes in version 3, 3 in the new schema", "keep the size, or add a field of another name"),
    (record(name="Order"), record(name="Sale"), WHOLE_SCHEMA, "Order in version 3, Sale in the new schema",
     "keep the name, or add Order to the aliases of Sale"),
    (one({"type": "array", "items": INNER}), one({"type": "array", "items": INNER_TEXT}), "a[].zip",
     "int in version 3, string in the new schema", FIX_BACK),
    (one({"type": "map", "values": INNER}), one({"type": "map", "values": INNER_TEXT}), "a{}.zip",
     "int in version 3, string in the new schema", FIX_BACK),
    (one(["null", INNER]), one(["null", INNER_TEXT]), "a.zip", "int in version 3, string in the new schema", FIX_BACK),
]  # fmt: skip
FORWARD: list[tuple[Json, Json, str, str, str]] = [
    (one("int"), record(), "a", "the field is gone, and version 3 has no default for it", "keep the field"),
    (one("int"), one("string"), "a", "int in version 3, string in the new schema", FIX_FORTH),
    (one(A), one(AB), "a", "the symbols B are new, and the enum of version 3 has no default",
     "do without them, or add the enum's default in a version before they are written"),
    (
        record(name="Order"),
        record(name="Sale"),
        WHOLE_SCHEMA,
        "Order in version 3, Sale in the new schema",
        "keep the name",
    ),
    (one(["null", "int"]), one(["null", "string"]), "a",
     "string in the new schema has no place in null | int of version 3", "keep to the types of before"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place", "problem", "fix"), BACKWARD)
def test_a_new_schema_that_does_not_read_an_old_one(old: Json, new: Json, place: str, problem: str, fix: str) -> None:
    """Readers are brought up to date first: the new schema has to read what version 3 wrote."""
    found = list(
        explain_conflicts(find_conflicts(schema(new), [SchemaVersion(3, schema(old))], CompatibilityLevel.BACKWARD))
    )
    broken = "readers with the new schema could not read what version 3 wrote"
    assert found == ([(3, Direction.BACKWARD, place, problem, broken, fix)] if problem else [])


@pytest.mark.parametrize(("old", "new", "place", "problem", "fix"), FORWARD)
def test_an_old_schema_that_does_not_read_a_new_one(old: Json, new: Json, place: str, problem: str, fix: str) -> None:
    """Writers are brought up to date first: version 3 has to read what the new schema writes."""
    found = list(
        explain_conflicts(find_conflicts(schema(new), [SchemaVersion(3, schema(old))], CompatibilityLevel.FORWARD))
    )
    broken = "readers of version 3 could not read what the new schema writes"
    assert found == [(3, Direction.FORWARD, place, problem, broken, fix)]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("com.example.orders.v2.Order", "the namespace com.example.orders.v3, and a subject of its own"),
        ("com.example.orders.v19.Order", "the namespace com.example.orders.v20, and a subject of its own"),
        ("com.example.orders.Order", "the namespace com.example.orders.v2, and a subject of its own"),
        ("Order", "a namespace such as com.example.orders.v2, and a subject of its own"),
        ("", "a namespace such as com.example.orders.v2, and a subject of its own"),
    ],
)
def test_a_new_major_version_is_a_namespace(name: str, told: str) -> None:
    """The last part of a namespace counts up, or begins with two."""
    assert describe_new_major(name) == f"make it a new major version: {told}"
