"""Spool sink: segments of records in a folder per probe instance, published atomically.

A segment is written under a name that readers ignore, then synced and renamed when it is 8 MiB large or a second old.
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
from hopwatch.probes.folder_sync import sync_folder
from hopwatch.probes.once_per_cause import OncePerCause

SEGMENT_AGE_S: Final = 1.0
MAX_BYTES: Final = 256 * 1024 * 1024
"""Disk space of one probe instance, with the segments that the monitor has not deleted yet."""
RETRY_S: Final = 1.0
"""Pause after a failure: a host must not pay for a full disk at every flush."""

_log = logging.getLogger("hopwatch.probe")


class SpoolSink:
    """Sink that writes the segments of one probe instance below ``root``."""

    loses_unsettled: Final = True
    """A segment that cannot be published is deleted."""

    def __init__(
        self,
        root: Path,
        instance: str,
        clock: Clock | None = None,
        *,
        most_bytes: int = MAX_BYTES,
        is_private: bool = False,
    ) -> None:
        """Set the folder; no file is touched before the first record. Only the owner can read a private spool."""
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
        self._logged = OncePerCause()

    def check(self) -> None:
        """Create the folder, and a temporary file in it.

        Raises:
            OSError: one of them cannot be created.
        """
        self._make_folder()
        with TemporaryFile(dir=self.folder):
            pass

    def _make_folder(self) -> None:
        """Create the folder and its parents; an existing one stays as it is."""
        try:
            self.folder.mkdir(self._folder_mode, exist_ok=True)
        except FileNotFoundError:
            self.folder.parent.mkdir(self._folder_mode, parents=True, exist_ok=True)
            self.folder.mkdir(self._folder_mode, exist_ok=True)

    def check_room(self, size: int) -> None:
        """Check that ``size`` more bytes would fit; nothing is kept.

        Raises:
            OSError: the disk or the spool is full, or the bytes cannot be synced.
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
        """Return nothing: records that cannot be published show as a hole in the books."""
        return ()

    def tick(self) -> None:
        """Publish the open segment once it is old enough."""
        if self._file is not None and self._now_s() - self._since_s >= SEGMENT_AGE_S:
            self._publish()

    def sync(self) -> bool:
        """Make durable the records since the last call, without publishing them; False if some are lost.

        Synced records stay, whatever fails later: an open segment that cannot be published is left in its place.
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
        """Publish the open segment; return whether it and all segments since the last call could be published."""
        self._publish()
        is_whole, self._is_whole = self._is_whole, True
        return is_whole

    def close(self, patience_s: float = 0.0) -> None:  # noqa: ARG002 - a disk cannot be given up
        """Publish the open segment."""
        self._publish()

    def _log_once(self, why: str) -> None:
        """Log each reason of a refusal once."""
        if self._logged.is_new(why):
            _log.warning("the spool %s %s", self.folder, why)

    def _now_s(self) -> float:
        return self._monotonic_ns() / 1e9

    def _has_room(self, needed: int) -> bool:
        """Return whether so many bytes more fit; space that the monitor has freed counts from the next segment on."""
        if self._file is None:
            self._make_folder()
            self._kept_bytes = measure_folder(self.folder)
        return self._kept_bytes + self._bytes + needed <= self.most_bytes

    def _append(self, data: bytes) -> bool:
        """Write a record behind the last whole one, over the remains of a failed write."""
        if self._file is None:
            self._path = self.folder / f"{self._number:010d}{OPEN_SUFFIX}"
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, self._file_mode)
            self._since_s = self._now_s()
        write_at(self._file, data, self._bytes)
        self._bytes += len(data)
        return True

    def _publish(self) -> None:
        """Truncate, sync and rename; delete a segment that cannot be synced: its records are a hole in the books."""
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


def write_at(file: int, data: bytes, offset: int) -> None:
    """Write all of the data at an offset of a file.

    Raises:
        OSError: it cannot be written; a part of it may have been.
    """
    written = 0
    while written < len(data):
        written += os.pwrite(file, memoryview(data)[written:], offset + written)


def measure_folder(folder: Path) -> int:
    """Return the size of a folder's published segments in bytes; one that the monitor deletes meanwhile counts as 0.

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
