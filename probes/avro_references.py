"""Schemas with references to named types that other schemas define: written out, so that each stands by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from hopwatch.probes.avro_lint import PRIMITIVES, LintError, full_name

MAX_NESTING: Final = 64
"""Depth of a schema that is walked; the lint allows half of it."""
_NAMED: Final = frozenset({"record", "enum", "fixed", "error"})


class Definition(NamedTuple):
    """Type, and the namespace around it."""

    schema: Any
    namespace: str


def write_out_references(schema: Any, referenced: Iterable[Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a schema in which each type of the referenced schemas is defined where its name first stands.

    Names that nobody defines stay as they are: the lint refuses them.

    Raises:
        LintError: one of the schemas is nested too deep.
    """
    definitions: dict[str, Definition] = {}
    for one in referenced:
        for name, definition in list_definitions(one):
            definitions.setdefault(name, definition)
    return _write_out(schema, "", definitions, set(), 0)


def list_definitions(schema: object, namespace: str = "", depth: int = 0) -> Iterator[tuple[str, Definition]]:
    """Yield the named types that a schema defines, with their full names.

    Raises:
        LintError: it is nested too deep.
    """
    _check_depth(depth)
    if isinstance(schema, list):
        for one in schema:
            yield from list_definitions(one, namespace, depth + 1)
    elif isinstance(schema, dict):
        if _is_named(schema):
            full = full_name(schema, namespace)
            yield full, Definition(schema, namespace)
            namespace = full.rpartition(".")[0]
        for part in _list_parts(schema):
            yield from list_definitions(part, namespace, depth + 1)


def _write_out(
    schema: object, namespace: str, definitions: dict[str, Definition], known: set[str], depth: int
) -> object:
    _check_depth(depth)
    if isinstance(schema, list):
        return [_write_out(one, namespace, definitions, known, depth + 1) for one in schema]
    if isinstance(schema, str):
        full = schema if schema in PRIMITIVES or "." in schema or not namespace else f"{namespace}.{schema}"
        if full in known or full not in definitions:
            return schema
        space, _, name = full.rpartition(".")
        told = {**definitions[full].schema, "name": name} | ({"namespace": space} if space else {})
        return _write_out(told, "", definitions, known, depth)
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if _is_named(schema):
        full = full_name(schema, namespace)
        if full in known and full in definitions:
            # It stood in two of the referenced schemas, or was used before the type around it.
            return full
        known.add(full)
        namespace = full.rpartition(".")[0]
    else:
        made["type"] = _write_out(schema.get("type"), namespace, definitions, known, depth + 1)
    for name in ("items", "values"):
        if name in made:
            made[name] = _write_out(made[name], namespace, definitions, known, depth + 1)
    if isinstance(fields := schema.get("fields"), list):
        made["fields"] = [
            {**one, "type": _write_out(one.get("type"), namespace, definitions, known, depth + 1)}
            if isinstance(one, dict)
            else one
            for one in fields
        ]
    return made


def _list_parts(schema: dict[str, Any]) -> Iterator[object]:
    """Yield the types inside a type."""
    kind = schema.get("type")
    if not isinstance(kind, str):
        yield kind
    for name in ("items", "values"):
        yield schema.get(name)
    fields = schema.get("fields")
    for one in fields if isinstance(fields, list) else ():
        if isinstance(one, dict):
            yield one.get("type")


def _is_named(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return isinstance(kind, str) and kind in _NAMED


def _check_depth(depth: int) -> None:
    if depth > MAX_NESTING:
        raise LintError("", f"it is nested deeper than {MAX_NESTING}")
