"""Framing of the values in a topic: the prefix before the body, which names the writer's schema."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from hopwatch.probes.avro_reader import CONFLUENT, CONFLUENT_BYTES, PREFIX_BYTES
from hopwatch.probes.contract.envelope import MARKER

SchemaRef = bytes | int
"""Reference to a schema: its fingerprint, or its number in the registry."""


class ValueFraming(StrEnum):
    """Framing of the values of a topic; ``auto`` detects it by the first byte of each, which no JSON begins with."""

    AUTO = "auto"
    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    JSON = "json"


class FramedValue(NamedTuple):
    """Avro value: the writer's schema, and the offset of the body."""

    writer: SchemaRef
    body_start: int


def parse_frame(value: bytes, framing: ValueFraming) -> FramedValue | None:
    """Return the writer's schema and the offset of the body; None for JSON.

    Raises:
        ValueError: the value does not have this framing.
    """
    if framing is ValueFraming.AUTO:
        framing = _detect_framing(value)
    match framing:
        case ValueFraming.FINGERPRINT:
            if len(value) < PREFIX_BYTES or value[0] != MARKER:
                raise ValueError(
                    f"a value begins with {MARKER:02x} and a fingerprint, got {value[:PREFIX_BYTES].hex()}"
                )
            return FramedValue(value[1:PREFIX_BYTES], PREFIX_BYTES)
        case ValueFraming.CONFLUENT:
            if len(value) < CONFLUENT_BYTES or value[0] != CONFLUENT:
                raise ValueError(
                    f"a value begins with 00 and the number of a schema, got {value[:CONFLUENT_BYTES].hex()}"
                )
            return FramedValue(int.from_bytes(value[1:CONFLUENT_BYTES]), CONFLUENT_BYTES)
        case _:
            return None


def _detect_framing(value: bytes) -> ValueFraming:
    first = value[0] if value else None
    return {MARKER: ValueFraming.FINGERPRINT, CONFLUENT: ValueFraming.CONFLUENT}.get(first, ValueFraming.JSON)  # type: ignore[arg-type]
