"""An app that is asked without a server, over a spool that is read when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

import httpx

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.http.app import build_app
from hopwatch.probes.taps.http.intake import ObservationIntake
from hopwatch.probes.taps.http.refusals import NodeName
from hopwatch.testing import EPOCH_US, ManualClock, Observation
from tests.support.probe_host import rows, spooled

PATH = "/v1/observations"
ONE: dict[str, Any] = {"id": "a", "event_time": EPOCH_US, "stamp": "in"}
GOOD: dict[str, Any] = {"stream": "orders", "node": "router", "observations": [ONE]}


class Asked:
    """The app of an intake, on a clock set by hand."""

    def __init__(self, folder: Path, limits: Limits | None = None, allowed: Collection[NodeName] | None = None) -> None:
        """Open it on a spool."""
        self.spool, self.clock = folder / "spool", ManualClock()
        self.intake = ObservationIntake(f"spool:{self.spool}", RunContext(print, self.clock), allowed=allowed)
        self.app = build_app(self.intake, limits)

    def ask(self, method: str, path: str = PATH, **request: Any) -> httpx.Response:  # noqa: ANN401 - as httpx takes it
        """Send a request, and return the answer."""
        return asyncio.run(self.answer(method, path, **request))

    async def answer(self, method: str, path: str = PATH, **request: Any) -> httpx.Response:  # noqa: ANN401 - as above
        """Send a request from a loop that runs."""
        # What the app raises is answered first, and raised to the server then, which only logs it.
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://tap") as client:
            return await client.request(method, path, **request)

    def batches(self) -> dict[str, list[Batch]]:
        """Close the intake without a bye, and return what it sent, by sender."""
        self.intake.close(bye=False)
        return spooled(self.spool)

    def said(self) -> list[Observation]:
        """Return all observations that it sent."""
        return [row for batches in self.batches().values() for row in rows(batches)]


def told(answer: httpx.Response) -> tuple[int, str, list[str]]:
    """Return status, kind and places of a problem, which has the form of one."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["detail"]
    kind = body["type"].removeprefix("urn:hopwatch:problem:")
    return answer.status_code, kind, [error["place"] for error in body.get("errors", [])]
