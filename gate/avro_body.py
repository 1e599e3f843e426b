"""The bytes of an Avro body: numbers, texts and blocks as the specification has them, and nothing that it has not.

Whatever stands there, nothing is allocated that the bytes at hand do not pay for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from hopwatch.probes.http.problems import json_pointer

MAX_DEFAULTS_BYTES: Final = 1024 * 1024
"""What the defaults of one event amount to at most, about: a few bytes may stand for many records that lack fields."""
_MAX_DECIMAL_BYTES: Final = 1_024
_INT: Final = range(-(2**31), 2**31)
_LAST_SHIFT: Final = 63
_MORE: Final = 0x80


class ResolutionError(ValueError):
    """Two schemas of which one cannot read what the other wrote; ``place`` is a JSON pointer into an event."""

    def __init__(self, detail: str, *way: str | int) -> None:
        """Keep the way to the place."""
        super().__init__(detail)
        self.path = list(way)

    @property
    def place(self) -> str:
        """JSON pointer to the field in the event."""
        return json_pointer(self.path)


class UnreadableError(ResolutionError):
    """A body that is none of its schema's, or holds what the reader has no place for."""


class AvroInput:
    """Bytes that are read, how far one has come, and what is left for defaults."""

    __slots__ = ("data", "defaults_bytes_left", "position")

    def __init__(self, data: bytes, at: int) -> None:
        """Begin at a place."""
        self.data, self.position, self.defaults_bytes_left = data, at, MAX_DEFAULTS_BYTES

    def read(self, size: int) -> bytes:
        """Return so many bytes, and go on behind them.

        Raises:
            UnreadableError: there are not so many.
        """
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise UnreadableError(f"{size} bytes were expected, {len(self.data) - self.position} are left")
        found, self.position = self.data[self.position : end], end
        return found


ReadValue = Callable[[AvroInput], Any]
"""Reads a value and goes on behind it; raises UnreadableError, or what an end that comes too early raises."""


def read_long(body: AvroInput) -> int:
    """Return a number in zigzag and parts of seven bits."""
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
    """Return a number of 32 bits."""
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
    """Return what reads a float or a double, by its form for :mod:`struct`."""
    unpack = struct.Struct(form).unpack_from

    def read(body: AvroInput) -> float:
        (found,) = unpack(body.data, body.position)
        body.position += size
        return float(found)

    return read


def read_bytes(body: AvroInput) -> bytes:
    """Return bytes behind their length."""
    return body.read(read_long(body))


def read_text(body: AvroInput) -> str:
    """Return a text behind its length in bytes."""
    try:
        return body.read(read_long(body)).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableError("a text is UTF-8") from None


def read_block_count(body: AvroInput) -> int:
    """Return how many items come next; each has a byte at least."""
    count = read_long(body)
    if count < 0:
        count = -count
        read_long(body)
    if count > len(body.data) - body.position:
        raise UnreadableError(f"{count} items were expected, {len(body.data) - body.position} bytes are left")
    return count


def build_decimal(data: bytes, said: Any) -> Decimal:  # noqa: ANN401 - properties of a schema
    """Return the decimal that bytes are."""
    unscaled = int.from_bytes(data, "big", signed=True) if len(data) <= _MAX_DECIMAL_BYTES else None
    if unscaled is None or len(digits := str(abs(unscaled))) > said["precision"]:
        raise UnreadableError(f"a decimal has at most {said['precision']} digits")
    return Decimal((int(unscaled < 0), tuple(map(int, digits)), -int(said.get("scale") or 0)))
