"""Tap of a folder: imports each file that is finished, and goes on waiting for more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from hopwatch.probes.files.done_files import DoneFiles
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.files.importer import FileResult, Importer
from hopwatch.probes.files.outputs import RecordOutput
from hopwatch.probes.files.places import list_folder
from hopwatch.probes.taps.context import RunContext

POLL_S: Final = 1.0
QUIET_S: Final = 5.0
"""Time for which a file did not change before it counts as finished."""


class FolderTap:
    """Tap of a folder; a file counts as finished once it did not change for ``quiet_s``."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a tap
        self,
        folder: Path,
        importer: Importer,
        output: RecordOutput,
        done: DoneFiles | None,
        around: RunContext,
        report: Callable[[FileResult], None],
        quiet_s: float = QUIET_S,
    ) -> None:
        """Combine the parts."""
        self._folder, self._importer, self._output, self._done = folder, importer, output, done
        self._context, self._report, self._quiet_s = around, report, quiet_s
        self._seen: dict[str, tuple[int, int, float]] = {}
        self._through: dict[str, tuple[int, int]] = {}

    def run(self) -> None:
        """Run until the tap is stopped.

        Raises:
            TapSourceError: the folder cannot be read, or the output not be written.
        """
        if self._done is not None:
            self._importer.resume(self._done.slices, self._done.ends)
        while not self._context.stop.is_set():
            self.step()
            self._context.stop.wait(POLL_S)
        self._importer.finish()

    def step(self) -> None:
        """Look into the folder once, and import what is finished."""
        now_s = self._context.monotonic_s()
        there = list(list_folder(self._folder))
        for gone in self._seen.keys() - set(there):
            del self._seen[gone]
            self._through.pop(gone, None)
        for place in there:
            if self._context.stop.is_set():
                return
            try:
                found = Path(place).stat()
            except OSError:
                continue
            look = found.st_size, found.st_mtime_ns
            if self._through.get(place) == look:
                continue
            *before, since_s = self._seen.get(place, (-1, -1, now_s))
            if tuple(before) != look:
                # One that was put there whole may have been quiet for long.
                quiet_s = self._context.wall_us() / 1e6 - found.st_mtime_ns / 1e9 if place not in self._seen else 0.0
                since_s = now_s - min(max(0.0, quiet_s), self._quiet_s)
                self._seen[place] = (*look, since_s)
            if now_s - since_s >= self._quiet_s:
                self._import(place, look)

    def _import(self, place: str, look: tuple[int, int]) -> None:
        self._through[place] = look
        if self._done is not None and self._done.knows_look(place):
            return
        try:
            result = self._importer.import_file(place, self._context.stop)
        except MappingError as error:
            self._context.report(f"{error}")
            return
        if self._context.stop.is_set() and result.fault:
            return
        self._output.settle()
        self._report(result)
        if self._done is not None and not result.fault:
            self._done.add(place, result.look, result.slices, result.ends)
