"""Bounded reader of Avro bodies: a cursor over a buffer that never leaves the record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from mmap import mmap
from typing import Final, NamedTuple

_VARINT_BYTES: Final = 10
_LONGER: Final = 0x81
"""Bits of the first byte of a zigzag varint; none of them is set if it is the only byte of a number from 0."""

Buffer = bytes | mmap
"""Buffer that records are read from: bytes in memory, or a mapped file."""


class RecordError(ValueError):
    """Record that breaks WIRE.md; ``reason`` is a short name, the message tells the value that was read."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep the short name beside the sentence."""
        super().__init__(message)
        self.reason = reason


class ByteSpan(NamedTuple):
    """Position of a packed field in the buffer: bytes ``start`` to ``end``."""

    start: int
    end: int


class BodyCursor:
    """Cursor over an Avro body; no read goes beyond its end."""

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: Buffer, position: int, end: int) -> None:
        """Start at a position of the buffer."""
        self.buffer = buffer
        self.position = position
        self.end = end

    def read_long(self) -> int:
        """Read a zigzag varint of at most 64 bits."""
        buffer, position, value, shift = self.buffer, self.position, 0, 0
        # Most numbers are lengths of texts, of one byte.
        if position < self.end and (byte := buffer[position]) < 0x80:  # noqa: PLR2004 - the varint's own continuation bit
            self.position = position + 1
            return (byte >> 1) ^ -(byte & 1)
        stop = min(self.end, position + _VARINT_BYTES)
        while position < stop:
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the varint's own continuation bit
                self.position = position
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1)
            shift += 7
        reason = "truncated" if position >= self.end else "malformed"
        raise RecordError(reason, f"no whole number of at most 64 bits at byte {self.position} of the buffer")

    def read_span(self) -> ByteSpan:
        """Read a length, and skip that many bytes."""
        length = self.read_long()
        start = self.position
        if not 0 <= length <= self.end - start:
            raise RecordError("truncated", f"a field of {length} bytes starts where {self.end - start} are left")
        self.position = start + length
        return ByteSpan(start, self.position)

    def read_text(self, what: str, most_chars: int, least_chars: int = 0) -> str:
        """Read a string within its bounds."""
        start, end = self.read_span()
        if end - start > 4 * most_chars:
            raise RecordError("bad_length", f"a {what} has at most {most_chars} characters, got {end - start} bytes")
        try:
            text = str(self.buffer[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise RecordError("malformed", f"a {what} is not UTF-8: {error.reason}") from None
        if not least_chars <= len(text) <= most_chars:
            raise RecordError("bad_length", f"a {what} has {least_chars} to {most_chars} characters, got {len(text)}")
        return text

    def iter_items(self, what: str, most: int) -> Iterator[None]:
        """Yield once for each item of an Avro array or map, block by block, never more than ``most`` times."""
        seen = 0
        while count := self.read_long():
            if count < 0:
                # A negative count is followed by the block's size in bytes, which only a reader that skips needs.
                count = -count
                self.read_long()
            seen += count
            if seen > most:
                raise RecordError("bad_length", f"{what} has at most {most} items, got {seen} or more")
            yield from repeat(None, count)

    def find_map_end(self) -> int | None:
        """Return where an Avro map of texts ends that begins here; None if that needs a closer look.

        That is where it is not one block of texts of less than 64 bytes, or not within the body.
        """
        buffer, position, end = self.buffer, self.position + 1, self.end
        if position > end or (texts := buffer[position - 1]) & _LONGER:
            return None
        # The number of items is zigzag, and so that of their texts.
        for _ in range(texts):
            if position >= end or (size := buffer[position]) & _LONGER:
                return None
            position += 1 + (size >> 1)
        if not texts:
            return position
        return position + 1 if position < end and not buffer[position] else None
