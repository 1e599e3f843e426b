"""Decoder of foreign Avro values by the schema that wrote each: of a file, or by its reference from a registry.

A schema is checked before any Avro library parses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import fastavro
import fastavro.schema
import orjson

from hopwatch.probes.avro_lint import PRIMITIVES, full_name, lint
from hopwatch.probes.avro_reader import CONFLUENT, CONFLUENT_BYTES, read_value
from hopwatch.probes.avro_references import Definition, list_definitions
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.schema_registry import LABEL_DIGITS
from hopwatch.probes.taps.errors import TapUsageError

MAX_SCHEMA_BYTES: Final = 256 * 1024


class AvroFraming(StrEnum):
    """Framing of an Avro value: the bytes before its body."""

    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    RAW = "raw"


class WriterSchema:
    """Schema that values were written with."""

    def __init__(self, said: Any, registered_as: str = "") -> None:  # noqa: ANN401 - JSON
        """Check and parse the schema; ``registered_as`` is the name under which a registry has it, if one does.

        Raises:
            ValueError: it is none, or is refused as unsafe.
        """
        try:
            lint(said)
            self.parsed = fastavro.parse_schema(said)
        except Exception as error:  # noqa: BLE001 - a library of parsers may raise anything, always because of the text
            raise ValueError(f"{error!s:.200}") from None
        self._said, self._registered_as = said, registered_as
        self.name = full_name(said, "") if isinstance(said, dict) and "name" in said else ""
        """Full name of the outermost type; empty if it has none."""
        self._keys: dict[tuple[str, ...], tuple[str, ...]] = {}

    def read(self, value: bytes, start: int) -> Any:  # noqa: ANN401 - what the schema says
        """Read the value that begins at ``start``; bytes behind it are an error.

        Raises:
            ValueError: it is none of this schema, or is too short or too long.
        """
        return read_value(value, start, self.parsed, "a value of the schema", "value")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal digits."""
        canonical = fastavro.schema.to_parsing_canonical_form(self.parsed)
        return str(fastavro.schema.fingerprint(canonical, "SHA-256"))

    @cached_property
    def label(self) -> str:
        """Name under which a registry has it; without one the first digits of its fingerprint."""
        return self._registered_as or self.fingerprint[:LABEL_DIGITS]

    def find_keys(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the keys that a path has in this schema: a field that was renamed is found by its alias."""
        found = self._keys.get(path)
        if found is None:
            found = self._keys[path] = tuple(_resolve_path(self._said, path))
        return found


class FramedBody(NamedTuple):
    """Body of a value: the schema that wrote it, and where it begins."""

    writer: WriterSchema
    start: int


class AvroValues(Protocol):
    """Source of the schemas that values were written with."""

    def find_body(self, value: bytes) -> FramedBody:
        """Return the schema of a value, and where its body begins.

        Raises:
            ValueError: the value is framed otherwise, or its schema cannot be used.
            UnknownSchemaError: nobody knows its schema.
            SchemaWaitError: its schema cannot be known yet.
        """

    def strip_framing(self, data: bytes) -> bytes | None:
        """Return the body of bytes that are framed as values are, such as a key of another schema; else None."""


class SchemaWaitError(Exception):
    """Message that has to wait, as the schema of its value cannot be known yet."""


class FileSchema:
    """Schema of a file, which wrote all values."""

    def __init__(self, file: Path, framing: AvroFraming) -> None:
        """Read the schema.

        Raises:
            TapUsageError: the file cannot be read, is no schema, or is refused as unsafe.
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
            self._schema = WriterSchema(orjson.loads(text))
        except ValueError as error:
            raise TapUsageError(f"the schema {file} cannot be used: {error!s:.200}") from None
        self._prefix = self._build_prefix(framing)
        self._body_start = CONFLUENT_BYTES if framing is AvroFraming.CONFLUENT else len(self._prefix)

    def find_body(self, value: bytes) -> FramedBody:
        """Return the schema, and where the body of a value begins.

        Raises:
            ValueError: the value has another schema or framing.
        """
        if not value.startswith(self._prefix) or len(value) < self._body_start:
            raise ValueError(f"a value starts with {self._prefix.hex()}, got {value[: len(self._prefix)].hex()}")
        return FramedBody(self._schema, self._body_start)

    def strip_framing(self, data: bytes) -> bytes | None:
        """Return the body of bytes that are framed as values are, such as a key of another schema; else None."""
        is_framed = data.startswith(self._prefix[:1]) and len(data) >= self._body_start
        return data[self._body_start :] if is_framed else None

    def _build_prefix(self, framing: AvroFraming) -> bytes:
        if framing is AvroFraming.FINGERPRINT:
            return bytes([MARKER]) + bytes.fromhex(self._schema.fingerprint)
        return bytes([CONFLUENT]) if framing is AvroFraming.CONFLUENT else b""


def _resolve_path(schema: object, path: tuple[str, ...]) -> list[str]:
    """Return the keys of a path; those of fields that a schema does not have stay as they are."""
    named = dict(list_definitions(schema))
    places = list(_find_branches(Definition(schema, ""), named))
    keys = []
    for key in path:
        fields = [(field, space) for place, space in places for field in place.get("fields", ())]
        name = key
        if not any(field["name"] == key for field, _ in fields):
            name = next((str(field["name"]) for field, _ in fields if key in field.get("aliases", ())), key)
        keys.append(name)
        below = [Definition(field["type"], space) for field, space in fields if field["name"] == name]
        below += [Definition(place["values"], space) for place, space in places if place["type"] == "map"]
        places = [found for one in below for found in _find_branches(one, named)]
    return keys


def _find_branches(place: Definition, named: dict[str, Definition]) -> Iterator[Definition]:
    """Yield the records and maps that a value of a type may be, each with the namespace inside it."""
    schema, namespace = place
    if isinstance(schema, list):
        for one in schema:
            yield from _find_branches(Definition(one, namespace), named)
    elif isinstance(schema, str):
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if schema not in PRIMITIVES and full in named:
            yield from _find_branches(named[full], named)
    elif schema["type"] == "record":
        yield Definition(schema, full_name(schema, namespace).rpartition(".")[0])
    elif schema["type"] == "map":
        yield place
    elif not isinstance(schema["type"], str) or schema["type"] not in {"enum", "fixed", "array"}:
        yield from _find_branches(Definition(schema["type"], namespace), named)
