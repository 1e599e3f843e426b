"""Services on the JVM that know nothing of Hopwatch, with interceptors by configuration, over a real broker."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.segment import read_frames
from hopwatch.probes.integrations.opentelemetry import MESSAGE_HEADER, MessageMark
from servers.kafka import JARS, JAVA, PROBE, Kafka
from servers.process import PATIENCE_S, until
from tests.support.judged_spool import judge_spool

MESSAGES: Final = 200
SKIPPED: Final = 3
SHOP: Final = """
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Shop {
    /** Brokers, sink, topic; numbers of the first message, and behind the last; pause in ms. */
    public static void main(String[] said) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0],
            "interceptor.classes", "hopwatch.probe.kafka.StampingProducerInterceptor",
            "hopwatch.service", "shop", "hopwatch.sink", said[1]);
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
            for (int number = Integer.parseInt(said[3]); number < Integer.parseInt(said[4]); number++) {
                producer.send(new ProducerRecord<>(said[2], String.valueOf(number))).get();
                System.out.println(number);
                Thread.sleep(Integer.parseInt(said[5]));
            }
        }
    }
}
"""
BILLING: Final = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Billing {
    /** Brokers, sink, topic; number of the last message; how many are skipped at 50. */
    public static void main(String[] said) throws Exception {
        // One at a time, so that it comes to stand at 50.
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0], "max.poll.records", 1,
            "group.id", "billing", "auto.offset.reset", "earliest", "auto.commit.interval.ms", 50,
            "interceptor.classes", "hopwatch.probe.kafka.StampingConsumerInterceptor",
            "hopwatch.service", "billing", "hopwatch.sink", said[1]);
        String last = said[3];
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(settings, text, text)) {
            var place = new TopicPartition(said[2], 0);
            consumer.assign(List.of(place));
            for (boolean hasAll = false; !hasAll; ) {
                for (var message : consumer.poll(Duration.ofMillis(100))) {
                    hasAll |= message.value().equals(last);
                    System.out.println(message.value());
                }
                if (consumer.position(place) == 50) {
                    consumer.seek(place, 50 + Integer.parseInt(said[4]));  // the bug
                }
            }
        }
    }
}
"""
LEAVER: Final = """
import hopwatch.probe.Probe;

public class Leaver {
    /** Sink; whether it waits to be told to end. */
    public static void main(String[] said) throws Exception {
        Probe probe = Probe.start("jvm-left", "leaver", said[0]);
        probe.arrived(7, System.currentTimeMillis() * 1_000);
        System.out.println(1);
        Thread.sleep(said[1].equals("waits") ? 100_000 : 0);
    }
}
"""


class Service:
    """Service on the JVM, started from its source; it prints the number of each message."""

    def __init__(self, folder: Path, name: str, script: str, *said: object, client: str = f"{JARS}/*") -> None:
        """Start it with a client of Kafka and the interceptors on its class path."""
        path = folder / f"{name}.java"
        path.write_text(script)
        self._printed = folder / f"{name}-{time.monotonic_ns()}.out"
        with self._printed.open("w") as printed:
            self._process = subprocess.Popen(
                [*JAVA, "-cp", f"{client}:{PROBE}/*", str(path), *map(str, said)],
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
            )

    def numbers(self) -> list[int]:
        """Return the messages that it has printed so far."""
        return [int(line) for line in self._printed.read_text().split("\n")[:-1]]

    def wait(self) -> None:
        """Wait for its end."""
        _, told = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, told

    def terminate(self) -> None:
        """Tell it to end once it has printed something."""
        until(lambda: bool(self.numbers()), "a first line")
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE_S)

    def kill_at(self, count: int) -> list[int]:
        """Kill it once it has printed so many messages, and return them."""
        until(lambda: len(self.numbers()) >= count, f"{count} messages")
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)
        return self.numbers()


def judge(folder: Path, topic: str) -> list[dict[str, Any]]:
    """Judge what both services have stamped, and return the windows."""
    stream = f'[streams.{topic}]\npath = "shop -> billing"\nstamps = {{ shop = "out", billing = "in" }}\n'
    windows: list[dict[str, Any]] = judge_spool(folder, stream)[topic]["windows"]
    return windows


def count_windows(windows: list[dict[str, Any]], name: str) -> int:
    """Return a figure of all windows."""
    return sum(window[name] for window in windows)


