"""Runner of all deliveries of one process, until a stop is requested or one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from hopwatch.deliver.control_topic import ControlReader
from hopwatch.deliver.figures import DeliveryFigures
from hopwatch.deliver.kafka_delivery import KafkaDelivery
from hopwatch.deliver.policy import DeliveryPolicy
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError

if TYPE_CHECKING:
    from hopwatch.deliver.http_client import HttpReceiver

CONTROL_S: Final = 0.5
"""Maximum wait of one read of the control topic."""
STOP_POLL_S: Final = 0.1
BACKLOG_S: Final = 15.0
"""Interval at which the backlogs of the retry topics are read."""

DeliveryParts = tuple[KafkaDelivery, DeliveryPolicy, "HttpReceiver", DeliveryFigures]


class DeliveryRunner:
    """Runner of deliveries, which are paused and resumed as the control topics say."""

    def __init__(
        self,
        deliveries: Sequence[DeliveryParts],
        controls: Sequence[ControlReader],
        around: RunContext,
        read_backlog: Callable[[str], tuple[int, int | None]] | None = None,
    ) -> None:
        """Take the deliveries, and the control topic of each cluster.

        ``read_backlog`` returns of a delivery how many messages wait for a retry, and the time of the oldest in µs
        since 1970, None if there is none; without it the figures of the backlog are absent.
        """
        self._parts, self._controls, self._context = deliveries, controls, around
        self._read_backlog = read_backlog

    async def run(self) -> None:
        """Deliver until a stop is requested; one delivery that fails ends all, in order.

        Raises:
            TapSourceError: a topic cannot be read or written until an operator fixes it.
        """
        stop = asyncio.Event()
        try:
            for control in self._controls:
                await asyncio.to_thread(control.open)
            self._apply_pauses()
            helping = (self._follow_pauses(), self._await_stop(stop), self._follow_backlogs())
            helpers = {asyncio.create_task(one) for one in helping}
            running = [asyncio.create_task(self._run_delivery(parts, stop)) for parts in self._parts]
            try:
                await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                stop.set()
                await asyncio.gather(*running, return_exceptions=True)
                for task in helpers:
                    task.cancel()
                await asyncio.gather(*helpers, return_exceptions=True)
        finally:
            for control in self._controls:
                await asyncio.to_thread(control.close)
        for task in running:
            task.result()

    async def _run_delivery(self, parts: DeliveryParts, stop: asyncio.Event) -> None:
        delivery, policy, receiver, figures = parts
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(receiver)
            await delivery.run(policy, receiver, figures, stop)

    async def _await_stop(self, stop: asyncio.Event) -> None:
        while not await asyncio.to_thread(self._context.stop.wait, STOP_POLL_S):
            pass
        stop.set()

    async def _follow_pauses(self) -> None:
        while True:
            for control in self._controls:
                await asyncio.to_thread(control.read_changes, CONTROL_S)
            self._apply_pauses()

    async def _follow_backlogs(self) -> None:
        """Read the backlogs of the retry topics for the page of metrics; what cannot be read now is read later."""
        while self._read_backlog is not None:
            for delivery, _, _, figures in self._parts:
                with suppress(TapSourceError):
                    waiting, oldest_us = await asyncio.to_thread(self._read_backlog, delivery.name)
                    age_us = 0 if oldest_us is None else max(self._context.wall_us() - oldest_us, 0)
                    figures.record_backlog(waiting, age_us / 1e6)
            await asyncio.sleep(BACKLOG_S)

    def _apply_pauses(self) -> None:
        """Pause and resume deliveries, and report changes."""
        pauses = {name: pause for control in self._controls for name, pause in control.pauses.items()}
        for delivery, _, _, figures in self._parts:
            is_paused = delivery.name in pauses
            delivery.source.is_paused_by_alert = is_paused and bool(pauses[delivery.name].by)
            if is_paused != delivery.source.is_paused:
                delivery.source.is_paused = is_paused
                self._context.report(f"{delivery.name} {'is paused' if is_paused else 'goes on'}, as was commanded")
            figures.record_pause(is_paused=is_paused)
