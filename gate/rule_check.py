"""Check of rules against a schema: a rule on a field that does not exist blocks no event, or every one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hopwatch.gate.registry.avro_schema import Schema, logical_type
from hopwatch.gate.rules import EACH_ITEM, EventRule, FieldPath, NumberRange, Pattern

Avro = Any
"""A schema of Avro's library."""
_TEXTS: Final = frozenset({"string", "enum"})
_NUMBERS: Final = frozenset({"int", "long", "float", "double"})


def find_mismatches(rules: Sequence[EventRule], schema: Schema) -> Iterator[str]:
    """Yield a sentence for each rule that cannot work with the schema."""
    for rule in rules:
        field = getattr(rule.check, "field", None)
        if isinstance(field, FieldPath) and (told := _find_mismatch(rule, field, schema)):
            yield f"the rule {rule.name!r} looks at {'.'.join(field.parts).replace(f'.{EACH_ITEM}', EACH_ITEM)}, {told}"


def _find_mismatch(rule: EventRule, field: FieldPath, schema: Schema) -> str:
    found = list(_find_types(schema.parsed, field.parts))
    if not found:
        return "which the schema does not have: it blocks no event, or every one"
    if isinstance(rule.check, Pattern) and not any(one.type in _TEXTS for one in found):
        return f"which is {_join_kinds(found)} and no text: every event breaks it"
    if isinstance(rule.check, NumberRange) and not any(one.type in _NUMBERS or _is_decimal(one) for one in found):
        return f"which is {_join_kinds(found)} and no number: every event breaks it"
    return ""


def _find_types(schema: Avro, parts: Sequence[str]) -> Iterator[Avro]:
    """Yield the types at a path, without null."""
    if schema.type == "union":
        for branch in schema.schemas:
            if branch.type != "null":
                yield from _find_types(branch, parts)
    elif not parts:
        yield schema
    else:
        for below in _child_types(schema, parts[0]):
            yield from _find_types(below, parts[1:])


def _child_types(schema: Avro, part: str) -> list[Avro]:
    """Return the type at one part of a path; empty if there is none."""
    match schema.type:
        case "array":
            return [schema.items] if part == EACH_ITEM else []
        case "map":
            return [schema.values] if part != EACH_ITEM else []
        case "record":
            return [field.type for field in schema.fields if field.name == part]
        case _:
            return []


def _is_decimal(one: Avro) -> bool:
    return bool(one.type == "bytes" and logical_type(one) == "decimal")


def _join_kinds(found: Sequence[Avro]) -> str:
    return " or ".join(dict.fromkeys(one.type for one in found))
