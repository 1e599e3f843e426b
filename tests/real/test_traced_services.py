"""Services that know nothing of Hopwatch, traced by OpenTelemetry, over a real broker: their lost messages are named.

Three services with three clients of Kafka, started by OpenTelemetry's own launcher; environment variables are all that
is said of Hopwatch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from servers.kafka import Kafka
from servers.process import PATIENCE_S
from tests.support.judged_spool import judge_spool

MESSAGES: Final = 200
SKIPPED: Final = 3
SHOP: Final = """
import sys
from confluent_kafka import Producer

brokers, topic, count = sys.argv[1:]
producer = Producer({"bootstrap.servers": brokers})
for number in range(int(count)):
    producer.produce(topic, str(number), headers=[("tenant", b"7")])
producer.flush()
"""
ROUTER: Final = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

async def route(brokers, source, target, count):
    consumer = AIOKafkaConsumer(source, bootstrap_servers=brokers, group_id="router", auto_offset_reset="earliest")
    async with AIOKafkaProducer(bootstrap_servers=brokers) as producer, consumer:
        for _ in range(count):
            message = await consumer.getone()
            await producer.send_and_wait(target, message.value, headers=list(message.headers))

asyncio.run(route(*sys.argv[1:4], int(sys.argv[4])))
"""
BILLING: Final = """
import sys
from kafka import KafkaConsumer, TopicPartition

brokers, topic, count, skipped = sys.argv[1:]
consumer = KafkaConsumer(bootstrap_servers=brokers, group_id="billing", auto_offset_reset="earliest")
place = TopicPartition(topic, 0)
consumer.assign([place])
consumer.seek(place, 0)
for message in consumer:
    if message.offset == 50:
        consumer.seek(place, 51 + int(skipped))  # the bug
    if message.offset == int(count) - 1:
        break
consumer.close()
"""
LAUNCHER: Final = Path(sys.executable).with_name("opentelemetry-instrument")
HOPWATCH: Final = Path(sys.executable).with_name("hopwatch")
TRACED: Final = {
    "OTEL_PROPAGATORS": "tracecontext,baggage,hopwatch",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}


Starter = Callable[..., subprocess.Popen[str]]


