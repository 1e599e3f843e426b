"""Gate: the entrances of all streams, with the lifespan of their outlets and stampers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from anyio import Lock, create_task_group, to_thread

from hopwatch.gate.ingest_times import IngestTimes
from hopwatch.gate.intake import EventIntake
from hopwatch.gate.outlets import Outlet, OutletError
from hopwatch.gate.producers import Producers
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics.account import REQUEST_OUTCOMES, Account, ComponentAccounts
from hopwatch.probes.metrics.catalog import GATE
from hopwatch.probes.metrics.metric import Sample

FRESH_NS: Final = 1_000_000_000
"""Period for which the result of the transport check is cached, in ns."""


class Gate:
    """Entrances of all streams, by stream name."""

    def __init__(self, intakes: Mapping[str, EventIntake], clock: Clock, producers: Producers | None = None) -> None:
        """Take the entrances and their producers; nothing runs before :meth:`lifespan`."""
        self.intakes, self.clock, self.producers = dict(intakes), clock, producers or Producers()
        self.requests = Account(REQUEST_OUTCOMES)
        self.ingest_times = IngestTimes(clock)
        self._lock = Lock()
        self._checked_ns, self._fault = -FRESH_NS - 1, ""

    def accounts(self) -> ComponentAccounts:
        """Return the accounts of its requests, and of the events of each stream."""
        return ComponentAccounts(GATE, {stream: of.account for stream, of in self.intakes.items()}, self.requests)

    def build_samples(self) -> Iterator[Sample]:
        """Yield the samples of the ingest times, and of the throttles."""
        yield from self.ingest_times.build_samples()
        for intake in self.intakes.values():
            if intake.throttle is not None:
                yield from intake.throttle.build_samples()

    def check_outlets(self) -> None:
        """Check that every transport can be written to.

        Raises:
            OutletError: one of them cannot.
        """
        for outlet in self._outlets():
            outlet.check()

    async def check_ready(self) -> None:
        """Check that every transport can be written to; the result is cached for one second.

        Raises:
            HttpProblem: one of them cannot.
        """
        async with self._lock:
            if self.clock.monotonic_ns() - self._checked_ns > FRESH_NS:
                self._fault = await to_thread.run_sync(self._find_fault)
                self._checked_ns = self.clock.monotonic_ns()
            if self._fault:
                raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "transport-down", self._fault)

    def _find_fault(self) -> str:
        try:
            self.check_outlets()
        except OutletError as error:
            return str(error)
        return ""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the stampers while the app is served; at the end flush and close the outlets and stampers."""
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
