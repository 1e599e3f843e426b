"""Message ids: whatever a team calls a message, sixteen bytes on the wire."""

from __future__ import annotations

import uuid
from hashlib import blake2b

from probes.contract.limits import ID_BYTES


class IdError(ValueError):
    """A message id that has no sixteen-byte form."""


def id_bytes(message_id: uuid.UUID | bytes | int | str) -> bytes:
    """Return the 16 bytes that stand for ``message_id`` on the wire.

    A UUID's bytes and 16 raw bytes stay as they are, an integer from 0 to 2^128 - 1 becomes 16 bytes big-endian,
    any text the BLAKE2b digest of its UTF-8 form (digest_size 16).

    Raises:
        IdError: the id is negative, too large, of another length or of another type.
    """
    if isinstance(message_id, uuid.UUID):
        return message_id.bytes
    if isinstance(message_id, bytes):
        if len(message_id) != ID_BYTES:
            told = f"a message id in bytes has {ID_BYTES} of them, got {len(message_id)}"
            raise IdError(f"{told}: pass a str to have it hashed")
        return message_id
    if isinstance(message_id, str):
        return blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).digest()
    number: object = message_id  # anything may come from a host, whatever the types say
    if isinstance(number, bool) or not isinstance(number, int):
        raise IdError(f"a message id is a UUID, 16 bytes, an int or a str, got {type(number).__name__}")
    if not 0 <= number < 1 << 128:
        got = str(number) if abs(number) < 1 << 256 else f"one of {number.bit_length()} bits"
        raise IdError(f"an integer message id lies in 0 … 2^128 - 1, got {got}")
    return number.to_bytes(ID_BYTES, "big")
