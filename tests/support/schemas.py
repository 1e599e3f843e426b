"""Schemas for tests: some by hand, any by hypothesis, and pairs that teams may have as versions."""

from __future__ import annotations

from typing import Any, Final

import orjson
from hypothesis import strategies as st

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.probes.avro_lint import LintError, lint

Json = Any
"""A schema as JSON."""

ORDER: Final[dict[str, Json]] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.example.orders.v1",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "pieces", "type": "int"},
    ],
}


def schema(said: Json) -> Schema:
    """Return the schema of JSON."""
    return Schema.parse(orjson.dumps(said))


def _is_field(one: Json) -> bool:
    """Return whether it is a field: it has a name as a named type has, but none of a named type's parts."""
    return isinstance(one, dict) and one.keys() >= {"name", "type"} and not one.keys() & {"fields", "symbols", "size"}


def record(*fields: Json, name: str = "Order", **more: Json) -> dict[str, Json]:
    """Return a record of fields; each is a type, named after its place, or a whole field."""
    named = [one if _is_field(one) else {"name": f"f{at}", "type": one} for at, one in enumerate(fields)]
    return {"type": "record", "name": name, "fields": named, **more}


FIRST: Final = record({"name": "a", "type": "int"}, namespace="com.example.orders.v1")
SECOND: Final = record(
    {"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 7}, namespace="com.example.orders.v1"
)
BROKEN: Final = record({"name": "a", "type": "int"}, {"name": "c", "type": "int"}, namespace="com.example.orders.v1")
"""It does not read what FIRST wrote."""
CONFLICT: Final = {
    "version": 1,
    "direction": "backward",
    "place": "c",
    "problem": "the field is new, of type int, and has no default",
    "breaks": "readers with the new schema could not read what version 1 wrote",
    "fix": "give it a default",
}
"""How that is told."""


_PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
_FULL = st.sampled_from(["boolean", "int", "long", "float", "double", "bytes", "string"])
_SYMBOLS = st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True)


def _enum(symbols: list[str], default: bool) -> Json:  # noqa: FBT001 - drawn
    return {"type": "enum", "name": "Kind", "symbols": symbols} | ({"default": symbols[0]} if default else {})


def _union(branches: list[Json]) -> Json:
    kinds = {repr(one if isinstance(one, str) else one["type"]): one for one in branches}
    return list(kinds.values())


@st.composite
def _records(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    fields = []
    for name in draw(st.lists(st.sampled_from("abcd"), max_size=3, unique=True)):
        kind = draw(inner)
        field = {"name": name, "type": kind}
        if kind == "int" and draw(st.booleans()):
            field["default"] = 7
        if draw(st.integers(0, 5)) == 0:
            field["aliases"] = [draw(st.sampled_from("efgh"))]
        fields.append(field)
    return {"type": "record", "name": "Order", "fields": fields}


def _without_repeats(said: Json, taken: set[str] | None = None) -> Json:
    """Return a schema in which each named type has a name of its own, by the order in which they come."""
    taken = set() if taken is None else taken
    if isinstance(said, list):
        return [_without_repeats(one, taken) for one in said]
    if not isinstance(said, dict):
        return said
    told = dict(said)
    if "name" in told and told.get("type") in {"record", "enum", "fixed"}:
        name = told["name"]
        while name in taken:
            name += "x"
        taken.add(name)
        told["name"] = name
    for part in ("items", "values"):
        if part in told:
            told[part] = _without_repeats(told[part], taken)
    if "fields" in told:
        told["fields"] = [one | {"type": _without_repeats(one["type"], taken)} for one in told["fields"]]
    return told


def _is_taken(said: Json) -> bool:
    """Return whether the lint accepts it: no item of it is without a byte."""
    try:
        lint(said)
    except LintError:
        return False
    return True


_NAMED = st.builds(_enum, _SYMBOLS, st.booleans()) | st.builds(
    lambda size: {"type": "fixed", "name": "Mark", "size": size}, st.integers(1, 3)
)
_ANY = st.recursive(
    _PRIMITIVES | _NAMED,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner.filter(lambda one: one != "null"))
        | st.builds(lambda values: {"type": "map", "values": values}, inner.filter(lambda one: one != "null"))
        | st.lists(inner.filter(lambda one: not isinstance(one, list)), min_size=1, max_size=3).map(_union)
        | _records(inner)
    ),
    max_leaves=6,
)
SCHEMAS = _records(_ANY).map(_without_repeats).filter(_is_taken)
"""Any record: what a subject usually holds."""
TYPES = _ANY.map(_without_repeats).filter(_is_taken)
"""Any type."""


@st.composite
def changed(draw: st.DrawFn, said: Json) -> Json:
    """Return a schema that is a small change away from another one, as a team's next version."""
    told = orjson.loads(orjson.dumps(said))
    fields: list[Json] = told["fields"]
    match draw(st.sampled_from(["add", "add default", "remove", "type", "rename", "alias", "name", "same"])):
        case "add":
            fields.append({"name": "z", "type": draw(_FULL)})
        case "add default":
            fields.append({"name": "z", "type": "int", "default": 0})
        case "remove" if fields:
            fields.pop(draw(st.integers(0, len(fields) - 1)))
        case "type" if fields:
            one = fields[draw(st.integers(0, len(fields) - 1))]
            one.pop("default", None)
            one["type"] = draw(_PRIMITIVES)
        case "rename" if fields:
            fields[0]["name"] = "renamed"
        case "alias" if fields:
            fields[0]["aliases"], fields[0]["name"] = [fields[0]["name"]], "renamed"
        case "name":
            told["name"] = "Other"
        case _:
            pass
    return told
