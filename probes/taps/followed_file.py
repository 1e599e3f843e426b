"""A file that others write and rotate, followed without losing a line: by rename, by truncation, gone and back."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.marked_file import MARK_BYTES, MarkedFile, Position
from hopwatch.probes.taps.rotation import find_successor, list_rotated

LINGER_S: Final = 2.0
"""How long a file that was renamed has to be quiet before its successor is opened: who writes may still hold it."""
MAX_LINGER_S: Final = 60.0
"""After so long it is left, though somebody still writes to it."""


class FollowedFile:
    """Reads what is there and what comes; :meth:`read` never waits.

    After a read, ``has_ended`` says that a file was left: what waits for a newline is a line; and ``is_behind`` that
    the end of this file is not the end of all.
    """

    is_over = False

    def __init__(
        self, path: Path, around: RunContext, *, position: Position | None = None, from_start: bool = False
    ) -> None:
        """Find the place to begin: the position, if there is one; else the start, or the end of what is there now.

        Raises:
            TapSourceError: the file is there and cannot be read.
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
        """Return the next bytes; none when all that is there was read."""
        self.has_ended = False
        try:
            if self._file is None:
                self._file = self._open(self.path)
            return b"" if self._file is None else self._read_next(self._file, most_bytes)
        except OSError as error:
            self._report_once(f"{self.path} cannot be read: {error.strerror}: trying on")
            return b""

    def position(self, unread_bytes: int) -> Position | None:
        """Return the place so many bytes before the last one that was read; None without a file."""
        return None if self._file is None else self._file.position(unread_bytes)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read though the last read brought nothing."""
        return self.has_ended or self._renamed_s is not None or bool(self._reported)

    def _read_next(self, file: MarkedFile, most_bytes: int) -> bytes:
        if not file.is_unchanged():
            self._restart(file)
            return b""
        data = file.read(most_bytes)
        if not data and self._is_finished(file):
            # Whoever had it open may have written between the last read and the look at its successor.
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
        """Whether it has another name, its old name is another file's, and nobody seems to write to it any more."""
        now_s = self._context.monotonic_s()
        if file.has_name(self.path) is not False:
            self._renamed_s = None
            return False
        if self._renamed_s is None:
            self._renamed_s = self._quiet_since_s = now_s
        if find_successor(self.path, file) != self.path:
            # Its successor was renamed too: who writes has gone on long since.
            return True
        return now_s - self._quiet_since_s >= LINGER_S or now_s - self._renamed_s >= MAX_LINGER_S

    def _restart(self, file: MarkedFile) -> None:
        """Go on in the copy that was made before the truncation, where there is one; else at the start."""
        here = file.position()
        file.close()
        self._file = self._resume(here)

    def _resume(self, position: Position) -> MarkedFile | None:
        """Open what was read, under whatever name it has now: the file itself, or a copy of it."""
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
