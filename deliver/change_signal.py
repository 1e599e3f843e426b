"""Signal of a change, which any number of tasks wait for."""

from __future__ import annotations

import asyncio
from typing import Final

MIN_WAIT_S: Final = 0.001
"""Shortest wait: clocks are not finer, and a wait that is rounded to nothing would be one of many."""


class ChangeSignal:
    """Signal that wakes all who wait for it when it is sent, and nobody who waits later."""

    def __init__(self) -> None:
        """Begin unsent."""
        self._event = asyncio.Event()

    def send(self) -> None:
        """Wake all who wait."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, timeout_s: float | None) -> None:
        """Wait until it is sent, or for the timeout."""
        event = self._event
        if timeout_s is None:
            await event.wait()
            return
        try:
            async with asyncio.timeout(max(timeout_s, MIN_WAIT_S)):
                await event.wait()
        except TimeoutError:
            return