def start_traced(folder: Path, service: str, script: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a service as its team does, with the variables of Hopwatch."""
    own = {"OTEL_SERVICE_NAME": service, "HOPWATCH_SINK": f"spool:{folder / 'spool'}"}
    return start(folder, service, script, [str(LAUNCHER)], arguments, TRACED | own | variables)


def start_instrumented(folder: Path, service: str, script: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a service that nobody traces, by the command that stamps."""
    flags = ["--service", service, "--sink", f"spool:{folder / 'spool'}", "--"]
    return start(folder, service, script, [str(HOPWATCH), "instrument", *flags], arguments, {})


def start(
    folder: Path,
    service: str,
    script: str,
    launcher: Sequence[str],
    arguments: Sequence[str],
    variables: Mapping[str, str],
) -> subprocess.Popen[str]:
    """Start a service by a launcher."""
    path = folder / f"{service}.py"
    path.write_text(script)
    with (folder / f"{service}.out").open("w") as out:
        return subprocess.Popen(
            [*launcher, sys.executable, str(path), *arguments],
            env=os.environ | variables,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )


def run_pipeline(
    kafka: Kafka, folder: Path, name: str, variables: Mapping[str, str] | None = None, start: Starter = start_traced
) -> dict[str, dict[str, Any]]:
    """Run the services until all has arrived, judge what was stamped, and return the windows of both streams."""
    orders, routed = f"{name}-orders", f"{name}-routed"
    for topic in (orders, routed):
        kafka.create_topic(topic)
    brokers, count = kafka.bootstrap, str(MESSAGES)
    services = [
        start(folder, "billing", BILLING, brokers, routed, count, str(SKIPPED), **(variables or {})),
        start(folder, "router", ROUTER, brokers, orders, routed, count, **(variables or {})),
        start(folder, "shop", SHOP, brokers, orders, count, **(variables or {})),
    ]
    for service in services:
        _, told = service.communicate(timeout=PATIENCE_S)
        assert service.returncode == 0, told
        assert "stamped" not in told
    return judge_spool(
        folder,
        f'[streams.{orders}]\npath = "shop -> router"\nstamps = {{ shop = "out", router = "in" }}\n'
        f'[streams.{routed}]\npath = "router -> billing"\nstamps = {{ router = "out", billing = "in" }}\n',
    )


def count_windows(windows: list[dict[str, Any]], name: str) -> int:
    """Return a figure of all windows of a stream."""
    return sum(window[name] for window in windows)


def find_lost_ids(windows: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the messages that billing has lost."""
    return [
        one for window in windows for node in window["nodes"] if node["node"] == "billing" for one in node["lost_ids"]
    ]


@pytest.mark.usefixtures("early_in_a_minute")
def test_lost_messages_of_traced_services_are_named(kafka: Kafka, tmp_path: Path) -> None:
    """Those are lost that a consumer has skipped, and no other; their ids begin with trace and span."""
    found = run_pipeline(kafka, tmp_path, "traced")
    orders, routed = found["traced-orders"]["windows"], found["traced-routed"]["windows"]
    assert {window["verdict"] for window in orders} == {"CLEAN"}
    assert [count_windows(orders, name) for name in ("known", "delivered", "lost_upper")] == [MESSAGES, MESSAGES, 0]
    known, lost = count_windows(routed, "known"), count_windows(routed, "lost")
    assert (known, lost) == (MESSAGES, SKIPPED)
    assert [count_windows(routed, name) for name in ("lost_lower", "lost_upper")] == [SKIPPED, SKIPPED]
    assert [len(one.split("-")) for one in find_lost_ids(routed)] == [3] * SKIPPED


@pytest.mark.usefixtures("early_in_a_minute")
def test_services_that_nobody_traces_are_stamped_by_a_command(kafka: Kafka, tmp_path: Path) -> None:
    """With a name and a sink, and nothing else: the lost messages are counted, and no trace leaves a service."""
    found = run_pipeline(kafka, tmp_path, "instrumented", start=start_instrumented)
    assert count_windows(found["instrumented-orders"]["windows"], "known") == MESSAGES
    assert count_windows(found["instrumented-orders"]["windows"], "lost_upper") == 0
    routed = found["instrumented-routed"]["windows"]
    assert [count_windows(routed, name) for name in ("known", "lost_lower", "lost_upper")] == [
        MESSAGES,
        SKIPPED,
        SKIPPED,
    ]


@pytest.mark.usefixtures("early_in_a_minute")
def test_messages_that_are_not_sampled_are_not_lost(kafka: Kafka, tmp_path: Path) -> None:
    """A tenth is sampled, and nothing else is known; what is lost of it is exact."""
    tenth = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}
    found = run_pipeline(kafka, tmp_path, "sampled", tenth)
    for name, skipped in (("orders", 0), ("routed", SKIPPED)):
        windows = found[f"sampled-{name}"]["windows"]
        assert 0 < count_windows(windows, "known") < MESSAGES / 2
        assert count_windows(windows, "lost_lower") == count_windows(windows, "lost_upper") <= skipped


@pytest.mark.usefixtures("early_in_a_minute")
def test_spans_that_an_sdk_drops_are_no_messages(kafka: Kafka, tmp_path: Path) -> None:
    """With room for one span in its queue most of them go; the lost messages are the same."""
    dropping = {
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_BSP_MAX_QUEUE_SIZE": "1",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1",
    }
    found = run_pipeline(kafka, tmp_path, "dropped", dropping)
    assert (tmp_path / "shop.out").read_text().count('"name": "dropped-orders send"') < MESSAGES / 2
    assert {window["verdict"] for window in found["dropped-orders"]["windows"]} == {"CLEAN"}
    windows = found["dropped-routed"]["windows"]
    assert [count_windows(windows, name) for name in ("known", "lost_lower", "lost_upper")] == [
        MESSAGES,
        SKIPPED,
        SKIPPED,
    ]
