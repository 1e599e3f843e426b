"""Instrumented clients of kafka-python on a real broker: what is sent arrives once, under the same id."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from hopwatch import Probe
from hopwatch.integrations.kafka_python import instrument
from hopwatch.testing import MemorySink, observations
from servers.kafka import Kafka

MESSAGES = 40
TOPIC = "kafka-python-orders"


def test_each_message_is_stamped_where_it_leaves_and_where_it_arrives(kafka: Kafka) -> None:
    """Half of them are received in a loop, the others by polls."""
    kafka.create_topic(TOPIC)
    sinks = {name: MemorySink() for name in ("shop", "billing")}
    probes = {name: Probe("orders", name, sink) for name, sink in sinks.items()}
    shop = instrument(KafkaProducer(bootstrap_servers=kafka.bootstrap), probe=probes["shop"])
    client = KafkaConsumer(TOPIC, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
    billing = instrument(client, probe=probes["billing"])
    for number in range(MESSAGES // 2):
        shop.send(TOPIC, b"%d" % number)
    shop.flush()
    for message in billing:
        if int(message.value) == MESSAGES // 2 - 1:
            break
    for number in range(MESSAGES // 2):
        shop.send(TOPIC, b"%d" % number)
    shop.flush()
    received = 0
    while received < MESSAGES // 2:
        received += sum(map(len, billing.poll(timeout_ms=1_000).values()))
    shop.close()
    billing.close()
    for probe in probes.values():
        probe.close()
    left, arrived = (observations(sinks[name]) for name in ("shop", "billing"))
    assert len(left) == MESSAGES
    assert all(one.out_us is not None for one in left)
    assert all(one.in_us is not None for one in arrived)
    assert sorted(one.message_id for one in arrived) == sorted(one.message_id for one in left)