def read_topic(kafka: Kafka, topic: str) -> Iterator[Any]:
    """Yield the messages of a topic, for as long as somebody asks."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        while messages := consumer.consume(1, timeout=PATIENCE_S):
            yield from messages
    finally:
        consumer.close()


@pytest.mark.usefixtures("early_in_a_minute")
def test_lost_messages_of_services_on_the_jvm_are_named(kafka: Kafka, tmp_path: Path) -> None:
    """Those are lost that a consumer has skipped, and no other, by the marks that services in Python read too."""
    kafka.create_topic("jvm-orders")
    said = kafka.bootstrap, f"spool:{tmp_path / 'spool'}", "jvm-orders"
    services = [
        Service(tmp_path, "Billing", BILLING, *said, MESSAGES - 1, SKIPPED),
        Service(tmp_path, "Shop", SHOP, *said, 0, MESSAGES, 0),
    ]
    for service in services:
        service.wait()
    windows = judge(tmp_path, "jvm-orders")
    assert [count_windows(windows, name) for name in ("known", "lost", "lost_lower", "lost_upper")] == [
        MESSAGES,
        SKIPPED,
        SKIPPED,
        SKIPPED,
    ]
    marks = [
        MessageMark.parse(dict(message.headers())[MESSAGE_HEADER])
        for message in islice(read_topic(kafka, "jvm-orders"), MESSAGES)
    ]
    assert {mark.destination for mark in marks} == {"jvm-orders"}
    lost = [
        one for window in windows for node in window["nodes"] if node["node"] == "billing" for one in node["lost_ids"]
    ]
    assert sorted(lost) == sorted(mark.message_id for mark in marks[50 : 50 + SKIPPED])


def test_services_that_are_killed_lose_no_message_for_sure(kafka: Kafka, tmp_path: Path) -> None:
    """Consumers that commit at once are killed before their stamps are sent, and so are producers: no false loss."""
    kafka.create_topic("jvm-killed")
    said = kafka.bootstrap, f"spool:{tmp_path / 'spool'}", "jvm-killed"
    sent = 0
    got: set[int] = set()
    for _ in range(3):
        shop = Service(tmp_path, "Shop", SHOP, *said, sent, 10_000, 5)
        billing = Service(tmp_path, "Billing", BILLING, *said, -1, SKIPPED)
        got.update(billing.kill_at(60))
        sent = shop.kill_at(80)[-1] + 1
    last = Service(tmp_path, "Billing", BILLING, *said, sent + 99, SKIPPED)
    Service(tmp_path, "Shop", SHOP, *said, sent, sent + 100, 0).wait()
    last.wait()
    got.update(last.numbers())
    assert len(got) == sent + 100 - SKIPPED
    windows = judge(tmp_path, "jvm-killed")
    assert count_windows(windows, "lost_lower") <= SKIPPED
    assert "UNKNOWN" in {window["verdict"] for window in windows}


def test_observations_go_to_a_topic(kafka: Kafka, tmp_path: Path) -> None:
    """A hello comes first, then what was stamped and a bye, under one key, with numbers from 0."""
    kafka.create_topic("jvm-sent")
    kafka.create_topic("jvm-observations")
    Service(tmp_path, "Shop", SHOP, kafka.bootstrap, kafka.url("jvm-observations"), "jvm-sent", 0, MESSAGES, 0).wait()
    keys, batches = set(), []
    for record in read_topic(kafka, "jvm-observations"):
        keys.add(record.key())
        batches.append(envelope.decode(record.value()))
        if batches[-1].kind is BatchKind.BYE:
            break
    assert [batch.seq for batch in batches] == list(range(len(batches)))
    assert batches[0].kind is BatchKind.HEARTBEAT
    assert {batch.kind for batch in batches[1:-1]} == {BatchKind.OBSERVATIONS}
    assert sum(batch.count for batch in batches) == MESSAGES
    (first,) = {(batch.stream, batch.node, batch.probe, batch.epoch_us) for batch in batches}
    assert keys == {".".join(map(str, first)).encode()}


def test_a_service_with_an_older_client_runs_as_ever(kafka: Kafka, tmp_path: Path) -> None:
    """Its producer is not told which message was acknowledged, and so marks none; its consumer stamps."""
    for topic in ("jvm-old", "jvm-new"):
        kafka.create_topic(topic)
    sink = f"spool:{tmp_path / 'spool'}"
    (old,) = JARS.with_name("connector").glob("kafka-clients-3.*.jar")
    client = ":".join(map(str, [old, *JARS.glob("slf4j-*.jar")]))
    Service(tmp_path, "Shop", SHOP, kafka.bootstrap, sink, "jvm-old", 0, 5, 0, client=client).wait()
    assert [message.headers() for message in islice(read_topic(kafka, "jvm-old"), 5)] == [None] * 5
    assert not (tmp_path / "spool").exists()
    Service(tmp_path, "Shop", SHOP, kafka.bootstrap, sink, "jvm-new", 0, 5, 0).wait()
    Service(tmp_path, "Billing", BILLING, kafka.bootstrap, sink, "jvm-new", 4, 0, client=client).wait()
    windows = [window for window in judge(tmp_path, "jvm-new") if window["known"]]
    assert [count_windows(windows, name) for name in ("known", "delivered", "lost_upper")] == [5, 5, 0]


@pytest.mark.parametrize("waits", [False, True])
def test_a_process_that_ends_sends_its_stamps(waits: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    """By itself or by SIGTERM: all is sent, and no bye, as other threads may have gone on."""
    service = Service(tmp_path, "Leaver", LEAVER, f"spool:{tmp_path / 'spool'}", "waits" if waits else "leaves")
    service.terminate() if waits else service.wait()
    batches = [
        envelope.decode(data[frame.start : frame.end])
        for path in sorted((tmp_path / "spool").rglob("*.seg"))
        for data in [path.read_bytes()]
        for frame in read_frames(data)
    ]
    assert [(batch.kind, batch.count) for batch in batches] == [(BatchKind.HEARTBEAT, 0), (BatchKind.OBSERVATIONS, 1)]
