"""Tests of the whole engine over real sockets: a receiver that fails in all ways loses nothing."""

from __future__ import annotations

import asyncio
import dataclasses

from hopwatch.deliver.engine import DeliveryEngine
from hopwatch.deliver.http_client import HttpReceiver
from hopwatch.deliver.policy import DeliveryPolicy
from hopwatch.deliver.settlement import Ending
from hopwatch.probes.clock import SystemClock
from tests.support import simulated_delivery
from tests.support.flaky_receiver import FlakyReceiver
from tests.support.simulated_delivery import SimulatedSink, SimulatedSource, SimulatedTopics

POLICY = DeliveryPolicy(
    "http://127.0.0.1/",
    batch_max_events=20,
    linger_s=0.01,
    parallel=8,
    timeout_s=0.2,
    backoff_base_s=0.01,
    backoff_max_s=0.05,
    tiers_s=(0.1, 0.2),
)


async def deliver(topics: SimulatedTopics, flaky: FlakyReceiver, policy: DeliveryPolicy) -> None:
    """Deliver until all is settled."""
    source = SimulatedSource(topics, SystemClock())
    async with flaky.listen(), HttpReceiver(flaky.url, policy.timeout_s, policy.parallel) as receiver:
        used = dataclasses.replace(policy, url=flaky.url)
        engine = DeliveryEngine(used, source, SimulatedSink(topics, source), receiver)
        running = asyncio.create_task(engine.run())
        while not topics.is_done and not running.done():
            await asyncio.wait({running}, timeout=0.05)
        engine.stop_polling()
        await running


def test_a_receiver_that_fails_in_all_ways_loses_nothing() -> None:
    """Of 3,000 messages and 40 % of faults each is acknowledged, or was refused for good and sent no more."""
    topics, flaky = simulated_delivery.build_topics(3_000, 4), FlakyReceiver(0.4, seed=3)
    asyncio.run(deliver(topics, flaky, POLICY))
    assert len(topics.ended) == 3_000
    for message_id, (settlement,) in topics.ended.items():
        if settlement.ending is Ending.DELIVERED:
            assert flaky.accepted[message_id] >= 1
        else:
            assert settlement.status in {302, 404}
            assert flaky.refused[message_id] == 1
    assert sum(flaky.refused.values()) == sum(one[0].ending is Ending.REJECTED for one in topics.ended.values())
    assert len(flaky.faults) == 12, "each fault came"
