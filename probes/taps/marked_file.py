"""Open file with a read position that detects truncation and replacement of its content."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

MARK_BYTES: Final = 64
"""Bytes before a position that are compared to detect a changed file."""
_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Position:
    """Position in a file; ``mark`` holds the bytes just before it."""

    device: int
    inode: int
    offset: int
    mark: bytes


class MarkedFile:
    """Open file, its read position, and the bytes before this position."""

    def __init__(self, path: Path) -> None:
        """Open the file at its start.

        Raises:
            OSError: it cannot be opened.
        """
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.offset = 0
        self._mark = b""

    def seek(self, position: Position) -> Self:
        """Go to a position."""
        self.offset, self._mark = position.offset, position.mark
        return self

    def seek_last_line(self) -> Self:
        """Go behind the last newline, so that a line that is being written is read whole."""
        start = end = os.fstat(self._file).st_size
        newline = -1
        while newline < 0 and start > 0:
            start, end = max(0, start - _CHUNK_BYTES), start
            newline = os.pread(self._file, end - start, start).rfind(b"\n")
        self.offset = start + newline + 1
        self._mark = self._read_before(self.offset)
        return self

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes, at most ``most_bytes``; none at the end."""
        data = os.pread(self._file, most_bytes, self.offset)
        self.offset += len(data)
        self._mark = (self._mark + data[-MARK_BYTES:])[-MARK_BYTES:]
        return data

    def is_unchanged(self) -> bool:
        """Return whether the bytes before the position are unchanged; false after a truncation."""
        return len(self._mark) == min(MARK_BYTES, self.offset) and self._read_before(self.offset) == self._mark

    def has_name(self, path: Path) -> bool | None:
        """Return whether a path is this file; None if the path does not exist."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return self.is_inode(found.st_dev, found.st_ino)

    def is_inode(self, device: int, inode: int) -> bool:
        """Return whether this is the file of a device and an inode."""
        here = os.fstat(self._file)
        return (here.st_dev, here.st_ino) == (device, inode)

    def position(self, unread_bytes: int = 0) -> Position:
        """Return the position ``unread_bytes`` before the end of the last read."""
        here = os.fstat(self._file)
        offset = self.offset - unread_bytes
        mark = self._read_before(offset) if unread_bytes else self._mark
        return Position(here.st_dev, here.st_ino, offset, mark)

    @property
    def written_ns(self) -> int:
        """Return the time of the last write, ns since 1970."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _read_before(self, offset: int) -> bytes:
        return os.pread(self._file, min(MARK_BYTES, offset), max(0, offset - MARK_BYTES))
