"""Codec of the events of one schema: encode JSON into the wire's envelope, and decode it.

The envelope is that of WIRE.md: one marker byte, the schema's fingerprint, the Avro body. Decoding checks that no bytes
follow the value.
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
from hopwatch.probes.avro_reader import PREFIX_BYTES, read_value
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, json_pointer

_LOGICAL_KEYS: Final = frozenset({"logicalType", "precision", "scale"})


class SchemaMismatchError(ValueError):
    """Event that does not match its schema."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Take all mismatches, at least one."""
        super().__init__("; ".join(f"{one.place or '/'}: {one.detail}" for one in faults))
        self.faults = faults


class EnvelopeError(ValueError):
    """Bytes that are not a valid envelope of the expected schema."""


class Codec:
    """Encode and decode the events of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Build the validator and the Avro writer, once."""
        said = orjson.loads(schema.text)
        self.schema = schema
        self._prefix = bytes([MARKER]) + schema.fingerprint
        self._avro: Any = fastavro.parse_schema(said)
        self._avro_without_logical: Any = fastavro.parse_schema(strip_logical_types(said))
        self._validator = SchemaValidator(build_validator(self._avro, schema.parsed))

    def encode(self, event: bytes) -> bytes:
        """Return the envelope of an event in JSON.

        Raises:
            SchemaMismatchError: it is not JSON, or does not match the schema; lists all faults.
        """
        return self.encode_value(self.parse_json(event))

    def parse_json(self, event: bytes) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value of an event in JSON, as :meth:`encode_value` takes it.

        Raises:
            SchemaMismatchError: it is not JSON, or does not match the schema; lists all faults.
        """
        try:
            return self._validator.validate_json(event)
        except ValidationError as error:
            raise SchemaMismatchError(tuple(_list_faults(error))) from None

    def encode_value(self, value: Any) -> bytes:  # noqa: ANN401 - as above
        """Return the envelope of a value that :meth:`parse_json` or a resolution returned.

        Raises:
            SchemaMismatchError: Avro cannot write it.
        """
        try:
            return encode_envelope(self._prefix, self._avro, value)
        except (ValueError, TypeError, OverflowError) as error:
            raise SchemaMismatchError((Fault("", f"it cannot be written: {error!s:.200}"),)) from None

    def decode(self, record: bytes) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value in an envelope; logical types are returned as their underlying numbers, texts and bytes.

        Raises:
            EnvelopeError: it has another schema, or its body is too short or too long.
        """
        if not record.startswith(self._prefix):
            raise EnvelopeError(f"an event begins with {self._prefix.hex()}, got {record[:PREFIX_BYTES].hex()}")
        return decode_envelope(record, self._avro_without_logical, "an event of the schema", "event")


def encode_envelope(prefix: bytes, avro: Any, value: Any) -> bytes:  # noqa: ANN401 - of fastavro
    """Return the prefix followed by the Avro body of a value; fastavro's exceptions are passed on."""
    body = io.BytesIO()
    body.write(prefix)
    fastavro.schemaless_writer(body, avro, value)
    return body.getvalue()


def decode_envelope(record: bytes, avro: Any, expected: str, noun: str) -> Any:  # noqa: ANN401 - as above
    """Return the value in an envelope whose prefix was checked; ``expected`` and ``noun`` are for the error texts.

    Raises:
        EnvelopeError: the body is too short or too long.
    """
    try:
        return read_value(record, PREFIX_BYTES, avro, expected, noun)
    except ValueError as error:
        raise EnvelopeError(str(error)) from None


def parse_fingerprint(record: bytes) -> bytes:
    """Return the fingerprint of the schema that a record was written with.

    Raises:
        EnvelopeError: it is not an envelope.
    """
    if len(record) < PREFIX_BYTES or record[0] != MARKER:
        raise EnvelopeError(f"an event begins with {MARKER:02x} and a fingerprint, got {record[:PREFIX_BYTES].hex()}")
    return record[1:PREFIX_BYTES]


def strip_logical_types(said: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without logical types."""
    if isinstance(said, list):
        return [strip_logical_types(one) for one in said]
    if not isinstance(said, dict):
        return said
    kept = {name: value for name, value in said.items() if name not in _LOGICAL_KEYS or "logicalType" not in said}
    # Without a logicalType, precision and scale are custom attributes without meaning.
    match kept["type"]:
        case "record" | "error":
            return kept | {"fields": [one | {"type": strip_logical_types(one["type"])} for one in kept["fields"]]}
        case "array":
            return kept | {"items": strip_logical_types(kept["items"])}
        case "map":
            return kept | {"values": strip_logical_types(kept["values"])}
        case _:
            return kept | {"type": strip_logical_types(kept["type"])}


def _list_faults(error: ValidationError) -> Iterator[Fault]:
    for one in error.errors(include_url=False, include_input=False)[:MAX_FAULTS]:
        yield Fault(json_pointer(one["loc"]), str(one["msg"])[:200])
