"""Spool of a client: events that wait on disk, in segments as probes write them, deleted once they are settled.

An event is accepted when its record is written: it is there after the end or a kill of the process. Segments are
synced by the client's thread, so that what the machine loses in a power failure is bounded by time. A process that
begins reads what the last one has left; of the segment that was being sent all events are sent again, with their ids.
"""

from __future__ import annotations

import logging
import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from hopwatch.client.errors import ClientSpoolError, QueueFullError
from hopwatch.client.event_records import EventRecord
from hopwatch.client.queues import BatchRoom, Syncable, describe_full
from hopwatch.probes.contract.segment import FRAME_BYTES, MAGIC, SEGMENT_SUFFIX, encode_frame, folder_name, read_frames
from hopwatch.probes.folder_lock import lock_folder, unlock_folder
from hopwatch.probes.folder_sync import sync_folder
from hopwatch.probes.sinks.spool import write_at

LOCK_NAME: Final = "client.lock"
SEGMENT_BYTES: Final = 1024 * 1024
"""Size after which a segment gets no more records, which bounds what is sent again after a kill."""
MAX_SEGMENT_BYTES: Final = 2 * SEGMENT_BYTES
"""Maximum size of a segment: its last record may begin just below the bound before. Of larger files no more is read."""
UNREADABLE_SUFFIX: Final = ".unreadable"
"""Suffix of a segment that could not be read to its end; nothing deletes it."""
_log = logging.getLogger("hopwatch.client")


class _Segment:
    """One file: ``end`` is behind its last whole record, ``position`` before the first one that is not settled."""

    def __init__(self, path: Path, *, is_new: bool) -> None:
        """Open a file.

        Raises:
            OSError: it cannot be opened, or made.
        """
        self.path, self.is_new, self.fault = path, is_new, ""
        flags = os.O_CREAT | os.O_EXCL if is_new else os.O_NOFOLLOW | os.O_NONBLOCK
        self.file = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        self.position = self.synced = 0
        size = os.fstat(self.file).st_size
        if size > MAX_SEGMENT_BYTES:
            self.fault = f"it has {size:,} bytes, a segment at most {MAX_SEGMENT_BYTES:,}"
        self.end = min(size, MAX_SEGMENT_BYTES)
        self._is_named = not is_new

    def append(self, frame: bytes) -> int:
        """Write a record, over the remains of a failed write; return the number of bytes that the file has grown by.

        Raises:
            OSError: it cannot be written.
        """
        data = frame if self.end else MAGIC + frame
        write_at(self.file, data, self.end)
        self.end += len(data)
        return len(data)

    def sync(self) -> None:
        """Make its records durable.

        Raises:
            OSError: they cannot be.
        """
        end = self.end
        os.fsync(self.file)
        if not self._is_named:
            sync_folder(self.path.parent)
            self._is_named = True
        self.synced = end

    def read(self, max_events: int, max_bytes: int) -> tuple[list[EventRecord], int]:
        """Return the first records that are not settled, and the position behind them; remember a fault.

        Raises:
            OSError: the file cannot be read.
        """
        if not self.end:  # a kill, or a full disk, came before the first record
            return [], 0
        start = self.position or len(MAGIC)
        head = MAGIC if self.position else b""
        data = head + os.pread(self.file, self.end - self.position, self.position)
        records, room = list[EventRecord](), BatchRoom(max_events, max_bytes)
        for frame in read_frames(data):
            if frame.fault:
                self.fault = self.fault or frame.message
                # A record alone is passed over; behind the others nothing can be read.
                start += frame.end - frame.start + FRAME_BYTES if frame.fault in {"bad_crc", "oversized"} else self.end
                continue
            try:
                record = EventRecord.decode(data[frame.start : frame.end])
            except ValueError as error:
                self.fault = self.fault or str(error)
                # A power failure may leave zeros, which look like empty records.
                start = self.end
                break
            if not room.fits(record):
                return records, start
            records.append(record)
            start += frame.end - frame.start + FRAME_BYTES
        return records, min(start, self.end)


