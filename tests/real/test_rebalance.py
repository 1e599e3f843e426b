"""Tests of a rebalance of a real consumer group, by the default settings of its clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer

from hopwatch import Probe
from hopwatch.integrations.confluent_kafka import instrument
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.markers import query_markers
from servers.kafka import Kafka
from tests.real.monitor_process import Monitor
from tests.real.program_folder import Workplace

PARTITIONS: Final = 4
ALONE_S: Final = 25
BOTH_S: Final = 45
PATIENCE_S: Final = 120


class Client:
    """Client that does one step after the other in a thread, and stamps with a probe, until it is closed."""

    def __init__(self, probe: Probe, step: Callable[[], object], end: Callable[[], object]) -> None:
        """Begin."""
        self._probe, self._step, self._end = probe, step, end
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End, and send the last stamps."""
        self._ended.set()
        self._thread.join()
        self._end()
        self._probe.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._step()


def start_reader(kafka: Kafka, name: str) -> Client:
    """Start a consumer of the group with a probe of its own name."""
    probe = Probe("orders", "b", kafka.url("stamps"), probe=name)
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "b", "auto.offset.reset": "earliest"}
    consumer = instrument(Consumer(settings), probe=probe)
    consumer.subscribe(["orders"])
    return Client(probe, lambda: consumer.poll(0.1), consumer.close)


def start_producer(kafka: Kafka) -> Client:
    """Start a producer that sends to all partitions by turns."""
    probe = Probe("orders", "a", kafka.url("stamps"))
    producer = instrument(Producer({"bootstrap.servers": kafka.bootstrap}), probe=probe)

    def send() -> None:
        for partition in range(PARTITIONS):
            producer.produce("orders", b"x", partition=partition)
        producer.poll(0.1)

    return Client(probe, send, producer.flush)


@pytest.mark.soak  # tests/monitor/accounting/test_partition_moves.py has readers of partitions by default
def test_a_rebalance_of_a_consumer_group_is_marked(kafka: Kafka, tmp_path: Path) -> None:
    """Soon after a second consumer joins; steady reading by both makes no marker."""
    kafka.create_topic("stamps", 2)
    kafka.create_topic("orders", PARTITIONS)
    streams = '[streams.orders]\npath = "a -> b"'
    work = Workplace(tmp_path / "rebalance", kafka.url("stamps"), streams=streams, monitor="")
    monitor = Monitor(work).start()
    monitor.until(lambda: "hopwatch: watching" in work.words(), "the start")
    clients = [start_producer(kafka), start_reader(kafka, "first")]
    time.sleep(ALONE_S)
    joined_s = time.time()
    clients.append(start_reader(kafka, "second"))
    time.sleep(BOTH_S)
    store, ends_s = dialect.create_engine(work.store_url), time.time() + PATIENCE_S
    found: list[Marker] = []
    while not found and time.time() < ends_s:
        with store.begin() as connection:
            found = query_markers(connection, "orders", 0, 2**62)
        time.sleep(1)
    for one in clients:
        one.close()
    monitor.stop()
    (marker,) = found
    after_s = marker.at_us / 1_000_000 - joined_s
    print(f"{marker.text}, {after_s:.1f} s after the second consumer")  # noqa: T201 - for whoever runs it
    assert marker.text.startswith("rebalance at b: moved partitions ")
    assert 0 <= after_s <= ALONE_S
