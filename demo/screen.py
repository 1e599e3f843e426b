"""Console output of a running demo: a table that fills in on a terminal, lines of plain text when piped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.measurements import Json, is_final
from hopwatch.demo.stream import NODES
from hopwatch.demo.table import build_comparison_table, build_window_table, format_window_cells, format_window_line

PLAIN_STATUS_EVERY_S: Final = 10.0


class Screen:
    """Shows the state of the pipeline and the windows; as a context it keeps the terminal's last lines to itself."""

    def __init__(
        self, console: Console, now_s: Callable[[], float] = time.monotonic, nodes: Sequence[str] = NODES
    ) -> None:
        """Take the console to write to, whether it is a terminal decides how, and the nodes to show."""
        self._nodes = nodes
        self._console = console
        self._now_s = now_s
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._status_due_s = 0.0
        self._printed: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> Self:
        """Begin to show what is live."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take away what was live: the final table comes in its place."""
        if self._live:
            self._live.stop()

    def print_line(self, words: str) -> None:
        """Write a line that stays."""
        self._console.print(words)

    def show(self, status: str, windows: Sequence[Json]) -> None:
        """Show the current state: all of it on a terminal, else a status now and then, and each window once final."""
        if self._live:
            parts = [build_window_table(windows, self._console.width, self._nodes)] if windows else []
            self._live.update(Group(*parts, Text(status)), refresh=True)
            return
        if status and self._now_s() >= self._status_due_s:
            self._status_due_s = self._now_s() + PLAIN_STATUS_EVERY_S
            self._console.print(status)
        self._print_final(windows)

    def conclude(self, windows: Sequence[Json], lines: Sequence[ComparisonLine]) -> None:
        """Write the final table, and the comparison if there is one."""
        if self._console.is_terminal:
            self._console.print(build_window_table(windows, self._console.width, self._nodes))
        else:
            for cells in ((), *(format_window_cells(window, self._nodes) for window in windows)):
                self._console.print(format_window_line(cells, self._nodes))
        if lines:
            self._console.print(build_comparison_table(lines, plain=not self._console.is_terminal))

    def _print_final(self, windows: Sequence[Json]) -> None:
        for window in windows:
            cells = format_window_cells(window, self._nodes)
            if is_final(window) and self._printed.get(window["window_start"]) != cells:
                if not self._printed:
                    self._console.print(format_window_line((), self._nodes))
                self._printed[window["window_start"]] = cells
                self._console.print(format_window_line(cells, self._nodes))
