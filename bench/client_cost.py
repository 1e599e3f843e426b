"""Cost of a message in Python clients of Kafka, bare and stamped, in turns in one process beside a broker."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from rich.table import Table

from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.integrations import aiokafka, confluent_kafka, kafka_python
from hopwatch.probes import Probe
from servers.kafka import Kafka

MESSAGES: Final = 20_000
ROUNDS: Final = 5
VALUE: Final = b"x" * 100
AT_ONCE: Final = 500
"""Messages of aiokafka that are sent before it is waited for their deliveries."""

Instrument = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ClientCost:
    """Cost of a message, sent or received, in µs: in each round, sorted; and the median of CPU in all threads."""

    client: str
    step: str
    is_stamped: bool
    us: tuple[float, ...]
    cpu_us: float


class _Clock:
    """Stopwatch of a step: the time that passed, and the processor's in all threads, in µs a message."""

    def __enter__(self) -> Self:
        self._since = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        passed_s, cpu_s = time.perf_counter() - self._since[0], time.process_time() - self._since[1]
        self.figures = passed_s / MESSAGES * 1e6, cpu_s / MESSAGES * 1e6


def send_confluent_kafka(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Send by confluent-kafka."""
    producer = wrap(Producer({"bootstrap.servers": brokers, "queue.buffering.max.messages": 2 * MESSAGES}))
    with _Clock() as clock:
        for _ in range(MESSAGES):
            producer.produce(topic, VALUE)
            producer.poll(0)
        producer.flush()
    return clock.figures


def receive_confluent_kafka(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Receive by confluent-kafka."""
    settings = {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = wrap(Consumer(settings))
    consumer.subscribe([topic])
    consumer.poll(60)
    with _Clock() as clock:
        for _ in range(MESSAGES - 1):
            consumer.poll(60)
    consumer.close()
    return clock.figures


def send_aiokafka(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Send by aiokafka."""

    async def send() -> tuple[float, float]:
        async with wrap(AIOKafkaProducer(bootstrap_servers=brokers)) as producer:
            with _Clock() as clock:
                for _ in range(MESSAGES // AT_ONCE):
                    await asyncio.gather(*[await producer.send(topic, VALUE) for _ in range(AT_ONCE)])
        return clock.figures

    return asyncio.run(send())


def receive_aiokafka(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Receive by aiokafka."""

    async def receive() -> tuple[float, float]:
        bare = AIOKafkaConsumer(topic, bootstrap_servers=brokers, auto_offset_reset="earliest")
        async with wrap(bare) as consumer:
            await consumer.getone()
            with _Clock() as clock:
                for _ in range(MESSAGES - 1):
                    await consumer.getone()
        return clock.figures

    return asyncio.run(receive())


def send_kafka_python(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Send by kafka-python."""
    producer = wrap(KafkaProducer(bootstrap_servers=brokers))
    with _Clock() as clock:
        for _ in range(MESSAGES):
            producer.send(topic, VALUE)
        producer.flush()
    producer.close()
    return clock.figures


def receive_kafka_python(brokers: str, topic: str, wrap: Instrument) -> tuple[float, float]:
    """Receive by kafka-python."""
    consumer = wrap(KafkaConsumer(topic, bootstrap_servers=brokers, auto_offset_reset="earliest"))
    next(consumer)
    with _Clock() as clock:
        for _ in range(MESSAGES - 1):
            next(consumer)
    consumer.close()
    return clock.figures


_CLIENTS: Final = {
    "confluent-kafka": (send_confluent_kafka, receive_confluent_kafka, confluent_kafka.instrument),
    "aiokafka": (send_aiokafka, receive_aiokafka, aiokafka.instrument),
    "kafka-python": (send_kafka_python, receive_kafka_python, kafka_python.instrument),
}


def measure(scratch: Path, tell: Progress) -> list[ClientCost]:
    """Return what a message costs in each client, sent and received, bare and stamped."""
    found: dict[tuple[str, str, bool], list[tuple[float, float]]] = defaultdict(list)
    broker = Kafka(scratch / "broker")
    try:
        broker.start()
        for number in range(ROUNDS):
            tell(f"round {number + 1} of {ROUNDS}: {MESSAGES:,} messages a client")
            for client, (send, receive, instrument) in _CLIENTS.items():
                for is_stamped in (False, True):
                    topic = f"{client}-{number}-{is_stamped}".lower()
                    broker.create_topic(topic)
                    for step, run, node in (("send", send, "shop"), ("receive", receive, "billing")):
                        if is_stamped:
                            with Probe("orders", node, f"spool:{scratch / 'spool'}") as probe:
                                figures = run(broker.bootstrap, topic, partial(instrument, probe=probe))
                        else:
                            figures = run(broker.bootstrap, topic, _keep)
                        found[client, step, is_stamped].append(figures)
    finally:
        broker.stop()
    return [
        ClientCost(*way, tuple(sorted(us for us, _ in rounds)), median(cpu for _, cpu in rounds))
        for way, rounds in found.items()
    ]


def build_table(costs: list[ClientCost]) -> Table:
    """Return the table of the costs: a row for a client and a step, bare beside stamped."""
    table = new_table(
        "Cost of a message in clients of Kafka",
        ("a message", ""),
        ("bare, µs", "stamped, µs", "bare, CPU µs", "stamped, CPU µs"),
    )
    by_way = {(cost.client, cost.step, cost.is_stamped): cost for cost in costs}
    for client, step, is_stamped in by_way:
        if not is_stamped:
            bare, stamped = (by_way[client, step, chosen] for chosen in (False, True))
            spans = [
                f"{format_number(median(one.us), 1)} ({format_number(one.us[0], 1)} to {format_number(one.us[-1], 1)})"
                for one in (bare, stamped)
            ]
            table.add_row(client, step, *spans, *(format_number(one.cpu_us, 1) for one in (bare, stamped)))
    return table


def _keep(client: object) -> object:
    return client
