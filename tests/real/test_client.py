"""The client of the gate under kills: whatever it accepted is in the topic, as it was sent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import httpx
import orjson

from hopwatch.gate import ids
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import answers, free_ports, until
from tests.real.event_producers import payload, records
from tests.real.gate_command import RUN
from tests.repository import ROOT
from tests.support.gate_client import ORDER, configured
from tests.support.program import ProgramProcess

TOPIC: Final = "client-killed"
KILLS: Final = (4, 50)
"""How often the gate and the producer are killed, by turns, as a rule and with --soak."""
ENDLESS: Final = 1_000_000
CODEC: Final = Codec(Schema.parse(orjson.dumps(ORDER)))


class Service:
    """A gate over a broker, and a producer with a spool; both can be killed and started again."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        """Write the configuration of the gate."""
        self.folder, self.config = folder, folder / "hopwatch.toml"
        self.config.write_text(configured(kafka.url(TOPIC), f'rejected = "{kafka.url(TOPIC)}.rejected"'))
        (self.port,) = free_ports(1)
        self.notes = folder / "accepted"

    def start_gate(self) -> None:
        """Start the gate, and wait until it answers."""
        command = [*RUN, "--config", str(self.config), "--port", str(self.port)]
        self.gate = ProgramProcess(command, self.folder / "gate-said", folder=ROOT)
        until(lambda: answers(self.port), "the gate")

    def start_producer(self, count: int) -> None:
        """Start a producer of so many events."""
        program = ["tests.real.client_process", f"http://127.0.0.1:{self.port}"]
        self.producer = ProgramProcess(
            [*program, str(self.folder / "spool"), str(self.notes), str(count)], self.folder / "said", folder=ROOT
        )

    def await_accepted(self, count: int) -> None:
        """Wait until so many events more are accepted."""
        before = len(self.accepted())
        until(lambda: len(self.accepted()) > before + count, "events are accepted")

    def accepted(self) -> list[str]:
        """Return the ids of the events that the client has accepted."""
        return self.notes.read_text("ascii").split() if self.notes.exists() else []


def test_what_the_client_accepted_outlives_kills_of_it_and_of_the_gate(
    kafka: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """SIGKILL of gate and producer by turns: lost 0, corrupt 0, in order of their first arrival, the spool is empty."""
    kafka.create_topic(TOPIC, 1)
    kafka.create_topic(f"{TOPIC}.rejected", 1)
    service, chance = Service(tmp_path, kafka), Random(7)
    service.start_gate()
    assert httpx.put(f"http://127.0.0.1:{service.port}/subjects/orders/schemas", json=ORDER).status_code < 300
    service.start_producer(ENDLESS)
    try:
        for number in range(times(*KILLS)):
            service.await_accepted(200)
            time.sleep(chance.random())
            if number % 2:
                service.producer.kill()
                service.start_producer(ENDLESS)
            else:
                service.gate.kill()
                # With the gate away events go on being accepted.
                service.await_accepted(100)
                service.start_gate()
        service.producer.kill()
        service.start_producer(0)
        assert service.producer.wait(180) == 0, (tmp_path / "said").read_text()
    finally:
        service.producer.kill()
        service.gate.kill()
    accepted, found = service.accepted(), records(kafka, TOPIC)
    seen_ids = Counter(headers[ID_HEADER].decode() for headers, _ in found)
    assert len(accepted) > 500
    assert set(accepted) - seen_ids.keys() == set()
    # A kill may come between the acceptance and its note, once for each kill.
    assert len(seen_ids.keys() - set(accepted)) <= times(*KILLS)
    for headers, value in found:
        event_id = headers[ID_HEADER].decode()
        assert CODEC.decode(value) == payload(event_id)
        assert int(headers[TIME_HEADER]) == ids.uuid_time_us(ids.parse_uuid(event_id))
    firsts = [event_id for event_id in seen_ids if event_id in set(accepted)]
    assert firsts == accepted
    assert list((tmp_path / "spool" / "orders").iterdir()) == []
