"""Avro values of other people: their schema is looked at before any library sees it, and every value has a bound.

A schema may be written so that a few bytes decode into millions of objects, or never end. What is taken here is neither
recursive nor deep, and makes at most so many objects a byte.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import fastavro
import fastavro.schema
import orjson

from probes.taps.errors import TapUsageError

MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_OBJECTS: Final = 100_000
"""What one value of the schema may make at least, without what repeats."""
MAX_OBJECTS_A_BYTE: Final = 64
"""What each byte of an item that repeats may make."""
MARKER: Final = b"\x81"
MAGIC: Final = b"\x00"
_ID_BYTES: Final = 4

_PRIMITIVE_BYTES: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip


class Framing(StrEnum):
    """What stands before the Avro body of a value."""

    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    RAW = "raw"


class _Least(NamedTuple):
    """What a value of a type has at least: bytes of its own, and objects that are made of them."""

    size: int
    objects: int


@dataclass(slots=True)
class _Lint:
    """Goes through a schema once; ``known`` are the named types that were seen whole, ``open`` those around."""

    known: dict[str, _Least] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def least(self, schema: object, namespace: str, depth: int) -> _Least:
        """Return what a value of a type has at least.

        Raises:
            ValueError: the type is recursive, deep, makes too much of too little, or is none.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(schema, str):
            found = self._named(schema, namespace)
        elif isinstance(schema, list):
            branches = [self.least(branch, namespace, depth + 1) for branch in schema]
            found = _Least(1, 1 + max((branch.objects for branch in branches), default=0))
        elif isinstance(schema, dict):
            found = self._complex(schema, namespace, depth)
        else:
            raise ValueError(f"a type is a name, a union or an object, got {schema!r:.40}")  # noqa: TRY004 - as all here
        if found.objects > MAX_OBJECTS:
            raise ValueError(f"a value of it would be {found.objects} objects, more than {MAX_OBJECTS}")
        return found

    def _named(self, name: str, namespace: str) -> _Least:
        if name in _PRIMITIVE_BYTES:
            return _Least(_PRIMITIVE_BYTES[name], 1)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self.open:
            raise ValueError(f"the type {full!r:.80} is part of itself")
        if full not in self.known:
            raise ValueError(f"there is no type {full!r:.80}")
        return self.known[full]

    def _complex(self, schema: dict[str, Any], namespace: str, depth: int) -> _Least:
        kind = schema.get("type")
        match kind:
            case "array" | "map":
                items = self.least(schema.get("items" if kind == "array" else "values"), namespace, depth + 1)
                # The key of a map's item has its length before it.
                size = items.size + (kind == "map")
                if items.objects > MAX_OBJECTS_A_BYTE * size:
                    raise ValueError(f"an item of an {kind} would be {items.objects} objects of {size} bytes")
                return _Least(1, 1)
            case "record" | "error" | "enum" | "fixed":
                return self._definition(schema, kind, namespace, depth)
            case _:
                return self.least(kind, namespace, depth + 1)

    def _definition(self, schema: dict[str, Any], kind: str, namespace: str, depth: int) -> _Least:
        name, within = str(schema.get("name", "")), str(schema.get("namespace") or namespace)
        full = name if "." in name or not within else f"{within}.{name}"
        if kind == "fixed":
            size = schema.get("size")
            if type(size) is not int or size < 0:
                raise ValueError(f"a fixed has a size, got {size!r:.40}")
            found = _Least(size, 1)
        elif kind == "enum":
            found = _Least(1, 1)
        else:
            self.open.add(full)
            fields = schema.get("fields")
            if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
                raise ValueError(f"a record has fields, got {fields!r:.40}")
            space = full.rpartition(".")[0]
            leasts = [self.least(one.get("type"), space, depth + 1) for one in fields]
            self.open.discard(full)
            found = _Least(sum(one.size for one in leasts), 1 + sum(one.objects for one in leasts))
        self.known[full] = found
        return found


def lint(schema: object) -> None:
    """Check that a schema of other people can be given to a library.

    Raises:
        ValueError: it is recursive, deep, makes too much of too little, or is none.
    """
    _Lint().least(schema, "", 0)


class AvroValues:
    """Decodes values of one schema, to their last byte."""

    def __init__(self, file: Path, framing: Framing) -> None:
        """Read the schema.

        Raises:
            TapUsageError: it cannot be read, cannot be, or is refused.
        """
        try:
            with file.open("rb") as opened:
                text = opened.read(MAX_SCHEMA_BYTES + 1)
        except OSError as error:
            advice = "name a file that is there with --avro-schema"
            raise TapUsageError(f"the schema {file} cannot be read: {error.strerror}: {advice}") from None
        try:
            if len(text) > MAX_SCHEMA_BYTES:
                raise ValueError(f"it has more than {MAX_SCHEMA_BYTES} bytes")  # noqa: TRY301 - one sentence for all
            parsed = orjson.loads(text)
            lint(parsed)
            self._schema = fastavro.parse_schema(parsed)
        except Exception as error:  # noqa: BLE001 - a library of parsers may raise anything, and all of it is the file's
            raise TapUsageError(f"the schema {file} cannot be used: {error!s:.200}") from None
        self._prefix = self._prefix_of(framing)
        self._body = len(self._prefix) + (_ID_BYTES if framing is Framing.CONFLUENT else 0)

    def decode(self, value: bytes) -> object:
        """Return what a value says.

        Raises:
            ValueError: it is of another schema, framed otherwise, or ends too early or too late.
        """
        if not value.startswith(self._prefix) or len(value) < self._body:
            raise ValueError(f"a value starts with {self._prefix.hex()}, got {value[: len(self._prefix)].hex()}")
        body = io.BytesIO(value)
        body.seek(self._body)
        try:
            found: object = fastavro.schemaless_reader(body, self._schema, None)
        except Exception as error:  # noqa: BLE001 - foreign bytes may raise anything there
            raise ValueError(f"a value of the schema was expected: {error!s:.100}") from None
        if body.tell() != len(value):
            raise ValueError(f"{len(value) - body.tell()} bytes follow the value")
        return found

    def _prefix_of(self, framing: Framing) -> bytes:
        if framing is Framing.FINGERPRINT:
            canonical = fastavro.schema.to_parsing_canonical_form(self._schema)
            return MARKER + bytes.fromhex(fastavro.schema.fingerprint(canonical, "SHA-256"))
        return MAGIC if framing is Framing.CONFLUENT else b""
