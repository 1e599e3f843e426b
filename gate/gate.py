"""The entrances of all streams, and what runs beside them for as long as they are served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from anyio import Lock, create_task_group, to_thread

from hopwatch.gate.intake import Intake
from hopwatch.gate.outlets import Outlet, OutletError
from hopwatch.gate.producers import Producers
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import Problem

FRESH_NS: Final = 1_000_000_000
"""So long nobody looks again whether the transports can be written to."""


class Gate:
    """All entrances, by the names of their streams."""

    def __init__(self, intakes: Mapping[str, Intake], clock: Clock, producers: Producers | None = None) -> None:
        """Take the entrances, and who may come to them; nothing runs before :meth:`running`."""
        self.intakes, self.clock, self.producers = dict(intakes), clock, producers or Producers()
        self._checking = Lock()
        self._checked_ns, self._down = -FRESH_NS - 1, ""

    def check_now(self) -> None:
        """Look whether every transport can be written to.

        Raises:
            OutletError: one of them cannot.
        """
        for outlet in self._outlets():
            outlet.check()

    async def check(self) -> None:
        """Look whether every transport can be written to; whoever asks within a second has the same answer.

        Raises:
            Problem: one of them cannot.
        """
        async with self._checking:
            if self.clock.monotonic_ns() - self._checked_ns > FRESH_NS:
                self._down = await to_thread.run_sync(self._found_down)
                self._checked_ns = self.clock.monotonic_ns()
            if self._down:
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "transport-down", self._down)

    def _found_down(self) -> str:
        try:
            self.check_now()
        except OutletError as error:
            return str(error)
        return ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Stamp while the app is served; at the end wait for what is on its way."""
        for intake in self.intakes.values():
            intake.stamping.start()
        try:
            yield
        finally:
            async with create_task_group() as closing:
                for outlet in self._outlets():
                    closing.start_soon(to_thread.run_sync, outlet.close)
            for intake in self.intakes.values():
                await to_thread.run_sync(intake.stamping.close)

    def _outlets(self) -> list[Outlet]:
        return [outlet for intake in self.intakes.values() for outlet in (intake.outlet, intake.rejected)]
