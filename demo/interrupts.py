"""Ctrl-C, counted: once ends the run, twice also the waiting behind it."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Final, Self

HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts SIGINT while it is entered; SIGTERM and SIGHUP count as two, they come from those who cannot wait."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._before = {number: signal.getsignal(number) for number in HANDLED}

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in self._before:
            signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back to who had them."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1 if number == signal.SIGINT else 2
