"""Avro schemas of other people are looked at before any library sees them.

A schema may be written so that a few bytes decode into millions of objects, or never end. What passes here is neither
recursive nor deep, and makes at most so many objects a byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 32
MAX_OBJECTS: Final = 100_000
"""What one value of the schema may make at least, without what repeats."""
MAX_OBJECTS_A_BYTE: Final = 64
"""What each byte of an item that repeats may make."""

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_PRIMITIVE_BYTES: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip


class LintError(ValueError):
    """A schema that no decoder is to see; ``place`` is a JSON pointer to the part that is wrong."""

    def __init__(self, place: str, message: str) -> None:
        """Keep the place beside the sentence."""
        super().__init__(message)
        self.place = place


def lint(schema: object) -> None:
    """Check that a schema of other people, JSON that was parsed, can be given to a library.

    Raises:
        LintError: it is recursive, deep, makes too much of too little, or is none.
    """
    _Lint().least(schema, "", "", 0)


def full_name(schema: dict[str, Any], namespace: str) -> str:
    """Return the name of a named type with its namespace, in which names inside of it are looked up too."""
    name, within = str(schema.get("name", "")), str(schema.get("namespace") or namespace)
    return name if "." in name or not within else f"{within}.{name}"


class _Least(NamedTuple):
    """What a value of a type has at least: bytes of its own, and objects that are made of them."""

    size: int
    objects: int


@dataclass(slots=True)
class _Lint:
    """Goes through a schema once; ``known`` are the named types that were seen whole, ``open`` those around."""

    known: dict[str, _Least] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def least(self, schema: object, namespace: str, place: str, depth: int) -> _Least:
        """Return what a value of a type has at least.

        Raises:
            LintError: the type is recursive, deep, makes too much of too little, or is none.
        """
        if depth > MAX_DEPTH:
            raise LintError(place, f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(schema, str):
            found = self._named(schema, namespace, place)
        elif isinstance(schema, list):
            if not schema:
                raise LintError(place, "a union has at least one type, got none")
            branches = [self.least(one, namespace, f"{place}/{at}", depth + 1) for at, one in enumerate(schema)]
            found = _Least(1, 1 + max(branch.objects for branch in branches))
        elif isinstance(schema, dict):
            found = self._complex(schema, namespace, place, depth)
        else:
            raise LintError(place, f"a type is a name, a union or an object, got {schema!r:.40}")
        if found.objects > MAX_OBJECTS:
            raise LintError(place, f"a value of it would be {found.objects} objects, more than {MAX_OBJECTS}")
        return found

    def _named(self, name: str, namespace: str, place: str) -> _Least:
        if name in _PRIMITIVE_BYTES:
            return _Least(_PRIMITIVE_BYTES[name], 1)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self.open:
            raise LintError(place, f"the type {full!r:.80} is part of itself")
        if full not in self.known:
            raise LintError(place, f"there is no type {full!r:.80}")
        return self.known[full]

    def _complex(self, schema: dict[str, Any], namespace: str, place: str, depth: int) -> _Least:
        kind = schema.get("type")
        match kind:
            case "array" | "map":
                part, what = ("items", "an array") if kind == "array" else ("values", "a map")
                items = self.least(schema.get(part), namespace, f"{place}/{part}", depth + 1)
                if not items.size:
                    raise LintError(place, f"an item of {what} would have no bytes: a few bytes would make millions")
                if items.objects > MAX_OBJECTS_A_BYTE * items.size:
                    told = f"an item of {what} would be {items.objects} objects of {items.size} bytes"
                    raise LintError(place, told)
                return _Least(1, 1)
            case "record" | "error" | "enum" | "fixed":
                return self._definition(schema, kind, namespace, place, depth)
            case _:
                return self.least(kind, namespace, f"{place}/type", depth + 1)

    def _definition(self, schema: dict[str, Any], kind: str, namespace: str, place: str, depth: int) -> _Least:
        full = full_name(schema, namespace)
        if kind == "fixed":
            size = schema.get("size")
            if type(size) is not int or size < 0:
                raise LintError(place, f"a fixed has a size, got {size!r:.40}")
            found = _Least(size, 1)
        elif kind == "enum":
            found = _Least(1, 1)
        else:
            self.open.add(full)
            fields = schema.get("fields")
            if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
                raise LintError(place, f"a record has fields, got {fields!r:.40}")
            space = full.rpartition(".")[0]
            leasts = [
                self.least(one.get("type"), space, f"{place}/fields/{at}/type", depth + 1)
                for at, one in enumerate(fields)
            ]
            self.open.discard(full)
            found = _Least(sum(one.size for one in leasts), 1 + sum(one.objects for one in leasts))
        self.known[full] = found
        return found
