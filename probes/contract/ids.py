"""Message ids: sixteen bytes on the wire for any id that a team uses, and its kind."""

from __future__ import annotations

import operator
import uuid
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple, SupportsIndex

from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.limits import ID_BYTES

INT_LIMIT: Final = 1 << 128
"""The first integer that sixteen bytes cannot hold."""


class IdError(ValueError):
    """Message id that cannot be encoded in sixteen bytes."""


class WireId(bytes):
    """Sixteen bytes of an encoded id that also carry its kind."""

    __slots__ = ()
    kind: ClassVar[WireIdKind] = WireIdKind.BYTES


class UuidId(WireId):
    """Encoded id from a UUID."""

    __slots__ = ()
    kind = WireIdKind.UUID


class IntId(WireId):
    """Encoded id from an integer."""

    __slots__ = ()
    kind = WireIdKind.INT


class TextId(WireId):
    """Encoded id from a text: its digest, and the text in UTF-8."""

    kind = WireIdKind.TEXT
    text: bytes

    @classmethod
    def from_text(cls, text: str) -> TextId:
        """Return the encoded id of a text."""
        encoded = text.encode("utf-8", "surrogatepass")
        found = cls(hash_text(encoded))
        found.text = encoded
        return found


class EncodedId(NamedTuple):
    """Message id in wire format: its bytes, its kind, and the text in UTF-8 (None unless the id is a text)."""

    wire: bytes
    kind: WireIdKind
    text: bytes | None = None


def hash_text(text: bytes) -> bytes:
    """Return the sixteen-byte digest of a text in UTF-8."""
    return blake2b(text, digest_size=ID_BYTES).digest()


def encode_id(message_id: uuid.UUID | bytes | SupportsIndex | str) -> EncodedId:
    """Return ``message_id`` in wire format.

    A UUID's bytes and 16 raw bytes stay as they are; an integer from 0 to 2^128 - 1 (numpy's, too) becomes 16 bytes
    big-endian; a text becomes the BLAKE2b digest of its UTF-8 form (digest_size 16).

    Raises:
        IdError: the id is negative, too large, of another length or of another type.
    """
    if isinstance(message_id, uuid.UUID):
        return EncodedId(message_id.bytes, WireIdKind.UUID)
    if isinstance(message_id, bytes):
        if len(message_id) != ID_BYTES:
            told = f"a message id in bytes has {ID_BYTES} of them, got {len(message_id)}"
            raise IdError(f"{told}: pass a str to have it hashed")
        kind = message_id.kind if isinstance(message_id, WireId) else WireIdKind.BYTES
        return EncodedId(message_id, kind, message_id.text if isinstance(message_id, TextId) else None)
    if isinstance(message_id, str):
        text = message_id.encode("utf-8", "surrogatepass")
        return EncodedId(hash_text(text), WireIdKind.TEXT, text)
    number: object = message_id  # anything may come from a host, whatever the types say
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        raise IdError(f"a message id is a UUID, 16 bytes, an int or a str, got {type(number).__name__}")
    whole = _to_int(number)
    if not 0 <= whole < INT_LIMIT:
        got = str(whole) if abs(whole) < 1 << 256 else f"one of {whole.bit_length()} bits"
        raise IdError(f"an integer message id lies in 0 … 2^128 - 1, got {got}")
    return EncodedId(whole.to_bytes(ID_BYTES, "big"), WireIdKind.INT)


def id_bytes(message_id: uuid.UUID | bytes | SupportsIndex | str) -> bytes:
    """Return the 16 bytes of ``message_id`` on the wire.

    Raises:
        IdError: it cannot be encoded, as for :func:`encode_id`.
    """
    return encode_id(message_id).wire


def _to_int(number: SupportsIndex) -> int:
    try:
        return operator.index(number)
    except TypeError:  # an array of numpy has the method, and is no number
        got = type(number).__name__
        raise IdError(f"a message id is a UUID, 16 bytes, an int or a str, got {got}") from None
