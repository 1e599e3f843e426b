"""Safety checks of foreign Avro schemas, made before any Avro library parses them.

A hostile schema can make a few bytes decode into millions of objects, decode without end, or take for ever to parse. A
schema that passes is not recursive; its depth, its size with all names expanded, and the objects that it makes per byte
are bounded; and its names are valid.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 32
MAX_PARTS: Final = 10_000
"""Types and fields; a named type counts again at each use of its name."""
MAX_BRANCHES: Final = 100
"""Types of one union."""
MAX_OBJECTS_PER_BYTE: Final = 64
"""Objects that each byte of a repeated item may decode into."""

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_PRIMITIVE_BYTES: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})*")


class LintError(ValueError):
    """Unsafe or invalid schema; ``place`` is a JSON pointer to the part that is wrong."""

    def __init__(self, place: str, message: str) -> None:
        """Keep the place beside the sentence."""
        super().__init__(message)
        self.place = place


def lint(schema: object) -> None:
    """Check that a foreign schema, given as parsed JSON, is safe for an Avro library.

    Raises:
        LintError: it is recursive, too deep, decodes few bytes into too many objects, or is no schema.
    """
    _Lint().find_min_size(schema, "", "", 0)


def full_name(schema: dict[str, Any], namespace: str) -> str:
    """Return the full name of a named type; its namespace is also that of the names used inside it."""
    name, within = str(schema.get("name", "")), str(schema.get("namespace") or namespace)
    return name if "." in name or not within else f"{within}.{name}"


class _MinSize(NamedTuple):
    """Lower bounds of one value of a type: its encoded bytes, and the objects that they decode into."""

    size: int
    objects: int
    parts: int = 1
    """Number of types and fields in it, at most."""
    depth: int = 1
    """Nesting depth of its types."""


_KINDS: Final = frozenset({"array", "enum", "error", "error_union", "fixed", "map", "record", "request", "union"})
"""Words for kinds of types; libraries read them as kinds even where a type name is meant."""


@dataclass(slots=True)
class _Lint:
    """One pass over a schema; ``known`` holds the named types that are complete, ``open`` the enclosing ones."""

    known: dict[str, _MinSize] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def find_min_size(self, schema: object, namespace: str, place: str, depth: int) -> _MinSize:
        """Return the lower bounds of one value of a type.

        Raises:
            LintError: the type is recursive, too deep, decodes few bytes into too many objects, or is no type.
        """
        if depth > MAX_DEPTH:
            raise LintError(place, f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(schema, str):
            found = self._named(schema, namespace, place)
        elif isinstance(schema, list):
            if not 0 < len(schema) <= MAX_BRANCHES:
                raise LintError(place, f"a union has 1 to {MAX_BRANCHES} types, got {len(schema)}")
            branches = [self.find_min_size(one, namespace, f"{place}/{at}", depth + 1) for at, one in enumerate(schema)]
            found = _combine(1, 1 + max(branch.objects for branch in branches), branches)
        elif isinstance(schema, dict):
            found = self._complex(schema, namespace, place, depth)
        else:
            raise LintError(place, f"a type is a name, a union or an object, got {schema!r:.40}")
        if found.parts > MAX_PARTS:
            raise LintError(place, f"with its names written out it has {found.parts} parts, more than {MAX_PARTS}")
        if found.depth > MAX_DEPTH:
            raise LintError(place, f"with its names written out it is nested deeper than {MAX_DEPTH}")
        return found

    def _named(self, name: str, namespace: str, place: str) -> _MinSize:
        if name in _PRIMITIVE_BYTES:
            return _MinSize(_PRIMITIVE_BYTES[name], 1)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self.open:
            raise LintError(place, f"the type {full!r:.80} is part of itself")
        if full not in self.known:
            raise LintError(place, f"there is no type {full!r:.80}")
        return self.known[full]

    def _complex(self, schema: dict[str, Any], namespace: str, place: str, depth: int) -> _MinSize:
        if not isinstance(logical := schema.get("logicalType", ""), str):
            raise LintError(f"{place}/logicalType", f"a logical type is a name, got {logical!r:.60}")
        if logical == "decimal":
            _check_decimal(schema, place)
        kind = schema.get("type")
        match kind:
            case "array" | "map":
                part, what = ("items", "an array") if kind == "array" else ("values", "a map")
                items = self.find_min_size(schema.get(part), namespace, f"{place}/{part}", depth + 1)
                if not items.size:
                    raise LintError(place, f"an item of {what} would have no bytes: a few bytes would make millions")
                if items.objects > MAX_OBJECTS_PER_BYTE * items.size:
                    told = f"an item of {what} would be {items.objects} objects of {items.size} bytes"
                    raise LintError(place, told)
                return _combine(1, 1, [items])
            case "record" | "enum" | "fixed":
                return self._definition(schema, kind, namespace, place, depth)
            case _:
                return self.find_min_size(kind, namespace, f"{place}/type", depth + 1)

    def _definition(self, schema: dict[str, Any], kind: str, namespace: str, place: str, depth: int) -> _MinSize:
        _check_names(schema, place)
        full = full_name(schema, namespace)
        if full in _KINDS:
            raise LintError(f"{place}/name", f"{full!r} is a kind of type, and no name of one")
        if kind == "fixed":
            size = schema.get("size")
            if type(size) is not int or size < 0:
                raise LintError(place, f"a fixed has a size, got {size!r:.40}")
            found = _MinSize(size, 1)
        elif kind == "enum":
            _check_listed(schema.get("symbols"), _NAME, f"{place}/symbols")
            if not schema["symbols"]:
                raise LintError(f"{place}/symbols", "an enum without symbols has no values")
            found = _MinSize(1, 1)
        else:
            self.open.add(full)
            fields = schema.get("fields")
            if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
                raise LintError(place, f"a record has fields, got {fields!r:.40}")
            for at, one in enumerate(fields):
                _check_field(one, f"{place}/fields/{at}")
            space = full.rpartition(".")[0]
            leasts = [
                self.find_min_size(one.get("type"), space, f"{place}/fields/{at}/type", depth + 1)
                for at, one in enumerate(fields)
            ]
            self.open.discard(full)
            found = _combine(sum(one.size for one in leasts), 1 + sum(one.objects for one in leasts), leasts)
        self.known[full] = found
        return found


def _combine(size: int, objects: int, parts: Sequence[_MinSize]) -> _MinSize:
    """Return the lower bounds of a type that is composed of other types."""
    return _MinSize(
        size,
        objects,
        1 + len(parts) + sum(one.parts for one in parts),
        1 + max((one.depth for one in parts), default=0),
    )


def _check_decimal(schema: dict[str, Any], place: str) -> None:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
        told = "a decimal has a precision of 1 or more, and a scale from 0 to that"
        raise LintError(f"{place}/precision", f"{told}, got {precision!r:.20} and {scale!r:.20}")


def _check_names(schema: dict[str, Any], place: str) -> None:
    """Check name, namespace and aliases of a named type."""
    _check_name(schema.get("name"), _FULL_NAME, f"{place}/name")
    if "namespace" in schema:
        _check_name(schema["namespace"], _FULL_NAME, f"{place}/namespace")
    if "aliases" in schema:
        _check_listed(schema["aliases"], _FULL_NAME, f"{place}/aliases")


def _check_field(one: dict[str, Any], place: str) -> None:
    _check_name(one.get("name"), _NAME, f"{place}/name")
    if "aliases" in one:
        _check_listed(one["aliases"], _NAME, f"{place}/aliases")


def _check_listed(names: object, form: re.Pattern[str], place: str) -> None:
    if not isinstance(names, list):
        raise LintError(place, f"names stand in a list, got {names!r:.60}")
    for at, name in enumerate(names):
        _check_name(name, form, f"{place}/{at}")


def _check_name(name: object, form: re.Pattern[str], place: str) -> None:
    if not isinstance(name, str) or not form.fullmatch(name):
        raise LintError(place, f"a name has letters, digits and underscores, got {name!r:.60}")
