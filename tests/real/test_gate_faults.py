"""The gate under faults: whatever it acknowledged is in the topic, once sent, as it was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import httpx
import orjson
import pytest

from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from servers.kafka import Kafka
from servers.process import answers, free_ports, until
from tests.real.event_producers import Producers, compared
from tests.real.gate_command import RUN
from tests.repository import ROOT
from tests.support.gate_client import ORDER, configured
from tests.support.program import ProgramProcess

KILLS: Final = (2, 50)
"""How often the gate is killed, as a rule and with --soak."""
CODEC: Final = Codec(Schema.parse(orjson.dumps(ORDER)))


class Gate:
    """A gate over topics of a cluster, that can be killed and started again."""

    def __init__(self, folder: Path, kafka: Kafka, topic: str) -> None:
        """Write its configuration."""
        self.folder, self.config = folder, folder / "hopwatch.toml"
        self.config.write_text(configured(kafka.url(topic), f'rejected = "{kafka.url(topic)}.rejected"'))
        (self.port,) = free_ports(1)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [*RUN, "--config", str(self.config), "--port", str(self.port)]
        self.process = ProgramProcess(command, self.folder / "said", folder=ROOT)
        until(self._answers, "the gate")

    def register(self) -> None:
        """Give the stream a schema."""
        answer = httpx.put(f"http://127.0.0.1:{self.port}/subjects/orders/schemas", json=ORDER)
        assert answer.status_code in {200, 201}, answer.text

    def _answers(self) -> bool:
        self.process.check("the gate")
        return answers(self.port)


@contextmanager
def under_load(folder: Path, kafka: Kafka, topic: str) -> Iterator[tuple[Gate, Producers]]:
    """Yield a gate that producers send to; behind the block they have ended, and the gate still runs."""
    kafka.create_topic(topic, 3, {"min.insync.replicas": str(min(2, kafka.size))})
    kafka.create_topic(f"{topic}.rejected", 1)
    gate = Gate(folder, kafka, topic)
    gate.start()
    try:
        gate.register()
        producers = Producers(gate.port)
        producers.start()
        yield gate, producers
        producers.end()
    finally:
        gate.process.kill()


def check(kafka: Kafka, topic: str, producers: Producers) -> None:
    """Hold a topic against what the producers know."""
    found = compared(kafka, topic, CODEC, producers)
    retries = producers.sent.total() - len(producers.sent)
    assert len(producers.acknowledged) > 100
    assert (found.lost, found.phantom, found.corrupt, found.more_than_sent) == (set(), set(), [], set())
    assert found.duplicates <= retries


def test_a_gate_that_is_killed_loses_nothing_that_it_acknowledged(
    kafka: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """SIGKILL at random moments under load: lost 0, phantom 0, corrupt 0, duplicates at most as many as retries."""
    kills, chance = times(*KILLS), Random(5)
    with under_load(tmp_path, kafka, "gate-killed") as (gate, producers):
        for _ in range(kills):
            time.sleep(chance.random())
            gate.process.kill()
            gate.start()
        time.sleep(0.5)
    assert producers.statuses[0] >= kills
    check(kafka, "gate-killed", producers)


@pytest.mark.soak  # test_brokers_die.py kills brokers, and tests/gate has answers of 503, by default
def test_brokers_that_die_take_nothing_that_was_acknowledged(three_brokers: Kafka, tmp_path: Path) -> None:
    """One of three, then two, which is below min ISR: what is not taken is 503, sent again, and then it is there."""
    with under_load(tmp_path, three_brokers, "gate-brokers") as (_, producers):
        time.sleep(1)
        three_brokers.kill(2)
        time.sleep(2)
        three_brokers.restart(2)
        time.sleep(1)
        three_brokers.kill(0)
        three_brokers.kill(1)
        # For longer than the gate waits for a broker.
        until(lambda: producers.statuses[503] > 0, "an answer of 503")
        three_brokers.restart(0)
        three_brokers.restart(1)
        time.sleep(2)
    check(three_brokers, "gate-brokers", producers)
