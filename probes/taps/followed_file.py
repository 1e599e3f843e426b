"""Follower of a log file that others write and rotate, without losing a line: by rename, truncation or deletion."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.marked_file import MARK_BYTES, MarkedFile, Position
from hopwatch.probes.taps.rotation import find_successor, list_rotated

LINGER_S: Final = 2.0
"""Quiet time of a renamed file before its successor is opened: a writer may still have it open."""
MAX_LINGER_S: Final = 60.0
"""Time after which a renamed file is left, even if it is still written."""


class FollowedFile:
    """Follower of one file across rotations; :meth:`read` never waits.

    After a read, ``has_ended`` is true if a file was left, so that its last line is complete without a newline;
    ``is_behind`` is true if more may follow behind the end of this file.
    """

    is_over = False

    def __init__(
        self, path: Path, around: RunContext, *, position: Position | None = None, from_start: bool = False
    ) -> None:
        """Find the start: the position, if given; else the start of the file, or its present end.

        Raises:
            TapSourceError: the file exists and cannot be read.
        """
        self.path, self.has_ended = path, False
        self._context = around
        self._reported = ""
        self._renamed_s: float | None = None
        self._quiet_since_s = 0.0
        try:
            if position is not None:
                self._file = self._resume(position)
            else:
                self._file = self._open(path)
                if self._file is not None and not from_start:
                    self._file.seek_last_line()
        except OSError as error:
            advice = "name a file" if isinstance(error, IsADirectoryError) else "let the tap's user read it"
            raise TapSourceError(f"{path} cannot be read: {error.strerror}: {advice}") from None

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes; none at the present end."""
        self.has_ended = False
        try:
            if self._file is None:
                self._file = self._open(self.path)
            return b"" if self._file is None else self._read_next(self._file, most_bytes)
        except OSError as error:
            self._report_once(f"{self.path} cannot be read: {error.strerror}: trying on")
            return b""

    def position(self, unread_bytes: int) -> Position | None:
        """Return the position ``unread_bytes`` before the end of the last read; None without a file."""
        return None if self._file is None else self._file.position(unread_bytes)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    @property
    def is_behind(self) -> bool:
        """Return whether there may be more to read although the last read was empty."""
        return self.has_ended or self._renamed_s is not None or bool(self._reported)

    def _read_next(self, file: MarkedFile, most_bytes: int) -> bytes:
        if not file.is_unchanged():
            self._restart(file)
            return b""
        data = file.read(most_bytes)
        if not data and self._is_finished(file):
            # A writer may have appended between the last read and the check of the successor.
            data = file.read(most_bytes)
            if not data:
                self.has_ended = True
                self._file = self._open(find_successor(self.path, file))
                file.close()
        if data:
            self._quiet_since_s = self._context.monotonic_s()
        self._reported = ""
        return data

    def _is_finished(self, file: MarkedFile) -> bool:
        """Return whether the file was renamed, replaced by another, and seems to be written no more."""
        now_s = self._context.monotonic_s()
        if file.has_name(self.path) is not False:
            self._renamed_s = None
            return False
        if self._renamed_s is None:
            self._renamed_s = self._quiet_since_s = now_s
        if find_successor(self.path, file) != self.path:
            # Its successor was renamed, too: the writer has moved on long ago.
            return True
        return now_s - self._quiet_since_s >= LINGER_S or now_s - self._renamed_s >= MAX_LINGER_S

    def _restart(self, file: MarkedFile) -> None:
        """Continue in the copy that was made before the truncation, if there is one; else at the start."""
        here = file.position()
        file.close()
        self._file = self._resume(here)

    def _resume(self, position: Position) -> MarkedFile | None:
        """Open the file of a position under its present name, or a copy of it."""
        for path in (self.path, *list_rotated(self.path)):
            file = self._open(path)
            if file is None:
                continue
            is_same = file.is_inode(position.device, position.inode) or len(position.mark) == MARK_BYTES
            if file.seek(position).is_unchanged() and is_same:
                return file
            file.close()
        if position.offset:
            was = f"what was read up to byte {position.offset}"
            self._context.report(f"{self.path} is not {was}: reading it from its start")
        self.has_ended = True
        return self._open(self.path)

    def _open(self, path: Path) -> MarkedFile | None:
        try:
            file = MarkedFile(path)
        except FileNotFoundError:
            return None
        self._renamed_s = None
        self._quiet_since_s = self._context.monotonic_s()
        return file

    def _report_once(self, what: str) -> None:
        if what != self._reported:
            self._context.report(what)
        self._reported = what
