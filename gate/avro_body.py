"""Strict reader of Avro's binary encoding: numbers, texts, bytes and block counts, as the specification defines them.

Memory is bounded for any input: a length beyond the bytes that are left is refused before anything is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from hopwatch.probes.http.problems import json_pointer

MAX_DEFAULTS_BYTES: Final = 1024 * 1024
"""Approximate maximum size of the defaults in one event: few bytes may encode many records with missing fields."""
_MAX_DECIMAL_BYTES: Final = 1_024
_INT: Final = range(-(2**31), 2**31)
_LAST_SHIFT: Final = 63
_MORE: Final = 0x80


class ResolutionError(ValueError):
    """Reader and writer schema that cannot be resolved; ``place`` is a JSON pointer into an event."""

    def __init__(self, detail: str, *way: str | int) -> None:
        """Keep the path to the place."""
        super().__init__(detail)
        self.path = list(way)

    @property
    def place(self) -> str:
        """JSON pointer to the field in the event."""
        return json_pointer(self.path)


class UnreadableError(ResolutionError):
    """Body that is invalid for its schema, or holds a value that the reader's schema cannot represent."""


class AvroInput:
    """Cursor over the bytes of a body, with the bytes that are left for defaults."""

    __slots__ = ("data", "defaults_bytes_left", "position")

    def __init__(self, data: bytes, at: int) -> None:
        """Begin at an offset."""
        self.data, self.position, self.defaults_bytes_left = data, at, MAX_DEFAULTS_BYTES

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes and advance.

        Raises:
            UnreadableError: fewer bytes are left.
        """
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise UnreadableError(f"{size} bytes were expected, {len(self.data) - self.position} are left")
        found, self.position = self.data[self.position : end], end
        return found


ReadValue = Callable[[AvroInput], Any]
"""Reads one value and advances; raises UnreadableError, or IndexError or struct.error at a premature end."""


def read_long(body: AvroInput) -> int:
    """Return a long: a zigzag varint of at most 64 bits."""
    data, at = body.data, body.position
    byte = data[at]
    at += 1
    found, shift = byte & 0x7F, 7
    while byte >= _MORE:
        byte = data[at]
        at += 1
        if shift == _LAST_SHIFT and byte > 1:
            raise UnreadableError("a number has at most 64 bits")
        found |= (byte & 0x7F) << shift
        shift += 7
    body.position = at
    return (found >> 1) ^ -(found & 1)


def read_int(body: AvroInput) -> int:
    """Return an int of 32 bits."""
    found = read_long(body)
    if found not in _INT:
        raise UnreadableError(f"an int has 32 bits, got {found}")
    return found


def read_boolean(body: AvroInput) -> bool:
    """Return a boolean."""
    byte = body.data[body.position]
    if byte > 1:
        raise UnreadableError(f"a boolean is 0 or 1, got {byte}")
    body.position += 1
    return bool(byte)


def build_real_reader(form: str, size: int) -> ReadValue:
    """Return the reader of a float or a double, by its format for :mod:`struct`."""
    unpack = struct.Struct(form).unpack_from

    def read(body: AvroInput) -> float:
        (found,) = unpack(body.data, body.position)
        body.position += size
        return float(found)

    return read


def read_bytes(body: AvroInput) -> bytes:
    """Return a length-prefixed byte string."""
    return body.read(read_long(body))


def read_text(body: AvroInput) -> str:
    """Return a length-prefixed UTF-8 text."""
    try:
        return body.read(read_long(body)).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableError("a text is UTF-8") from None


def read_block_count(body: AvroInput) -> int:
    """Return the number of items in the next block; each item has at least one byte."""
    count = read_long(body)
    if count < 0:
        count = -count
        read_long(body)
    if count > len(body.data) - body.position:
        raise UnreadableError(f"{count} items were expected, {len(body.data) - body.position} bytes are left")
    return count


def build_decimal(data: bytes, said: Any) -> Decimal:  # noqa: ANN401 - properties of a schema
    """Return the decimal that two's-complement bytes encode."""
    unscaled = int.from_bytes(data, "big", signed=True) if len(data) <= _MAX_DECIMAL_BYTES else None
    if unscaled is None or len(digits := str(abs(unscaled))) > said["precision"]:
        raise UnreadableError(f"a decimal has at most {said['precision']} digits")
    return Decimal((int(unscaled < 0), tuple(map(int, digits)), -int(said.get("scale") or 0)))
