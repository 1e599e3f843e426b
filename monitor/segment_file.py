"""Safe reader of segment files: regular files only, checked by their first bytes, with a bound on memory.

Whatever else bears a segment's name (a named pipe, a link into nowhere, a file that is gone or may not be read) is told
as a fault and raises nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from hopwatch.probes.contract.segment import MAGIC, MAX_SEGMENT_BYTES

MAX_BYTES: Final = 8 * MAX_SEGMENT_BYTES
"""More than any probe writes into one: it ends a segment with the record that makes it ``MAX_SEGMENT_BYTES`` long."""
FOREIGN_FILE: Final = "foreign_file"
OVERSIZED: Final = "oversized"
UNREADABLE_FILE: Final = "unreadable_file"
_PROCESS_LIMITS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that do not concern the file: the process or its machine lacks resources."""
_IS_REGULAR: Final = "a segment is a regular file, got another kind"


class SegmentFile(NamedTuple):
    """A file's bytes, its size and its arrival time, which is its last change; or why nothing of it was read."""

    data: bytes
    size: int
    arrival_us: int
    fault: str = ""
    message: str = ""


def read_segment_file(path: str, most_bytes: int = MAX_BYTES) -> SegmentFile:
    """Return what a file holds, if it is a segment.

    Of one that cannot even be looked at the arrival is the last change of the nearest folder that is there.

    Raises:
        OSError: this process has too many files open, or too little memory.
    """
    try:
        descriptor = open_segment_file(path)
        try:
            return _read_content(descriptor, most_bytes)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _PROCESS_LIMITS:
            raise
        return _unreadable(path, error)


def open_segment_file(path: str) -> int:
    """Return a descriptor of a file, without waiting for the writer of a named pipe.

    Raises:
        OSError: it cannot be opened.
    """
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _read_content(descriptor: int, most_bytes: int) -> SegmentFile:
    status = os.fstat(descriptor)
    arrival_us = status.st_mtime_ns // 1_000
    if not stat.S_ISREG(status.st_mode):
        return SegmentFile(b"", 0, arrival_us, FOREIGN_FILE, _IS_REGULAR)
    start = os.pread(descriptor, len(MAGIC), 0)
    if start != MAGIC:
        what = f"a segment starts with {MAGIC!r}, got {start!r}"
        return SegmentFile(b"", status.st_size, arrival_us, FOREIGN_FILE, what)
    if status.st_size > most_bytes:
        what = f"a segment has at most {most_bytes} bytes, got {status.st_size}"
        return SegmentFile(b"", status.st_size, arrival_us, OVERSIZED, what)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        # What is asked for is taken from memory at once. The file may have grown since.
        return SegmentFile(file.read(status.st_size), status.st_size, arrival_us)


def _unreadable(path: str, error: OSError) -> SegmentFile:
    what = f"the file cannot be read: {error.strerror}"
    for place in (Path(path), *Path(path).parents):
        try:
            changed_us = place.lstat().st_mtime_ns // 1_000
        except OSError:
            continue
        return SegmentFile(b"", 0, changed_us, UNREADABLE_FILE, what)
    return SegmentFile(b"", 0, 0, UNREADABLE_FILE, what)
