"""Watch of a configuration file: whether it has changed since it was last read, or is to be read again on request."""

from __future__ import annotations

from pathlib import Path


class ConfigWatch:
    """Looks at a file each time that it is asked; one that is being written counts once two looks find it alike."""

    def __init__(self, path: Path) -> None:
        """Begin with the file as it is."""
        self._path = path
        self._stat = self._read_stat()
        self._content = self._read_content()
        self._is_settling = False
        self._is_requested = False

    def request(self) -> None:
        """Let the next look say that the file is to be read again; a handler of signals may call this."""
        # No event: a second signal would wait for the lock of one for ever, in the handler of the first.
        self._is_requested = True

    def has_changed(self) -> bool:
        """Return whether the file is to be read again: once for each change, and once for each request."""
        stat = self._read_stat()
        if self._is_requested:
            self._is_requested = self._is_settling = False
            self._stat, self._content = stat, self._read_content()
            return True
        if stat != self._stat:
            self._stat, self._is_settling = stat, True
            return False
        if not self._is_settling:
            return False
        self._is_settling = False
        before, self._content = self._content, self._read_content()
        return self._content != before

    def _read_stat(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read_content(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except OSError:
            return None
