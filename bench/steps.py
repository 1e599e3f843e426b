"""Progress of the bench: a spinner with a clock on a terminal, a line per step when piped."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Steps:
    """Shows one step after the other; as a context it ends the last one."""

    def __init__(self, console: Console) -> None:
        """Take the console to write to; whether it is a terminal decides how."""
        self._console: Final = console
        columns = SpinnerColumn(finished_text="·"), TextColumn("{task.description}"), TimeElapsedColumn()
        self._progress: Final = Progress(*columns, console=console) if console.is_terminal else None
        self._at: TaskID | None = None
        self._began_s = time.monotonic()

    def __enter__(self) -> Self:
        """Begin."""
        if self._progress:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the step that is shown."""
        if self._progress:
            self._end_step(self._progress)
            self._progress.stop()

    def tell(self, step: str) -> None:
        """Begin a step; the one before has ended."""
        if self._progress:
            self._end_step(self._progress)
            self._at = self._progress.add_task(step, total=1)
        else:
            self._console.print(f"{time.monotonic() - self._began_s:6.0f} s  {step}")

    def _end_step(self, progress: Progress) -> None:
        if self._at is not None:
            progress.update(self._at, completed=1)
