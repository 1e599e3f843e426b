"""Services that know nothing of Hopwatch send their spans to ``hopwatch tap otlp``, by the SDK of OpenTelemetry.

Three services with three clients of Kafka over a real broker, started by OpenTelemetry's own launcher.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from servers.kafka import Kafka
from servers.process import PATIENCE_S, Process, answers, free_ports, until
from tests.support.judged_spool import judge_spool
from tests.support.program import ProgramProcess

MESSAGES: Final = 100
SKIPPED: Final = 3
SHOP: Final = """
import sys
from pathlib import Path
from confluent_kafka import Producer

brokers, topic, count, end = sys.argv[1:]
producer = Producer({"bootstrap.servers": brokers})
for number in range(int(count)):
    producer.produce(topic, str(number))
producer.flush()
while not Path(end).exists():
    producer.poll(0.1)
"""
ROUTER: Final = """
import asyncio, sys
from pathlib import Path
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

async def route(brokers, source, target, end):
    consumer = AIOKafkaConsumer(source, bootstrap_servers=brokers, group_id="router", auto_offset_reset="earliest")
    async with AIOKafkaProducer(bootstrap_servers=brokers) as producer, consumer:
        while not Path(end).exists():
            for messages in (await consumer.getmany(timeout_ms=100)).values():
                for message in messages:
                    await producer.send_and_wait(target, message.value)

asyncio.run(route(*sys.argv[1:]))
"""
BILLING: Final = """
import sys
from pathlib import Path
from kafka import KafkaConsumer, TopicPartition

brokers, topic, skipped, end = sys.argv[1:]
consumer = KafkaConsumer(bootstrap_servers=brokers, auto_offset_reset="earliest", consumer_timeout_ms=100)
place = TopicPartition(topic, 0)
consumer.assign([place])
consumer.seek(place, 0)
while not Path(end).exists():
    for message in consumer:
        if message.offset == 50:
            consumer.seek(place, 51 + int(skipped))  # the bug
consumer.close()
"""
LAUNCHER: Final = Path(sys.executable).with_name("opentelemetry-instrument")


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[tuple[str, Process]]:
    """Yield the URL and the process of a tap of which each service is one process."""
    (port,) = free_ports(1)
    flags = [flag for name in ("shop", "router", "billing") for flag in ("--instances", f"{name}=1")]
    command = ["hopwatch", "tap", "otlp", "--port", str(port), "--sink", f"spool:{tmp_path / 'spool'}", *flags]
    process = ProgramProcess(command, tmp_path / "said")
    try:
        until(lambda: answers(port) or not process.is_alive, "the tap answers")
        process.check("the tap")
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()


def start_traced(folder: Path, url: str, service: str, script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a service as its team does; its SDK tells of itself every second."""
    path = folder / f"{service}.py"
    path.write_text(script)
    variables = {
        "OTEL_SERVICE_NAME": service,
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={service}-1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_TRACES_EXPORTER": "otlp_proto_http",
        "OTEL_METRICS_EXPORTER": "otlp_proto_http",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "500",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true",
    }
    command = [str(LAUNCHER), sys.executable, str(path), *arguments]
    with (folder / f"{service}.out").open("wb") as out:
        return subprocess.Popen(command, env=os.environ | variables, stdout=out, stderr=out)


@pytest.mark.usefixtures("early_in_a_minute")
def test_messages_that_are_missing_are_named_by_their_spans(
    kafka: Kafka, tmp_path: Path, tap: tuple[str, Process]
) -> None:
    """Those that a consumer has skipped, and no other; nothing is sure in a minute that began before the tap."""
    url, process = tap
    end = tmp_path / "end"
    for topic in ("otlp-orders", "otlp-routed"):
        kafka.create_topic(topic)
    brokers, ending = kafka.bootstrap, str(end)
    services = [
        start_traced(tmp_path, url, "billing", BILLING, brokers, "otlp-routed", str(SKIPPED), ending),
        start_traced(tmp_path, url, "router", ROUTER, brokers, "otlp-orders", "otlp-routed", ending),
        start_traced(tmp_path, url, "shop", SHOP, brokers, "otlp-orders", str(MESSAGES), ending),
    ]
    said = tmp_path / "said"
    try:
        until(lambda: said.read_text().count("is told from now on") == len(services), "the services are told")
    finally:
        end.touch()
        for service in services:
            service.wait(PATIENCE_S)
    process.stop()
    streams = (
        '[streams.otlp-orders]\npath = "shop -> router"\nstamps = { shop = "out", router = "in" }\n'
        '[streams.otlp-routed]\npath = "router -> billing"\nstamps = { router = "out", billing = "in" }\n'
    )
    found = judge_spool(tmp_path, streams)
    for name, lost in (("otlp-orders", 0), ("otlp-routed", SKIPPED)):
        windows = found[name]["windows"]
        assert sum(window["known"] for window in windows) == MESSAGES
        assert [sum(window[figure] for window in windows) for figure in ("lost", "lost_lower")] == [lost, 0]
