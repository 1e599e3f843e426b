"""State of an import: the files that are through, so that a start anew reads none of them again.

Files that are gone, or have changed since, are left out when the state is read, and whenever it has doubled.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from hopwatch.probes.files.file_batches import FileEnd
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.state_log import read_log, write_line

VERSION: Final = 1
LOOK_KEYS: Final = ("path", "size", "mtime_ns")
PRUNED_FROM: Final = 10_000
"""Number of files from which a state that has doubled is looked through."""

NO_SLICES: Final[Mapping[str, int]] = {}

_Look = tuple[str, int, int]


class DoneFiles:
    """Files that were imported by one plan, by their looks; a line a file."""

    def __init__(self, path: Path, plan: str) -> None:
        """Set the state file, and the plan that it is of; no file is touched yet."""
        self.path, self._plan = path, plan
        self._looks: set[_Look] = set()
        self.rows: dict[_Look, Sequence[int]] = {}
        """Numbers that were noted of the rows of files, of those too that are gone since the last start."""
        self.ends: list[FileEnd] = []
        """Ends of files whose byes are still to be written, as far as anybody knows."""
        self._most = PRUNED_FROM
        self._open = ExitStack()
        self.slices: dict[str, int] = {}
        """Latest slices of the files, by the accounts of their servers."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the state against a second import, and read it; the lock ends with the process. Makes its folder.

        Raises:
            TapUsageError: the file is no state of this plan.
            TapSourceError: another process has it, or it cannot be read.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+")
        except OSError as error:
            told = f"the state {self.path} cannot be written: {error.strerror}"
            raise TapSourceError(f"{told}: name a place that this user can write with --state") from None
        with self._open:
            self._lock(self._open.enter_context(file))
            self._load(file)
            yield

    def knows_look(self, place: str) -> bool:
        """Return whether a file of this path, size and time of change was imported."""
        look = _look_at(place)
        return look is not None and look in self._looks

    def add(
        self,
        place: str,
        look: tuple[int, int] | None,
        slices: Mapping[str, int] = NO_SLICES,
        ends: Iterable[FileEnd] = (),
        rows: Sequence[int] = (),
    ) -> None:
        """Note a file that is durable where it was imported to, by its size and time of change before it was read.

        It may have grown since. What has no look, such as a URL, is read anew by each start: only its slices and
        ends are noted.

        Raises:
            TapSourceError: the state cannot be written.
        """
        known = (place, 0, 0) if look is None else (_name(place), *look)
        if look is not None:
            self._looks.add(known)
        self._note_rows(known, rows)
        told = {"slices": dict(slices), "ends": list(ends)}
        self._note(told)
        self._write(self._describe(known) | {name: values for name, values in told.items() if values})
        if len(self._looks) >= self._most:
            self._prune()

    def _note(self, line: Mapping[str, Any]) -> None:
        for server, number in line.get("slices", {}).items():
            self.slices[server] = max(number, self.slices.get(server, number))
        self.ends += (FileEnd(*values) for values in line.get("ends", ()))

    def _note_rows(self, look: _Look, rows: Sequence[int]) -> None:
        self.rows.pop(look, None)
        if rows:
            self.rows[look] = rows

    def _lock(self, file: TextIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what = f"another import keeps its state in {self.path}"
            raise TapSourceError(f"{what}: stop it, or name another file with --state") from None

    def _prune(self) -> None:
        """Write the state anew without the files that no look can find any more."""
        self._looks = {look for look in self._looks if _look_at(look[0]) == look}
        self.rows = {look: rows for look, rows in self.rows.items() if look in self._looks}
        self._most = max(PRUNED_FROM, 2 * len(self._looks))
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            # The file before stays open, and locked, for whoever has opened it by now.
            file: TextIO = self._open.enter_context(part.open("w+"))
            self._lock(file)
            lines = [self._describe_head(), *map(self._describe, sorted(self._looks))]
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
            part.rename(self.path)
        except OSError as error:
            raise TapSourceError(f"the state {self.path} cannot be written: {error.strerror}") from None
        self._file = file

    def _describe(self, look: _Look) -> dict[str, Any]:
        told = {"rows": self.rows[look]} if look in self.rows else {}
        return dict(zip(LOOK_KEYS, look, strict=True)) | told

    def _describe_head(self) -> dict[str, Any]:
        return {"version": VERSION, "plan": self._plan, "slices": self.slices, "ends": self.ends}

    def _write(self, line: dict[str, Any]) -> None:
        try:
            write_line(self._file, line)
        except OSError as error:
            raise TapSourceError(f"the state {self.path} cannot be written: {error.strerror}") from None

    def _load(self, file: TextIO) -> None:
        self._file = file
        try:
            lines = read_log(file, VERSION, self._plan)
            head = next(lines, None)
            if head is None:
                self._write(self._describe_head())
                return
            self._note(head)
            for line in lines:
                look = line["path"], line["size"], line["mtime_ns"]
                self._looks.add(look)
                self._note_rows(look, line.get("rows", ()))
                self._note(line)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            advice = "name another file with --state, or delete it to begin anew"
            raise TapUsageError(f"{self.path} is not the state of this import ({error}): {advice}") from None
        if any(_look_at(look[0]) != look for look in self._looks):
            before = dict(self.rows)
            self._prune()
            self.rows = before


def _look_at(place: str) -> _Look | None:
    try:
        found = os.stat(place)  # noqa: PTH116 - a place may be a URL
    except OSError:
        return None
    return _name(place), found.st_size, found.st_mtime_ns


def _name(place: str) -> str:
    return os.path.abspath(place)  # noqa: PTH100 - a place may be a URL
