"""Services that know nothing of Hopwatch send their spans to ``hopwatch tap otlp``, by SDKs of OpenTelemetry.

Three services in Python, with three clients of Kafka, and two on the JVM, over a real broker; started by
OpenTelemetry's own launcher, and with its agent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from servers.kafka import AGENT, JARS, JAVA, Kafka
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
JVM_SHOP: Final = """
import java.io.File;
import java.util.Map;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Shop {
    /** Brokers, topic, number of messages, a file whose coming ends it. */
    public static void main(String[] said) throws Exception {
        var text = new StringSerializer();
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0]);
        try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
            for (int number = 0; number < Integer.parseInt(said[2]); number++) {
                producer.send(new ProducerRecord<>(said[1], String.valueOf(number)));
            }
            producer.flush();
            while (!new File(said[3]).exists()) {
                Thread.sleep(100);
            }
        }
    }
}
"""
JVM_BILLING: Final = """
import java.io.File;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Billing {
    /** Brokers, topic, how many messages are skipped at 50, a file whose coming ends it. */
    public static void main(String[] said) throws Exception {
        var text = new StringDeserializer();
        // One at a time, so that it comes to stand at 50.
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0], "max.poll.records", 1,
            "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<String, String>(settings, text, text)) {
            var place = new TopicPartition(said[1], 0);
            consumer.assign(List.of(place));
            while (!new File(said[3]).exists()) {
                for (var message : consumer.poll(Duration.ofMillis(100))) {
                    message.value();
                }
                if (consumer.position(place) == 50) {
                    consumer.seek(place, 50 + Integer.parseInt(said[2]));  // the bug
                }
            }
        }
    }
}
"""
LAUNCHER: Final = Path(sys.executable).with_name("opentelemetry-instrument")


class Tap(NamedTuple):
    """A tap that runs: its URLs for OTLP over HTTP and over gRPC, and its process."""

    url: str
    grpc_url: str
    process: Process


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Tap]:
    """Yield a tap of which each service is one process."""
    port, grpc_port = free_ports(2)
    flags = [flag for name in ("shop", "router", "billing") for flag in ("--instances", f"{name}=1")]
    ports = ["--port", str(port), "--grpc-port", str(grpc_port)]
    command = ["hopwatch", "tap", "otlp", *ports, "--sink", f"spool:{tmp_path / 'spool'}", *flags]
    process = ProgramProcess(command, tmp_path / "said")
    try:
        until(lambda: answers(port) or not process.is_alive, "the tap answers")
        process.check("the tap")
        yield Tap(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{grpc_port}", process)
    finally:
        process.kill()


def start_python(
    folder: Path, url: str, service: str, script: str, *arguments: str, exporter: str = "otlp_proto_http"
) -> subprocess.Popen[bytes]:
    """Start a service in Python by OpenTelemetry's launcher, as its team does."""
    path = folder / f"{service}.py"
    path.write_text(script)
    variables = {
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={service}-1",
        "OTEL_TRACES_EXPORTER": exporter,
        "OTEL_METRICS_EXPORTER": exporter,
        "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true",
    }
    return start(folder, url, service, [str(LAUNCHER), sys.executable, str(path), *arguments], variables)


def start_jvm(folder: Path, url: str, service: str, script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a service on the JVM with OpenTelemetry's agent, from its source."""
    path = folder / f"{service.capitalize()}.java"
    path.write_text(script)
    (agent,) = AGENT.glob("*.jar")
    # A program that is run from its source looks like a tool of the JDK to the agent.
    variables = {"OTEL_JAVAAGENT_ENABLED": "true", "OTEL_EXPERIMENTAL_SDK_TELEMETRY_VERSION": "latest"}
    command = [*JAVA, f"-javaagent:{agent}", "-cp", f"{JARS}/*", str(path), *arguments]
    return start(folder, url, service, command, variables)


def start(
    folder: Path, url: str, service: str, command: Sequence[str], variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a service whose SDK tells of itself every second."""
    common = {
        "OTEL_SERVICE_NAME": service,
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "500",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }
    with (folder / f"{service}.out").open("wb") as out:
        return subprocess.Popen(command, env=os.environ | common | dict(variables), stdout=out, stderr=out)


def end_told_services(services: Sequence[subprocess.Popen[bytes]], end: Path, tap: Process) -> None:
    """Wait until the tap says of each service that it is told, and end them and the tap."""
    try:
        until(lambda: tap.log.read_text().count("is told from now on") == len(services), "the services are told")
    finally:
        end.touch()
        for service in services:
            service.wait(PATIENCE_S)
    tap.stop()


def count_messages(windows: Sequence[dict[str, Any]]) -> list[int]:
    """Return how many messages of all windows are known, missing, and surely lost."""
    return [sum(window[figure] for window in windows) for figure in ("known", "lost", "lost_lower")]


@pytest.mark.usefixtures("early_in_a_minute")
def test_messages_that_are_missing_are_named_by_their_spans(kafka: Kafka, tmp_path: Path, tap: Tap) -> None:
    """Those that a consumer has skipped, over HTTP and gRPC; nothing is sure in a minute that began before the tap."""
    end = tmp_path / "end"
    for topic in ("otlp-orders", "otlp-routed"):
        kafka.create_topic(topic)
    brokers, ending = kafka.bootstrap, str(end)
    services = [
        start_python(tmp_path, tap.url, "billing", BILLING, brokers, "otlp-routed", str(SKIPPED), ending),
        start_python(
            tmp_path, tap.grpc_url, "router", ROUTER, brokers, "otlp-orders", "otlp-routed", ending,
            exporter="otlp_proto_grpc",
        ),
        start_python(tmp_path, tap.url, "shop", SHOP, brokers, "otlp-orders", str(MESSAGES), ending),
    ]  # fmt: skip
    end_told_services(services, end, tap.process)
    streams = (
        '[streams.otlp-orders]\npath = "shop -> router"\nstamps = { shop = "out", router = "in" }\n'
        '[streams.otlp-routed]\npath = "router -> billing"\nstamps = { router = "out", billing = "in" }\n'
    )
    found = judge_spool(tmp_path, streams)
    assert count_messages(found["otlp-orders"]["windows"]) == [MESSAGES, 0, 0]
    assert count_messages(found["otlp-routed"]["windows"]) == [MESSAGES, SKIPPED, 0]


@pytest.mark.usefixtures("early_in_a_minute")
def test_services_on_the_jvm_are_told_as_well(kafka: Kafka, tmp_path: Path, tap: Tap) -> None:
    """With the agent of OpenTelemetry, which knows Kafka's clients and tells of its spans."""
    end = tmp_path / "end"
    place = kafka.bootstrap, "otlp-jvm"
    kafka.create_topic("otlp-jvm")
    services = [
        start_jvm(tmp_path, tap.url, "shop", JVM_SHOP, *place, str(MESSAGES), str(end)),
        start_jvm(tmp_path, tap.url, "billing", JVM_BILLING, *place, str(SKIPPED), str(end)),
    ]
    end_told_services(services, end, tap.process)
    streams = '[streams.otlp-jvm]\npath = "shop -> billing"\nstamps = { shop = "out", billing = "in" }\n'
    windows = judge_spool(tmp_path, streams)["otlp-jvm"]["windows"]
    assert count_messages(windows) == [MESSAGES, SKIPPED, 0]
