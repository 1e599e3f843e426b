"""A spool: segments of records in a folder of this probe instance, whole or not there.

A segment is written under a name that no reader looks at, synced, and renamed when it is 8 MiB large or a second old.
"""

from __future__ import annotations

import os
import re
import time
from hashlib import blake2b
from pathlib import Path
from typing import Final

from probes.contract.segment import MAGIC, MAX_SEGMENT_BYTES, OPEN_SUFFIX, SEGMENT_SUFFIX, frame

SEGMENT_AGE_S: Final = 1.0
MOST_BYTES: Final = 256 * 1024 * 1024
"""How much of the disk one probe instance may fill, segments included that the monitor has not deleted yet."""
RETRY_S: Final = 1.0
"""How long a spool that failed is left alone: a host must not pay for a full disk at every flush."""


class SpoolSink:
    """Writes the segments of one probe instance below ``root``."""

    def __init__(self, root: Path, instance: str, *, most_bytes: int = MOST_BYTES) -> None:
        """Name the place; nothing is touched before the first record."""
        self.folder = root / folder_name(instance)
        self.most_bytes = most_bytes
        self._file: int | None = None
        self._path = self.folder
        self._number = 0
        self._bytes = 0
        self._since_s = 0.0
        self._failed_s = float("-inf")
        self._kept_bytes = 0

    def send(self, record: bytes) -> bool:
        """Append a record to the open segment; False when the spool is full or cannot be written."""
        framed = frame(record)
        try:
            if self._file is None and not self._open(len(framed)):
                return False
            if self._kept_bytes + self._bytes + len(framed) > self.most_bytes:
                return False
            self._append(framed)
        except OSError:
            self._failed_s = time.monotonic()
            return False
        if self._bytes >= MAX_SEGMENT_BYTES:
            self._publish()
        return True

    def tick(self) -> None:
        """Publish the open segment once it is old enough."""
        if self._file is not None and time.monotonic() - self._since_s >= SEGMENT_AGE_S:
            self._publish()

    def close(self) -> None:
        """Publish what is open."""
        if self._file is not None:
            self._publish()

    def _open(self, needed: int) -> bool:
        if time.monotonic() - self._failed_s < RETRY_S:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        self._kept_bytes = sum(entry.stat().st_size for entry in os.scandir(self.folder) if entry.name.endswith(SEGMENT_SUFFIX))
        if self._kept_bytes + len(MAGIC) + needed > self.most_bytes:
            self._failed_s = time.monotonic()
            return False
        self._path = self.folder / f"{self._number:010d}{OPEN_SUFFIX}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._bytes, self._since_s = 0, time.monotonic()
        self._append(MAGIC)
        return True

    def _append(self, data: bytes) -> None:
        """Write all of ``data`` or none: a half-written record is cut off again."""
        assert self._file is not None  # noqa: S101 - the caller opened it
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            os.ftruncate(self._file, self._bytes)
            os.lseek(self._file, self._bytes, os.SEEK_SET)
            raise
        self._bytes += len(data)

    def _publish(self) -> None:
        """Sync and rename; a segment that cannot be synced is left unread, and its records are a hole in the books."""
        assert self._file is not None  # noqa: S101 - the caller looked
        file, self._file = self._file, None
        try:
            if self._bytes <= len(MAGIC):
                self._path.unlink()
                return
            os.fsync(file)
            self._path.rename(self._path.with_suffix(SEGMENT_SUFFIX))
            self._kept_bytes += self._bytes
            _sync_folder(self.folder)
        except OSError:
            self._failed_s = time.monotonic()
        finally:
            self._number += 1
            os.close(file)


def folder_name(instance: str) -> str:
    """Return a folder's name for an instance: readable, safe in a path and a URI, and no two alike.

    It never starts with a dot or an underscore, because many readers of files take such folders for hidden ones.
    """
    safe = re.sub(r"^[._]|[^A-Za-z0-9._-]", "-", instance)[:120]
    return safe if safe == instance else f"{safe}-{blake2b(instance.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def _sync_folder(folder: Path) -> None:
    """Make the new name durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
