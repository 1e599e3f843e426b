"""The bytes of an Avro body: numbers, texts and blocks as the specification has them, and nothing that it has not.

Whatever stands there, nothing is allocated that the bytes at hand do not pay for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from hopwatch.probes.http.problems import pointer

MOST_DEFAULTS_BYTES: Final = 1024 * 1024
"""What the defaults of one event amount to at most, about: a few bytes may stand for many records that lack fields."""
_MOST_DECIMAL_BYTES: Final = 1_024
_INT: Final = range(-(2**31), 2**31)
_LAST_SHIFT: Final = 63
_MORE: Final = 0x80


class UnresolvableError(ValueError):
    """Two schemas of which one cannot read what the other wrote; ``place`` is a JSON pointer into an event."""

    def __init__(self, detail: str, *way: str | int) -> None:
        """Keep the way to the place."""
        super().__init__(detail)
        self.way = list(way)

    @property
    def place(self) -> str:
        """Where in an event."""
        return pointer(self.way)


class UnreadableError(UnresolvableError):
    """A body that is none of its schema's, or holds what the reader has no place for."""


class Body:
    """Bytes that are read, how far one has come, and what is left for defaults."""

    __slots__ = ("at", "data", "left")

    def __init__(self, data: bytes, at: int) -> None:
        """Begin at a place."""
        self.data, self.at, self.left = data, at, MOST_DEFAULTS_BYTES

    def take(self, size: int) -> bytes:
        """Return so many bytes, and go on behind them.

        Raises:
            UnreadableError: there are not so many.
        """
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise UnreadableError(f"{size} bytes were expected, {len(self.data) - self.at} are left")
        found, self.at = self.data[self.at : end], end
        return found


Read = Callable[[Body], Any]
"""Reads a value and goes on behind it; raises UnreadableError, or what an end that comes too early raises."""


def long(body: Body) -> int:
    """Return a number in zigzag and parts of seven bits."""
    data, at = body.data, body.at
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
    body.at = at
    return (found >> 1) ^ -(found & 1)


def integer(body: Body) -> int:
    """Return a number of 32 bits."""
    found = long(body)
    if found not in _INT:
        raise UnreadableError(f"an int has 32 bits, got {found}")
    return found


def boolean(body: Body) -> bool:
    """Return a boolean."""
    byte = body.data[body.at]
    if byte > 1:
        raise UnreadableError(f"a boolean is 0 or 1, got {byte}")
    body.at += 1
    return bool(byte)


def real(form: str, size: int) -> Read:
    """Return what reads a float or a double, by its form for :mod:`struct`."""
    unpack = struct.Struct(form).unpack_from

    def read(body: Body) -> float:
        (found,) = unpack(body.data, body.at)
        body.at += size
        return float(found)

    return read


def octets(body: Body) -> bytes:
    """Return bytes behind their length."""
    return body.take(long(body))


def text(body: Body) -> str:
    """Return a text behind its length in bytes."""
    try:
        return body.take(long(body)).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableError("a text is UTF-8") from None


def blocks(body: Body) -> int:
    """Return how many items come next; each has a byte at least."""
    count = long(body)
    if count < 0:
        count = -count
        long(body)
    if count > len(body.data) - body.at:
        raise UnreadableError(f"{count} items were expected, {len(body.data) - body.at} bytes are left")
    return count


def decimal_of(data: bytes, said: Any) -> Decimal:  # noqa: ANN401 - properties of a schema
    """Return the decimal that bytes are."""
    unscaled = int.from_bytes(data, "big", signed=True) if len(data) <= _MOST_DECIMAL_BYTES else None
    if unscaled is None or len(digits := str(abs(unscaled))) > said["precision"]:
        raise UnreadableError(f"a decimal has at most {said['precision']} digits")
    return Decimal((int(unscaled < 0), tuple(map(int, digits)), -int(said.get("scale") or 0)))
