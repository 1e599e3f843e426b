"""Bodies of requests, whole and in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

JSON = {"content-type": "application/json"}


async def trickle(*parts: bytes, wait_s: float = 0) -> AsyncIterator[bytes]:
    """Yield the parts of a body, one by one."""
    for part in parts:
        await asyncio.sleep(wait_s)
        yield part
