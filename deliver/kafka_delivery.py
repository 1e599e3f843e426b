"""Delivery from Kafka: the engine between its source and its sink."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from hopwatch.deliver.assignment import PartitionKey
from hopwatch.deliver.engine import DeliveryEngine
from hopwatch.deliver.interfaces import DeliveryObserver, Receiver
from hopwatch.deliver.kafka_records import reject_poison
from hopwatch.deliver.kafka_settlement import KafkaSettlementSink
from hopwatch.deliver.kafka_source import DeliverySource
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.policy import DeliveryPolicy
from hopwatch.deliver.settlement import Settlement
from hopwatch.deliver.settlement_report import SettlementReport
from hopwatch.deliver.stamper import DeliveryStamper
from hopwatch.gate.retry import StoppedError
from hopwatch.probes.taps.context import RunContext


class KafkaDelivery:
    """One delivery in this process: a source and a sink of the engine, which settles at once what is no message."""

    def __init__(
        self, name: str, source: DeliverySource, sink: KafkaSettlementSink, stamper: DeliveryStamper, around: RunContext
    ) -> None:
        """Take the parts."""
        self.name, self.source, self.sink = name, source, sink
        self._stamper, self._context = stamper, around
        self._report = SettlementReport(name, around.report)

    async def poll(self, most: int) -> list[DeliveryMessage]:
        """Return new messages; records that cannot be delivered are rejected before."""
        found = await self.source.poll(most)
        poison = self.source.take_poison()
        if not poison:
            return found
        now_us = self._context.wall_us()
        await self.settle([reject_poison(held, now_us) for held in poison])
        # Partitions may have gone meanwhile, and the engine was told of it before it had these messages.
        return self.source.filter_held(found)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Make settlements durable; return those that are."""
        durable = await self.sink.settle(settlements)
        self._report.add_settlements(durable, self._context.monotonic_s())
        return durable

    async def run(
        self, policy: DeliveryPolicy, receiver: Receiver, observer: DeliveryObserver, stop: asyncio.Event
    ) -> None:
        """Deliver until a stop is requested, then finish what is under way.

        Raises:
            TapSourceError: a topic cannot be read or written until an operator fixes it.
        """
        engine = DeliveryEngine(policy, self, self, receiver, observer=observer, clock=self._context.clock)
        loop = asyncio.get_running_loop()

        def drop_partitions(keys: Collection[PartitionKey]) -> None:
            loop.call_soon_threadsafe(engine.drop_partitions, keys)

        self.source.on_revoked = drop_partitions
        self.source.open()
        member = asyncio.create_task(self.source.keep_membership())
        stopping = asyncio.create_task(_call_after(stop, engine))
        member.add_done_callback(lambda task: None if task.cancelled() else engine.stop_polling())
        try:
            with suppress(StoppedError):
                await engine.run()
            if member.done():
                member.result()
        finally:
            await self._end({member, stopping})

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.source.on_revoked = lambda _: None
        await self.sink.close()
        await self.source.close()
        # Without a bye the monitor knows that some stamps may be missing, or that messages wait in the topic.
        bye = self.source.has_caught_up and not self.sink.is_in_doubt
        await asyncio.to_thread(partial(self._stamper.close, bye=bye))


async def _call_after(stop: asyncio.Event, engine: DeliveryEngine) -> None:
    await stop.wait()
    engine.stop_polling()
