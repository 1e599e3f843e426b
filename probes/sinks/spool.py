"""A spool: segments of records in a folder of this probe instance, whole or not there.

A segment is written under a name that no reader looks at, synced, and renamed when it is 8 MiB large or a second old.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.segment import (
    MAGIC,
    MAX_SEGMENT_BYTES,
    OPEN_SUFFIX,
    SEGMENT_SUFFIX,
    encode_frame,
    folder_name,
)

SEGMENT_AGE_S: Final = 1.0
MAX_BYTES: Final = 256 * 1024 * 1024
"""How much of the disk one probe instance may fill, segments included that the monitor has not deleted yet."""
RETRY_S: Final = 1.0
"""How long a spool that failed is left alone: a host must not pay for a full disk at every flush."""

_log = logging.getLogger("hopwatch.probe")


class SpoolSink:
    """Writes the segments of one probe instance below ``root``."""

    def __init__(
        self,
        root: Path,
        instance: str,
        clock: Clock | None = None,
        *,
        most_bytes: int = MAX_BYTES,
        is_private: bool = False,
    ) -> None:
        """Name the place; nothing is touched before the first record. A private one is for its owner's eyes alone."""
        self._folder_mode, self._file_mode = (0o700, 0o600) if is_private else (0o777, 0o644)
        self.folder = root / folder_name(instance)
        self.most_bytes = most_bytes
        self._monotonic_ns = (clock or SystemClock()).monotonic_ns
        self._file: int | None = None
        self._path = self.folder
        self._number = 0
        self._bytes = 0
        self._synced_bytes = 0
        self._since_s = 0.0
        self._failed_s = float("-inf")
        self._kept_bytes = 0
        self._is_whole = True
        self.unpublished: list[Path] = []
        """Segments with synced records that could not be published."""
        self._logged: set[str] = set()

    def check(self) -> None:
        """Make the folder, and a file in it that is gone again.

        Raises:
            OSError: one of them cannot be.
        """
        self._make_folder()
        with TemporaryFile(dir=self.folder):
            pass

    def _make_folder(self) -> None:
        """Make the folder and those above it; one that is there stays as it is."""
        try:
            self.folder.mkdir(self._folder_mode, exist_ok=True)
        except FileNotFoundError:
            self.folder.parent.mkdir(self._folder_mode, parents=True, exist_ok=True)
            self.folder.mkdir(self._folder_mode, exist_ok=True)

    def check_room(self, size: int) -> None:
        """Look whether so many bytes more can be kept; nothing is.

        Raises:
            OSError: the disk has no place for them, the spool is full, or they cannot be synced.
        """
        with TemporaryFile(dir=self.folder) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.write(bytes(size))
                file.flush()
            os.fsync(file.fileno())
        if measure_folder(self.folder) + self._bytes + size > self.most_bytes:
            raise OSError(errno.EDQUOT, f"it is full: {self.most_bytes:,} bytes are kept, which nobody has deleted yet")

    def send(self, record: bytes) -> bool:
        """Append a record to the open segment; False when the spool is full or cannot be written."""
        if self._now_s() - self._failed_s < RETRY_S:
            return False
        data = encode_frame(record) if self._bytes else MAGIC + encode_frame(record)
        try:
            is_taken = self._has_room(len(data)) and self._append(data)
            if not is_taken:
                self._log_once(f"is full: {self.most_bytes} bytes are kept, which the monitor has not deleted yet")
        except OSError as error:
            is_taken = False
            self._log_once(f"cannot be written: {error.strerror}")
        if not is_taken:
            self._failed_s = self._now_s()
        elif self._bytes >= MAX_SEGMENT_BYTES:
            self._publish()
        return is_taken

    def failed(self) -> Sequence[bytes]:
        """Return nothing: what cannot be published is a hole in the books, which says as much."""
        return ()

    def tick(self) -> None:
        """Publish the open segment once it is old enough."""
        if self._file is not None and self._now_s() - self._since_s >= SEGMENT_AGE_S:
            self._publish()

    def sync(self) -> bool:
        """Make durable what was taken since the last call, which no reader sees yet; False if some of it is not.

        What was synced stays, whatever fails later: an open segment that cannot be published is left where it is.
        """
        is_whole, self._is_whole = self._is_whole, True
        if self._file is not None and self._bytes > self._synced_bytes:
            try:
                os.fsync(self._file)
                if not self._synced_bytes:
                    sync_folder(self.folder)
                    sync_folder(self.folder.parent)
                self._synced_bytes = self._bytes
            except OSError as error:
                self._log_once(f"cannot be synced: {error.strerror}")
                self._bytes, is_whole = self._synced_bytes, False
        return is_whole

    def settle(self, patience_s: float) -> bool:  # noqa: ARG002 - a disk cannot be given up
        """Publish what is open; whether that, and every segment since it was asked last, could be."""
        self._publish()
        is_whole, self._is_whole = self._is_whole, True
        return is_whole

    def close(self, patience_s: float = 0.0) -> None:  # noqa: ARG002 - a disk cannot be given up
        """Publish what is open."""
        self._publish()

    def _log_once(self, why: str) -> None:
        """Log why nothing is taken, each reason once."""
        if why not in self._logged:
            self._logged.add(why)
            _log.warning("the spool %s %s", self.folder, why)

    def _now_s(self) -> float:
        return self._monotonic_ns() / 1e9

    def _has_room(self, needed: int) -> bool:
        """Whether so many bytes more fit; what the monitor has deleted is looked for before a segment is opened."""
        if self._file is None:
            self._make_folder()
            self._kept_bytes = measure_folder(self.folder)
        return self._kept_bytes + self._bytes + needed <= self.most_bytes

    def _append(self, data: bytes) -> bool:
        """Write a record behind the last whole one, over whatever a write that failed has left there."""
        if self._file is None:
            self._path = self.folder / f"{self._number:010d}{OPEN_SUFFIX}"
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, self._file_mode)
            self._since_s = self._now_s()
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, memoryview(data)[written:], self._bytes + written)
        self._bytes += len(data)
        return True

    def _publish(self) -> None:
        """Cut, sync and rename; a segment that cannot be synced is deleted: its records are a hole in the books."""
        if self._file is None:
            return
        is_kept = bool(self._synced_bytes)
        try:
            try:
                os.ftruncate(self._file, self._bytes)
                os.fsync(self._file)
            finally:
                os.close(self._file)
            if self._bytes:
                self._path.rename(self._path.with_suffix(SEGMENT_SUFFIX))
                sync_folder(self.folder)
        except OSError:
            self._failed_s = self._now_s()
            self._is_whole = False
        if not is_kept:
            with suppress(OSError):  # published and so gone, as a rule
                self._path.unlink()
        elif self._path.exists():
            self.unpublished.append(self._path)
        self._file, self._bytes, self._synced_bytes = None, 0, 0
        self._number += 1


def measure_folder(folder: Path) -> int:
    """Return how many bytes the published segments of a folder have; one that the monitor deletes meanwhile has none.

    Raises:
        OSError: the folder cannot be read.
    """
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SEGMENT_SUFFIX):
                with suppress(FileNotFoundError):
                    total += entry.stat().st_size
    return total


def sync_folder(folder: Path) -> None:
    """Make the new name durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
