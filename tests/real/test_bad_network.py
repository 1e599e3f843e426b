"""Probes whose brokers are behind a bad network: each stamp is on the topic once or counted as dropped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from hopwatch import Probe
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from servers.kafka import Kafka
from servers.network import Network
from servers.process import PATIENCE_S, free_ports, until

STAMPS = 20_000
NOW_US = time.time_ns() // 60_000_000_000 * 60_000_000


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Network]]:
    """Yield a broker that clients reach through a network alone, and the network."""
    (port,) = free_ports(1)
    kafka = Kafka(tmp_path_factory.mktemp("kafka"), more={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    network = Network(port, kafka.ports[0])
    try:
        kafka.start()
        yield kafka, network
    finally:
        kafka.stop()
        network.close()


def check_all_is_there_or_counted(kafka: Kafka, topic: str, probe: Probe) -> None:
    """Check that what the brokers have and what the probe has dropped is what was stamped, each once."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    seen: Counter[int] = Counter()
    delivered, byes = 0, 0

    def has_all() -> bool:
        nonlocal delivered, byes
        for message in consumer.consume(1_000, 0.2):
            batch = decode(message.value() or b"")
            seen[batch.seq] += 1
            delivered += batch.count
            byes += batch.kind is BatchKind.BYE
        return byes == 1

    try:
        until(has_all, "the bye")
    finally:
        consumer.close()
    assert set(seen.values()) == {1}
    assert delivered + probe.dropped == STAMPS


@pytest.mark.parametrize("trouble", ["latency", "resets", "a byte a second"])
def test_a_bad_network_costs_no_stamp_that_is_not_counted(behind: tuple[Kafka, Network], trouble: str) -> None:
    """The host is not waited for by it: all stamps are made while the network is bad, and settled once it is good."""
    kafka, network = behind
    topic = trouble.replace(" ", "-")
    kafka.create_topic(topic)
    probe = Probe("orders", "router", f"kafka://127.0.0.1:{network_port(kafka)}/{topic}")
    network.latency_s = 0.3 if trouble == "latency" else 0.0
    network.bytes_per_s = 1.0 if trouble == "a byte a second" else float("inf")
    try:
        for number in range(STAMPS):
            probe.arrived(number, NOW_US)
            if trouble == "resets" and number % 2_000 == 0:
                network.reset()
                time.sleep(0.05)
        if trouble == "a byte a second":
            assert not probe.flush(1.0)
    finally:
        network.latency_s, network.bytes_per_s = 0.0, float("inf")
    network.reset()
    assert probe.flush(PATIENCE_S)
    probe.close()
    check_all_is_there_or_counted(kafka, topic, probe)


def network_port(kafka: Kafka) -> int:
    """Return the port at which clients reach the broker."""
    return int(kafka.more["advertised.listeners"].rpartition(":")[2])
