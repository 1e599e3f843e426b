"""Read a value in Avro from behind its prefix, which names its schema: by the wire, or by Confluent's registry."""

from __future__ import annotations

import io
from typing import Any, Final

import fastavro

FINGERPRINT_BYTES: Final = 32
PREFIX_BYTES: Final = 1 + FINGERPRINT_BYTES
"""Length of the prefix of WIRE.md: its marker and a fingerprint."""
CONFLUENT: Final = 0
"""First byte of a value from Confluent's serializers; the number of its schema follows in four bytes, big-endian."""
CONFLUENT_BYTES: Final = 5


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
