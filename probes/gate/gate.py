"""The entrances of all streams, and what runs beside them for as long as they are served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from anyio import create_task_group, to_thread

from probes.clock import Clock
from probes.gate.intake import Intake
from probes.gate.outlets import Outlet, OutletError
from probes.gate.producers import Producers
from probes.http.problems import Problem


class Gate:
    """All entrances, by the names of their streams."""

    def __init__(self, intakes: Mapping[str, Intake], clock: Clock, producers: Producers | None = None) -> None:
        """Take the entrances, and who may come to them; nothing runs before :meth:`running`."""
        self.intakes, self.clock, self.producers = dict(intakes), clock, producers or Producers()

    def check_now(self) -> None:
        """Look whether every transport can be written to.

        Raises:
            OutletError: one of them cannot.
        """
        for outlet in self._outlets():
            outlet.check()

    async def check(self) -> None:
        """Look whether every transport can be written to.

        Raises:
            Problem: one of them cannot.
        """
        try:
            await to_thread.run_sync(self.check_now)
        except OutletError as error:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "transport-down", str(error)) from None

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
