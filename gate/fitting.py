"""Whether rules go with a schema: one that looks where nothing is holds nothing back, or everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hopwatch.gate.registry.avro_schema import Schema, logical_type
from hopwatch.gate.rules import EACH, Path, Pattern, Range, Rule

Avro = Any
"""A schema of Avro's library."""
_TEXTS: Final = frozenset({"string", "enum"})
_NUMBERS: Final = frozenset({"int", "long", "float", "double"})


def misfits(rules: Sequence[Rule], schema: Schema) -> Iterator[str]:
    """Yield a sentence for each rule that cannot do what it is for."""
    for rule in rules:
        field = getattr(rule.check, "field", None)
        if isinstance(field, Path) and (told := _misfit(rule, field, schema)):
            yield f"the rule {rule.name!r} looks at {'.'.join(field.parts).replace(f'.{EACH}', EACH)}, {told}"


def _misfit(rule: Rule, field: Path, schema: Schema) -> str:
    found = list(_at_end(schema.parsed, field.parts))
    if not found:
        return "which the schema has not: it keeps no event out, or every one"
    if isinstance(rule.check, Pattern) and not any(one.type in _TEXTS for one in found):
        return f"which is {_kinds(found)} and no text: every event breaks it"
    if isinstance(rule.check, Range) and not any(one.type in _NUMBERS or _is_decimal(one) for one in found):
        return f"which is {_kinds(found)} and no number: every event breaks it"
    return ""


def _at_end(schema: Avro, parts: Sequence[str]) -> Iterator[Avro]:
    """Yield the types that a path leads to, null aside."""
    if schema.type == "union":
        for branch in schema.schemas:
            if branch.type != "null":
                yield from _at_end(branch, parts)
    elif not parts:
        yield schema
    else:
        for below in _below(schema, parts[0]):
            yield from _at_end(below, parts[1:])


def _below(schema: Avro, part: str) -> list[Avro]:
    """Return the type that one part of a path leads to, if it leads anywhere."""
    match schema.type:
        case "array":
            return [schema.items] if part == EACH else []
        case "map":
            return [schema.values] if part != EACH else []
        case "record":
            return [field.type for field in schema.fields if field.name == part]
        case _:
            return []


def _is_decimal(one: Avro) -> bool:
    return bool(one.type == "bytes" and logical_type(one) == "decimal")


def _kinds(found: Sequence[Avro]) -> str:
    return " or ".join(dict.fromkeys(one.type for one in found))
