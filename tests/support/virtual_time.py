"""Event loop whose time passes at once: a test of hours of waiting takes no time, and always goes the same way."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
BEGINNING_US = 1_700_000_000_000_000
"""Wall time at which every virtual clock begins, µs since 1970."""


class VirtualSelector(selectors.SelectSelector):
    """Selector that does not wait for anything: it moves its loop's time by as much."""

    def __init__(self) -> None:
        """Begin at 0."""
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass."""
        if timeout is None:
            raise RuntimeError("nothing is due any more: the program under test waits for ever")
        self.now_s += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop on virtual time."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._virtual = VirtualSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual.now_s


class VirtualClock:
    """Clock of a virtual loop, with an own beginning of its wall time."""

    def __init__(self, loop: VirtualLoop) -> None:
        """Take the loop."""
        self._loop = loop

    def wall_ns(self) -> int:
        """Return the virtual time since 1970."""
        return BEGINNING_US * 1_000 + round(self._loop.time() * 1e9)

    def monotonic_ns(self) -> int:
        """Return the virtual time."""
        return round(self._loop.time() * 1e9)


def run_virtually(loop: VirtualLoop, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a virtual loop, and return its result."""
    return loop.run_until_complete(main)
