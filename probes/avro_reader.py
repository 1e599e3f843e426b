"""Read a value in Avro from behind its prefix, which names its schema: by the wire, or by Confluent's registry."""

from __future__ import annotations

import io
from typing import Any, Final, NamedTuple

import fastavro

from hopwatch.probes.contract.envelope import MARKER

FINGERPRINT_BYTES: Final = 32
PREFIX_BYTES: Final = 1 + FINGERPRINT_BYTES
"""Length of the prefix of WIRE.md: its marker and a fingerprint."""
CONFLUENT: Final = 0
"""First byte of a value from Confluent's serializers; the number of its schema follows in four bytes, big-endian."""
CONFLUENT_BYTES: Final = 5
SchemaRef = bytes | int
"""Reference to a schema: its fingerprint, or its number in a registry."""


class FramedValue(NamedTuple):
    """Avro value: the writer's schema, and the offset of the body."""

    writer: SchemaRef
    body_start: int


def parse_fingerprint_frame(value: bytes) -> FramedValue:
    """Return the writer's schema and the offset of the body of a value in the envelope of WIRE.md.

    Raises:
        ValueError: the value does not have this framing.
    """
    if len(value) < PREFIX_BYTES or value[0] != MARKER:
        raise ValueError(f"a value begins with {MARKER:02x} and a fingerprint, got {value[:PREFIX_BYTES].hex()}")
    return FramedValue(value[1:PREFIX_BYTES], PREFIX_BYTES)


def parse_confluent_frame(value: bytes) -> FramedValue:
    """Return the writer's schema and the offset of the body of a value from Confluent's serializers.

    Raises:
        ValueError: the value does not have this framing.
    """
    if len(value) < CONFLUENT_BYTES or value[0] != CONFLUENT:
        raise ValueError(f"a value begins with 00 and the number of a schema, got {value[:CONFLUENT_BYTES].hex()}")
    return FramedValue(int.from_bytes(value[1:CONFLUENT_BYTES]), CONFLUENT_BYTES)


def read_value(data: bytes, start: int, schema: Any, expected: str, noun: str) -> Any:  # noqa: ANN401 - of fastavro
    """Return the value that begins at ``start`` and ends with the data; two words are for the texts of errors.

    Raises:
        ValueError: the data is too short or too long, or is no such value.
    """
    body = io.BytesIO(data)
    body.seek(start)
    try:
        value = fastavro.schemaless_reader(body, schema, None)
    except Exception as error:  # noqa: BLE001 - untrusted bytes may raise anything there
        raise ValueError(f"{expected} was expected: {error!s:.100}") from None
    if body.tell() != len(data):
        raise ValueError(f"{len(data) - body.tell()} bytes follow the {noun}")
    return value
