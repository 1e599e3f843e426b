"""Differences between two schemas, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from hopwatch.gate.registry.avro_schema import Schema

_DETAILS: Final = ("logicalType", "precision", "scale", "size", "symbols", "default", "order", "aliases")
_PARTS: Final = {"array": ("items", "[]"), "map": ("values", "{}")}


class Difference(NamedTuple):
    """Difference at a place such as ``customer.address[].zip``: the type before and now, empty where it is absent."""

    place: str
    before: str
    now: str


def find_differences(old: Schema, new: Schema) -> list[Difference]:
    """Return all differences: those at places of the new schema, in its order, then the places that were removed."""
    before, now = (dict(_iter_places(orjson.loads(one.meaning), "")) for one in (old, new))
    here = [Difference(place, before.get(place, ""), said) for place, said in now.items()]
    gone = [Difference(place, said, "") for place, said in before.items() if place not in now]
    return [one for one in (*here, *gone) if one.before != one.now]


def _iter_places(schema: Any, place: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON, here and below
    """Yield each place of a schema in its normal form, with a description."""
    yield place, _describe(schema)
    yield from _iter_children(schema, place)


def _iter_children(schema: Any, place: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if isinstance(schema, list):
        made = [branch for branch in schema if isinstance(branch, dict)]
        for branch in made:
            name = str(branch.get("name", branch["type"])).rpartition(".")[2]
            yield from _iter_children(branch, place if len(made) == 1 else f"{place}({name})")
    elif isinstance(schema, dict):
        if schema["type"] in _PARTS:
            part, mark = _PARTS[schema["type"]]
            yield from _iter_places(schema[part], f"{place}{mark}")
        for field in schema.get("fields", ()):
            there = f"{place}.{field['name']}" if place else field["name"]
            yield there, f"{_describe(field['type'])}{_describe_details(field)}"
            yield from _iter_children(field["type"], there)


def _describe(schema: Any) -> str:  # noqa: ANN401
    if isinstance(schema, list):
        return " | ".join(_describe(branch) for branch in schema)
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    name = f" {schema['name']}" if "name" in schema else ""
    return f"{kind if isinstance(kind, str) else _describe(kind)}{name}{_describe_details(schema)}"


def _describe_details(schema: dict[str, Any]) -> str:
    return "".join(f", {name} {orjson.dumps(schema[name]).decode()}" for name in _DETAILS if name in schema)