class SpoolQueue:
    """Queue of one stream in a folder; one client at a time has it."""

    def __init__(self, root: Path, stream: str, max_bytes: int) -> None:
        """Lock the folder, which is made if it is missing, and find what is left from an earlier process.

        Raises:
            ClientSpoolError: the folder cannot be made or read, or another client has it.
        """
        self.folder = root.absolute() / folder_name(stream)
        self.is_durable = True
        self._max_bytes = max_bytes
        self.dropped_mark = self.recovered = self.unreadable = self.waiting_events = 0
        self._taken: tuple[int, int] = 0, 0
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            self._lock = lock_folder(self.folder, LOCK_NAME)
            found = sorted(self.folder.iterdir())
            left = [path for path in found if path.suffix == SEGMENT_SUFFIX and _is_file(path)]
            self._segments = deque(_Segment(path, is_new=False) for path in left)
            # What was put aside keeps its number: another file that is put aside must not take its place.
            numbers = [int(path.stem) for path in found if path.stem.isdecimal()]
        except BlockingIOError:
            told = f"another client has the spool {self.folder}: give each process a folder of its own"
            raise ClientSpoolError(told) from None
        except OSError as error:
            raise ClientSpoolError(f"the spool {self.folder} cannot be used: {error.strerror}") from None
        self._number = max(numbers, default=-1) + 1
        self.end_mark = self.waiting_bytes = sum(segment.end for segment in self._segments)

    def append(self, record: EventRecord) -> None:
        """Write an event.

        Raises:
            QueueFullError: there is no room.
            ClientSpoolError: it cannot be written.
        """
        frame = encode_frame(record.encode())
        if self.waiting_bytes + len(MAGIC) + len(frame) > self._max_bytes:
            raise QueueFullError(describe_full(self.waiting_bytes, self._max_bytes, f"in {self.folder}"))
        try:
            grown = self._writable_segment().append(frame)
        except OSError as error:
            raise ClientSpoolError(f"the spool {self.folder} cannot be written: {error.strerror}") from None
        self.waiting_bytes += grown
        self.end_mark += grown
        self.waiting_events += 1

    def read_first(self, max_events: int, max_bytes: int) -> list[EventRecord]:
        """Return the first events, of one segment; those that cannot be read are passed over, and their file is kept.

        Raises:
            ClientSpoolError: a segment cannot be read.
        """
        while self._segments:
            first = self._segments[0]
            try:
                records, end = first.read(max_events, max_bytes)
            except OSError as error:
                raise ClientSpoolError(f"{first.path} cannot be read: {error.strerror}") from None
            if records:
                self._taken = end, len(records)
                return records
            self._settle_to(first, first.end)
        return []

    def drop(self) -> None:
        """Forget the events that were taken last; a segment without any others is deleted."""
        (end, count), self._taken = self._taken, (0, 0)
        if not count:
            return
        first = self._segments[0]
        if first.is_new:
            self.waiting_events -= count
        else:
            self.recovered += count
        self._settle_to(first, end)

    def list_unsynced(self) -> list[Syncable]:
        """Return the segments whose last records are not synced."""
        return [segment for segment in self._segments if segment.synced < segment.end]

    def close(self) -> None:
        """Close all files, and release the folder."""
        while self._segments:
            os.close(self._segments.popleft().file)
        with suppress(OSError):
            unlock_folder(self.folder, LOCK_NAME, self._lock)

    def _writable_segment(self) -> _Segment:
        last = self._segments[-1] if self._segments else None
        if last is None or not last.is_new or last.end >= SEGMENT_BYTES:
            last = _Segment(self.folder / f"{self._number:010d}{SEGMENT_SUFFIX}", is_new=True)
            self._number += 1
            self._segments.append(last)
        return last

    def _settle_to(self, first: _Segment, end: int) -> None:
        self.dropped_mark += end - first.position
        first.position = end
        if end < first.end:
            return
        self._segments.popleft()
        self.waiting_bytes -= first.end
        os.close(first.file)
        try:
            self._remove(first)
        except OSError as error:
            _log.warning("%s cannot be removed, and is sent again some time: %s", first.path, error.strerror)

    def _remove(self, segment: _Segment) -> None:
        if not segment.fault:
            segment.path.unlink()
            return
        self.unreadable += 1
        kept = segment.path.with_suffix(UNREADABLE_SUFFIX)
        _log.error("not all of %s can be read: %s; the file is kept as %s", segment.path, segment.fault, kept)
        segment.path.rename(kept)


def _is_file(path: Path) -> bool:
    """Return whether a segment is a regular file: a link, pipe or folder in its place is none of a client's."""
    if stat.S_ISREG(path.lstat().st_mode):
        return True
    _log.warning("%s is no file, and is left alone", path)
    return False
