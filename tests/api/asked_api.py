"""The API over a store for tests, without a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from hopwatch.api.app import build_app
from hopwatch.api.readers import Reader, Readers
from hopwatch.monitor import settings
from hopwatch.monitor.results import format_iso
from tests.support.clock import ManualClock
from tests.support.spool import at_us
from tests.support.workspace import CONFIGURATION, CONTRACTS, Workspace

ARRIVALS: Final = """
[completeness.arrivals]
stream = "orders"
nodes = ["a"]
over = "1m"
"""
END: Final = format_iso(at_us(60))
"""The end of the first window."""
NOW_US: Final = at_us(3_600)


class AskedApi:
    """App over the store of a workspace."""

    def __init__(self, workspace: Workspace, *readers: Reader, look_every_s: float = 0.02, more: str = "") -> None:
        """Make it, an hour after the first window; there may be more to its configuration."""
        workspace.configure(CONFIGURATION + CONTRACTS + ARRIVALS + more)
        self.clock = ManualClock(NOW_US)
        chosen = settings.load(workspace.config, flags={}, environ={})
        self.app = build_app(chosen, Readers(readers, self.clock), self.clock, look_every_s)

    def get(self, path: str, *, method: str = "GET", **request: Any) -> httpx.Response:  # noqa: ANN401 - as httpx takes it
        """Send a request, and return the answer."""
        return asyncio.run(self.answer(path, method=method, **request))

    async def answer(self, path: str, *, method: str = "GET", **request: Any) -> httpx.Response:  # noqa: ANN401 - as above
        """Send a request from a loop that runs."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            return await client.request(method, path, **request)

    def json(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of a good answer."""
        answer = self.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def moment(text: str) -> datetime:
    """Return a moment of an answer."""
    return datetime.fromisoformat(text).astimezone(UTC)
