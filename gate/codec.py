"""Events of one schema: JSON in, the wire's envelope out, and back.

The envelope is that of WIRE.md: one marker byte, the schema's fingerprint, the Avro body. A reader checks that the body
ends where the value does.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import fastavro
import orjson
from pydantic_core import SchemaValidator, ValidationError

from hopwatch.gate.json_reader import build_validator
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, json_pointer

FINGERPRINT_BYTES: Final = 32
PREFIX_BYTES: Final = 1 + FINGERPRINT_BYTES
_LOGICAL_KEYS: Final = frozenset({"logicalType", "precision", "scale"})


class SchemaMismatchError(ValueError):
    """An event that does not fit its schema."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Take all that does not fit, at least one."""
        super().__init__("; ".join(f"{one.place or '/'}: {one.detail}" for one in faults))
        self.faults = faults


class EnvelopeError(ValueError):
    """Bytes that are no event of a schema."""


class Codec:
    """Reads and writes the events of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Build what reads and what writes, once."""
        said = orjson.loads(schema.text)
        self.schema = schema
        self._prefix = bytes([MARKER]) + schema.fingerprint
        self._avro: Any = fastavro.parse_schema(said)
        self._avro_without_logical: Any = fastavro.parse_schema(_strip_logical_types(said))
        self._validator = SchemaValidator(build_validator(self._avro, schema.parsed))

    def encode(self, event: bytes) -> bytes:
        """Return the envelope of an event that is written in JSON.

        Raises:
            MisfitError: it is no JSON, or does not fit the schema; all that is wrong is told.
        """
        return self.encode_value(self.parse_json(event))

    def parse_json(self, event: bytes) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value of an event that is written in JSON, as :meth:`write` takes it.

        Raises:
            MisfitError: it is no JSON, or does not fit the schema; all that is wrong is told.
        """
        try:
            return self._validator.validate_json(event)
        except ValidationError as error:
            raise SchemaMismatchError(tuple(_list_faults(error))) from None

    def encode_value(self, value: Any) -> bytes:  # noqa: ANN401 - as above
        """Return the envelope of a value that was read.

        Raises:
            MisfitError: Avro cannot write it.
        """
        try:
            return encode_envelope(self._prefix, self._avro, value)
        except (ValueError, TypeError, OverflowError) as error:
            raise SchemaMismatchError((Fault("", f"it cannot be written: {error!s:.200}"),)) from None

    def decode(self, record: bytes) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value in an envelope, whose logical types are read as the numbers and bytes below them.

        Raises:
            EnvelopeError: it is of another schema, or its body ends too early or too late.
        """
        if not record.startswith(self._prefix):
            raise EnvelopeError(f"an event begins with {self._prefix.hex()}, got {record[:PREFIX_BYTES].hex()}")
        return decode_envelope(record, self._avro_without_logical, "an event of the schema", "event")


def encode_envelope(prefix: bytes, avro: Any, value: Any) -> bytes:  # noqa: ANN401 - of fastavro
    """Return a value behind the first bytes of its envelope; raises what fastavro does."""
    body = io.BytesIO()
    body.write(prefix)
    fastavro.schemaless_writer(body, avro, value)
    return body.getvalue()


def decode_envelope(record: bytes, avro: Any, expected: str, noun: str) -> Any:  # noqa: ANN401 - as above
    """Return the value in an envelope whose first bytes were looked at; the two texts are for the errors.

    Raises:
        EnvelopeError: the body ends too early or too late.
    """
    body = io.BytesIO(record)
    body.seek(PREFIX_BYTES)
    try:
        value = fastavro.schemaless_reader(body, avro, None)
    except Exception as error:  # noqa: BLE001 - foreign bytes may raise anything there
        raise EnvelopeError(f"{expected} was expected: {error!s:.100}") from None
    if body.tell() != len(record):
        raise EnvelopeError(f"{len(record) - body.tell()} bytes follow the {noun}")
    return value


def parse_fingerprint(record: bytes) -> bytes:
    """Return the fingerprint of the schema that a record was written with.

    Raises:
        EnvelopeError: it is no envelope.
    """
    if len(record) < PREFIX_BYTES or record[0] != MARKER:
        raise EnvelopeError(f"an event begins with {MARKER:02x} and a fingerprint, got {record[:PREFIX_BYTES].hex()}")
    return record[1:PREFIX_BYTES]


def _strip_logical_types(said: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without logical types."""
    if isinstance(said, list):
        return [_strip_logical_types(one) for one in said]
    if not isinstance(said, dict):
        return said
    kept = {name: value for name, value in said.items() if name not in _LOGICAL_KEYS or "logicalType" not in said}
    # Of other types these are words of a stranger, which mean nothing.
    match kept["type"]:
        case "record" | "error":
            return kept | {"fields": [one | {"type": _strip_logical_types(one["type"])} for one in kept["fields"]]}
        case "array":
            return kept | {"items": _strip_logical_types(kept["items"])}
        case "map":
            return kept | {"values": _strip_logical_types(kept["values"])}
        case _:
            return kept | {"type": _strip_logical_types(kept["type"])}


def _list_faults(error: ValidationError) -> Iterator[Fault]:
    for one in error.errors(include_url=False, include_input=False)[:MAX_FAULTS]:
        yield Fault(json_pointer(one["loc"]), str(one["msg"])[:200])
