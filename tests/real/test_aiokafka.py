"""Instrumented clients of aiokafka on a real broker: three nodes in a row, of which one drops messages."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from hopwatch import Probe
from hopwatch.integrations.aiokafka import instrument
from hopwatch.testing import MemorySink, observations
from servers.kafka import Kafka

MESSAGES = 60
DROPPED = 3


async def run_nodes(brokers: str, orders: str, routed: str, probes: dict[str, Probe]) -> None:
    """Send messages, route all but a few of them, and bill what was routed."""
    common = {"bootstrap_servers": brokers}
    from_start = {"auto_offset_reset": "earliest"} | common
    shop = instrument(AIOKafkaProducer(**common), probe=probes["shop"])
    source = instrument(AIOKafkaConsumer(orders, **from_start), probe=probes["router"])
    target = instrument(AIOKafkaProducer(**common), probe=probes["router"])
    billing = instrument(AIOKafkaConsumer(routed, **from_start), probe=probes["billing"])
    async with shop, source, target, billing:
        for number in range(MESSAGES):
            await shop.send(orders, b"%d" % number)
        await shop.flush()
        for _ in range(MESSAGES):
            message = await source.getone()
            if int(message.value) >= DROPPED:
                await target.send(routed, message.value, headers=message.headers)
        await target.flush()
        billed = 0
        while billed < MESSAGES - DROPPED:
            billed += sum(map(len, (await billing.getmany(timeout_ms=1_000)).values()))


def test_the_messages_that_a_node_drops_are_those_without_a_second_stamp(kafka: Kafka) -> None:
    """Every delivery and every arrival is stamped once, under the id that the first node gave."""
    for topic in ("aio-orders", "aio-routed"):
        kafka.create_topic(topic)
    sinks = {name: MemorySink() for name in ("shop", "router", "billing")}
    probes = {name: Probe("orders", name, sink) for name, sink in sinks.items()}
    asyncio.run(run_nodes(kafka.bootstrap, "aio-orders", "aio-routed", probes))
    for probe in probes.values():
        probe.close()
    seen = {name: observations(sink) for name, sink in sinks.items()}
    ids = {
        (name, side): [one.message_id for one in of_node if getattr(one, side) is not None]
        for name, of_node in seen.items()
        for side in ("in_us", "out_us")
    }
    sent = set(ids["shop", "out_us"])
    assert len(ids["shop", "out_us"]) == len(sent) == MESSAGES
    assert sorted(ids["router", "in_us"]) == sorted(sent)
    assert sorted(ids["router", "out_us"]) == sorted(ids["billing", "in_us"])
    assert len(sent - set(ids["router", "out_us"])) == DROPPED
