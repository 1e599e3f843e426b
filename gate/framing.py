"""What stands before the body of a value in a topic, and so which schema wrote it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.gate.codec import PREFIX_BYTES
from hopwatch.probes.contract.envelope import MARKER

CONFLUENT: Final = 0
"""The first byte of a value as Confluent's serializers write it; the number of its schema follows, big-endian."""
_NUMBER_END: Final = 5

Writer = bytes | int
"""A schema, by its fingerprint or by its number in the registry."""


class Framing(StrEnum):
    """How the values of a topic are framed; with ``auto`` the first byte of each tells, as no JSON begins with it."""

    AUTO = "auto"
    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    JSON = "json"


class Framed(NamedTuple):
    """A value in Avro: the schema that wrote it, and where its body begins."""

    writer: Writer
    at: int


def framed(value: bytes, framing: Framing) -> Framed | None:
    """Return how a value is framed; None of one that is JSON.

    Raises:
        ValueError: it is framed in no such way.
    """
    if framing is Framing.AUTO:
        framing = _told_by(value)
    match framing:
        case Framing.FINGERPRINT:
            if len(value) < PREFIX_BYTES or value[0] != MARKER:
                raise ValueError(
                    f"a value begins with {MARKER:02x} and a fingerprint, got {value[:PREFIX_BYTES].hex()}"
                )
            return Framed(value[1:PREFIX_BYTES], PREFIX_BYTES)
        case Framing.CONFLUENT:
            if len(value) < _NUMBER_END or value[0] != CONFLUENT:
                raise ValueError(f"a value begins with 00 and the number of a schema, got {value[:_NUMBER_END].hex()}")
            return Framed(int.from_bytes(value[1:_NUMBER_END]), _NUMBER_END)
        case _:
            return None


def _told_by(value: bytes) -> Framing:
    first = value[0] if value else None
    return {MARKER: Framing.FINGERPRINT, CONFLUENT: Framing.CONFLUENT}.get(first, Framing.JSON)  # type: ignore[arg-type]
