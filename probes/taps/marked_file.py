"""An open file, read from a place on, that notices when it is no longer the file that was read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

MARK_BYTES: Final = 64
"""So many bytes before a position tell that the file is still the one that was read."""
_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a file was read; ``mark`` is what stood just before."""

    device: int
    inode: int
    offset: int
    mark: bytes


class MarkedFile:
    """A file, the place up to where it was read, and the bytes before this place."""

    def __init__(self, path: Path) -> None:
        """Open it at its start.

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
        """Go behind the last newline: the line that is being written now will come whole."""
        start = end = os.fstat(self._file).st_size
        newline = -1
        while newline < 0 and start > 0:
            start, end = max(0, start - _CHUNK_BYTES), start
            newline = os.pread(self._file, end - start, start).rfind(b"\n")
        self.offset = start + newline + 1
        self._mark = self._read_before(self.offset)
        return self

    def read(self, most_bytes: int) -> bytes:
        """Return what follows, at most so many bytes; none at the end."""
        data = os.pread(self._file, most_bytes, self.offset)
        self.offset += len(data)
        self._mark = (self._mark + data[-MARK_BYTES:])[-MARK_BYTES:]
        return data

    def is_unchanged(self) -> bool:
        """Whether what stands before the place is what stood there; of a file that was truncated it is not."""
        return len(self._mark) == min(MARK_BYTES, self.offset) and self._read_before(self.offset) == self._mark

    def has_name(self, path: Path) -> bool | None:
        """Whether it is the file of this name; None when there is no such name."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return self.is_inode(found.st_dev, found.st_ino)

    def is_inode(self, device: int, inode: int) -> bool:
        """Whether it is this very file."""
        here = os.fstat(self._file)
        return (here.st_dev, here.st_ino) == (device, inode)

    def position(self, unread_bytes: int = 0) -> Position:
        """Return the place so many bytes before the last one that was read."""
        here = os.fstat(self._file)
        offset = self.offset - unread_bytes
        mark = self._read_before(offset) if unread_bytes else self._mark
        return Position(here.st_dev, here.st_ino, offset, mark)

    @property
    def written_ns(self) -> int:
        """When it was last written to."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)

    def _read_before(self, offset: int) -> bytes:
        return os.pread(self._file, min(MARK_BYTES, offset), max(0, offset - MARK_BYTES))
