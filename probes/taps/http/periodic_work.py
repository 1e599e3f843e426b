"""Periodic work of an app while it is up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from anyio import to_thread

TICK_S: Final = 0.5


@asynccontextmanager
async def run_periodically(work: Callable[[], None]) -> AsyncIterator[None]:
    """Run some work every TICK_S in a thread, for the duration of the block; a system that fails now is tried again."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_S)
            with suppress(OSError):
                await to_thread.run_sync(work)

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
