"""Framing of the values in a topic: the prefix before the body, which names the writer's schema."""

from __future__ import annotations

from enum import StrEnum

from hopwatch.probes.avro_reader import CONFLUENT, FramedValue, parse_confluent_frame, parse_fingerprint_frame
from hopwatch.probes.contract.envelope import MARKER


class ValueFraming(StrEnum):
    """Framing of the values of a topic; ``auto`` detects it by the first byte of each, which no JSON begins with."""

    AUTO = "auto"
    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    JSON = "json"


def parse_frame(value: bytes, framing: ValueFraming) -> FramedValue | None:
    """Return the writer's schema and the offset of the body; None for JSON.

    Raises:
        ValueError: the value does not have this framing.
    """
    if framing is ValueFraming.AUTO:
        framing = _detect_framing(value)
    match framing:
        case ValueFraming.FINGERPRINT:
            return parse_fingerprint_frame(value)
        case ValueFraming.CONFLUENT:
            return parse_confluent_frame(value)
        case _:
            return None


def _detect_framing(value: bytes) -> ValueFraming:
    first = value[0] if value else None
    return {MARKER: ValueFraming.FINGERPRINT, CONFLUENT: ValueFraming.CONFLUENT}.get(first, ValueFraming.JSON)  # type: ignore[arg-type]
