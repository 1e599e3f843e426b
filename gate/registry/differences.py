"""What a schema says otherwise than another one, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from hopwatch.gate.registry.avro_schema import Schema

_DETAILS: Final = ("logicalType", "precision", "scale", "size", "symbols", "default", "order", "aliases")
_PARTS: Final = {"array": ("items", "[]"), "map": ("values", "{}")}


class Difference(NamedTuple):
    """A place, such as ``customer.address[].zip``, and what stands there in either schema; empty where nothing does."""

    place: str
    before: str
    now: str


def differences(old: Schema, new: Schema) -> list[Difference]:
    """Return all places that are not the same, those of the new schema in its order and then those that are gone."""
    before, now = (dict(_places(orjson.loads(one.meaning), "")) for one in (old, new))
    here = [Difference(place, before.get(place, ""), said) for place, said in now.items()]
    gone = [Difference(place, said, "") for place, said in before.items() if place not in now]
    return [one for one in (*here, *gone) if one.before != one.now]


def _places(schema: Any, place: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON, here and below
    """Yield each place of a schema, as its meaning has it, and what it is."""
    yield place, _said(schema)
    yield from _below(schema, place)


def _below(schema: Any, place: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if isinstance(schema, list):
        made = [branch for branch in schema if isinstance(branch, dict)]
        for branch in made:
            name = str(branch.get("name", branch["type"])).rpartition(".")[2]
            yield from _below(branch, place if len(made) == 1 else f"{place}({name})")
    elif isinstance(schema, dict):
        if schema["type"] in _PARTS:
            part, mark = _PARTS[schema["type"]]
            yield from _places(schema[part], f"{place}{mark}")
        for field in schema.get("fields", ()):
            there = f"{place}.{field['name']}" if place else field["name"]
            yield there, f"{_said(field['type'])}{_details(field)}"
            yield from _below(field["type"], there)


def _said(schema: Any) -> str:  # noqa: ANN401
    if isinstance(schema, list):
        return " | ".join(_said(branch) for branch in schema)
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    name = f" {schema['name']}" if "name" in schema else ""
    return f"{kind if isinstance(kind, str) else _said(kind)}{name}{_details(schema)}"


def _details(schema: dict[str, Any]) -> str:
    return "".join(f", {name} {orjson.dumps(schema[name]).decode()}" for name in _DETAILS if name in schema)
