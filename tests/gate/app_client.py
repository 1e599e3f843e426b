"""Client of the gate's app for tests, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from hopwatch.gate.app import build_app
from hopwatch.gate.gate import Gate
from hopwatch.gate.registry.subjects import Registry
from hopwatch.probes.http.limits import Limits
from tests.support.schema_store import MemoryShelf


class Asked:
    """App over a schema store in memory."""

    def __init__(self, gate: Gate | None = None, limits: Limits | None = None) -> None:
        """Make it, empty."""
        self.shelf = MemoryShelf()
        self.app = build_app(Registry(self.shelf), gate, limits)

    def ask(self, method: str, path: str, body: Any = None, **request: Any) -> httpx.Response:  # noqa: ANN401 - as httpx takes it
        """Send a request, and return the answer."""
        more = request if body is None else {"json": body, **request}
        return asyncio.run(self.answer(method, path, **more))

    async def answer(self, method: str, path: str, **request: Any) -> httpx.Response:  # noqa: ANN401 - as above
        """Send a request from a loop that runs."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gate") as client:
            return await client.request(method, path, **request)
