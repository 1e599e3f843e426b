"""State file of a tap, from which a restart continues, and that of a position in a source file."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.marked_file import MARK_BYTES, Position

VERSION: Final = 1

State = TypeVar("State")


class LockedState:
    """State file of one tap: locked against a second one, and written atomically."""

    argument: ClassVar = "--state"
    """Name of the file's argument, for errors."""

    def __init__(self, path: Path, source: str) -> None:
        """Set the state file and the name of what it is the state of; no file is touched yet."""
        self.path, self.source = path, source

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the state against a second tap; the lock ends with the process, however it ends.

        The lock is on a separate file, as each :meth:`save` replaces the state file. A folder that is not there is
        made, as a spool's is.

        Raises:
            TapSourceError: another tap holds the lock, or files cannot be locked there.
        """
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("a")
        except OSError as error:
            advice = f"name a place that this user can write with {self.argument}"
            raise TapSourceError(
                f"the lock {lock} of the state cannot be written: {error.strerror}: {advice}"
            ) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = f"another tap keeps its position in {self.path}"
                raise TapSourceError(f"{what}: stop it, or name another file with {self.argument}") from None
            except OSError as error:
                advice = "keep the state on a local disk"
                raise TapSourceError(
                    f"the lock {lock} of the state cannot be had: {error.strerror}: {advice}"
                ) from None
            yield

    def _read(self, parse: Callable[[dict[str, object]], State]) -> State | None:
        """Return what ``parse`` makes of the file; None without one."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TapSourceError(f"the state {self.path} cannot be read: {error.strerror}") from None
        try:
            return parse(json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            advice = f"name another file with {self.argument}, or delete it to begin anew"
            raise TapUsageError(f"{self.path} is not the state of a tap of {self.source} ({error}): {advice}") from None

    def _write(self, fields: Mapping[str, object]) -> None:
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            with new.open("w") as file:
                json.dump({"version": VERSION, **fields}, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            raise TapSourceError(
                f"the state {self.path} cannot be written: {error.strerror}: without it a restart stamps again"
            ) from None

    @staticmethod
    def _check(kept: Mapping[str, object], field: str, expected: str) -> None:
        """Check the version, and the field that says whose state it is.

        Raises:
            ValueError: one of them is another.
        """
        if kept["version"] != VERSION or kept[field] != expected:
            raise ValueError(f"version {kept['version']!r:.20} of {kept[field]!r:.200}")


class StateFile(LockedState):
    """Saved position in one source file."""

    def __init__(self, path: Path, source: Path) -> None:
        """Set the state file and its source; no file is touched yet."""
        super().__init__(path, str(source.absolute()))
        self._saved: Position | None = None

    def load(self) -> Position | None:
        """Return the saved position, or None if there is none yet.

        Raises:
            TapUsageError: the file is no state of this source.
            TapSourceError: it cannot be read.
        """
        return self._read(self._parse)

    def save(self, position: Position) -> None:
        """Replace the saved position.

        Raises:
            TapSourceError: the file cannot be written.
        """
        if position == self._saved:
            return
        self._write(
            {
                "file": self.source,
                "device": position.device,
                "inode": position.inode,
                "offset": position.offset,
                "mark": position.mark.hex(),
            }
        )
        self._saved = position

    def _parse(self, kept: dict[str, object]) -> Position:
        self._check(kept, "file", self.source)
        device, inode, offset, mark = (kept[name] for name in ("device", "inode", "offset", "mark"))
        if not (isinstance(device, int) and isinstance(inode, int) and isinstance(offset, int) and offset >= 0):
            raise ValueError(f"device {device!r:.20}, inode {inode!r:.20}, offset {offset!r:.20}")
        if not isinstance(mark, str) or len(mark) > 2 * MARK_BYTES:
            raise ValueError(f"mark {mark!r:.20}")
        return Position(device, inode, offset, bytes.fromhex(mark))
