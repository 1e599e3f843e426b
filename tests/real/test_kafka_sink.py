"""Tests of the Kafka sink against real brokers: what is taken arrives; brokers that are down cost the host little."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from hopwatch import Probe
from hopwatch.monitor.kernel.books import NO_OFFSET_US, BatchFact, Book, absorb
from hopwatch.probes.clock import SystemClock
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.kafka import OFFSET_HEADER, KafkaPlace
from hopwatch.probes.sinks import kafka as sinks_kafka
from hopwatch.probes.sinks.kafka import KafkaSink
from servers.kafka import Kafka
from servers.process import free_ports, until

ROOT = Path(__file__).parents[2]
NOW_US = time.time_ns() // 60_000_000_000 * 60_000_000


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """Return a topic of the test's own."""
    name = request.node.name.replace("[", "-").replace("]", "")[:200]
    kafka.create_topic(name, 2)
    return str(name)


def read(kafka: Kafka, topic: str, until_bye_of: int = 1) -> list[Batch]:
    """Return all batches on a topic, as soon as it has so many byes."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    batches: list[Batch] = []

    def has_all() -> bool:
        batches.extend(decode(message.value() or b"") for message in consumer.consume(1_000, 0.2))
        return sum(batch.kind is BatchKind.BYE for batch in batches) >= until_bye_of and is_at_end()

    def is_at_end() -> bool:
        """Tell whether every partition was read: a bye on one says nothing of the others."""
        positions = consumer.position(consumer.assignment())
        # The position of a partition of which nothing was read is negative.
        return all(max(place.offset, 0) == consumer.get_watermark_offsets(place)[1] for place in positions)

    try:
        until(has_all, f"{until_bye_of} byes")
    finally:
        consumer.close()
    return batches


def test_what_a_probe_stamps_is_on_the_topic(kafka: Kafka, topic: str) -> None:
    """Every batch once, in order, under one key, with the bye at the end."""
    with Probe("orders", "router", kafka.url(topic), strict=True) as probe:
        probe.arrived(7, NOW_US)
        assert probe.flush(30) is True
        probe.arrived(8, NOW_US)
    batches = read(kafka, topic)
    assert [(batch.seq, batch.kind, batch.count) for batch in batches] == [
        (0, BatchKind.HEARTBEAT, 0),
        (1, BatchKind.OBSERVATIONS, 1),
        (2, BatchKind.OBSERVATIONS, 1),
        (3, BatchKind.BYE, 0),
    ]


class AheadClock(SystemClock):
    """A clock that is 150 ms ahead."""

    def wall_ns(self) -> int:
        """Return a time of day that is wrong."""
        return time.time_ns() + 150_000_000


def test_the_clock_of_a_probe_is_measured_against_the_broker_s(
    kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the records alone: the bounds hold at every record, and one of them is a tight one."""
    monkeypatch.setattr(sinks_kafka, "CLOCK_EVERY_S", 0.0)
    with Probe("orders", "router", kafka.url(topic), clock=AheadClock(), strict=True) as probe:
        for number in range(10):
            probe.arrived(number, NOW_US)
            assert probe.flush(30) is True
    read(kafka, topic)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": f"{topic}-2", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    book, found = Book("orders", "router", "p", 0), []
    while not book.said_bye:
        for message in consumer.consume(1, 5):
            batch, (_, moment_ms) = decode(message.value() or b""), message.timestamp()
            bound_us = int(dict(message.headers() or []).get(OFFSET_HEADER, NO_OFFSET_US))
            came = batch.seq, moment_ms * 1_000, 0, batch.sent_at_us, 0, 0, batch.count, batch.kind, 0
            book, _ = absorb(book, [BatchFact(*came, bound_us)])
            if bound_us != NO_OFFSET_US:
                assert book.clock_offset is not None
                assert book.clock_offset.low_us <= 150_000 <= book.clock_offset.high_us
                found.append(book.clock_offset.high_us - book.clock_offset.low_us)
    consumer.close()
    assert min(found) < 100_000


KILLED = """
import os, sys, time
from hopwatch import Probe
probe = Probe("orders", "router", sys.argv[1], announce_within_s=120)
os.kill(os.getpid(), 9)
"""


def test_a_probe_that_is_killed_as_soon_as_it_is_made_was_there(kafka: Kafka, topic: str) -> None:
    """Its hello was acknowledged before its host went on."""
    done = subprocess.run([sys.executable, "-c", KILLED, kafka.url(topic)], cwd=ROOT, check=False, timeout=180)
    assert done.returncode == -signal.SIGKILL
    with Probe("orders", "router", kafka.url(topic), probe="behind"):
        pass
    hello = next(batch for batch in read(kafka, topic) if batch.probe != "behind")
    assert (hello.seq, hello.kind, hello.count, hello.complete_through_us) == (
        0,
        BatchKind.HEARTBEAT,
        0,
        hello.epoch_us,
    )


def test_without_a_broker_the_hello_is_the_first_that_a_later_one_has(
    own_broker: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    """The host goes on after the bound, with one line in its log; what it stamps meanwhile comes behind the hello."""
    own_broker.create_topic("late")
    own_broker.kill(0)
    since_s = time.monotonic()
    probe = Probe("orders", "router", own_broker.url("late"))
    assert 1.0 <= time.monotonic() - since_s < 3.0
    probe.arrived(7, NOW_US)
    own_broker.restart(0)
    assert probe.flush(60)
    probe.close()
    batches = read(own_broker, "late")
    assert [(batch.seq, batch.kind) for batch in batches][:2] == [(0, BatchKind.HEARTBEAT), (1, BatchKind.OBSERVATIONS)]
    assert sum("could not announce itself within 1.0 s" in message for message in caplog.messages) == 1


def test_a_flush_says_whether_the_brokers_have_it(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody answers: it says so after its patience, and the log names the brokers once."""
    (port,) = free_ports(1)
    probe = Probe("orders", "router", f"kafka://127.0.0.1:{port}/t")
    probe.arrived(7, NOW_US)
    with caplog.at_level(logging.WARNING, "hopwatch.probe"):
        assert probe.flush(0.5) is False
        probe.close()
    assert f"the topic kafka://127.0.0.1:{port}/t has trouble: " in caplog.text
    assert "records for" in caplog.text
    assert "were not delivered" in caplog.text


def test_the_same_trouble_is_told_once_however_it_is_worded(caplog: pytest.LogCaptureFixture) -> None:
    """The client's words have durations in them: an outage of hours fills neither log nor memory."""
    sink = KafkaSink(KafkaPlace("127.0.0.1:9092", "t"), "i")
    for number in range(3):
        sink._on_error(KafkaError(KafkaError._TRANSPORT, f"Connection refused (after {number}ms in state CONNECT)"))
    sink._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    trouble = "the topic kafka://127.0.0.1:9092/t has trouble:"
    assert caplog.messages == [
        f"{trouble} Connection refused (after 0ms in state CONNECT)",
        f"{trouble} none answers as a broker does, or lets us in (1/1 brokers are down)",
    ]


def test_a_strict_probe_says_that_a_topic_cannot_be_written(kafka: Kafka) -> None:
    """Brokers that do not answer, and a topic that is not there, are told at once."""
    (port,) = free_ports(1)
    with pytest.raises(ValueError, match=f"the brokers 127.0.0.1:{port} cannot be reached: "):
        Probe("orders", "router", f"kafka://127.0.0.1:{port}/t", strict=True)
    with pytest.raises(ValueError, match="the topic nowhere cannot be written: "):
        Probe("orders", "router", kafka.url("nowhere"), strict=True)


def test_what_waits_is_bounded() -> None:
    """A full queue takes no more, and says so."""
    (port,) = free_ports(1)
    sink = KafkaSink(KafkaPlace(f"127.0.0.1:{port}", "t"), "i", most_bytes=1_000)
    assert [sink.send(bytes(400)) for _ in range(4)] == [True, True, False, False]
    sink.close()


def test_a_record_that_the_brokers_refuse_is_counted(kafka: Kafka) -> None:
    """Too large for its topic: it was taken, and comes back as failed."""
    kafka.create_topic("small", config={"max.message.bytes": "1000", "message.timestamp.type": "LogAppendTime"})
    sink = KafkaSink(KafkaPlace.parse(kafka.url("small")), "i")
    record = os.urandom(5_000)
    assert sink.send(record)
    assert sink.settle(30) is False
    assert (sink.failed(), sink.failed()) == ([record], [])
    assert sink.settle(1) is True
    sink.close()


def test_what_was_refused_is_told_as_drops(kafka: Kafka) -> None:
    """By window and cause, in a later record: books and drops agree that it never came."""
    kafka.create_topic("narrow", config={"max.message.bytes": "2000", "message.timestamp.type": "LogAppendTime"})
    probe = Probe("orders", "router", kafka.url("narrow"))
    for number in range(200):
        probe.arrived(os.urandom(16), NOW_US + number)
    assert probe.flush(30) is False
    probe.arrived(7, NOW_US)
    assert probe.flush(30) is True
    assert probe.dropped == 200
    probe.close()
    told = [(drop.count, drop.cause) for batch in read(kafka, "narrow") for drop in batch.drops]
    assert told == [(200, "undelivered")]


def _stamp_in_child(url: str) -> None:
    with Probe("orders", "router", url) as probe:
        probe.arrived(9, NOW_US)
        assert probe.flush(30)


def test_the_child_of_a_fork_has_a_client_of_its_own(kafka: Kafka, topic: str) -> None:
    """Both probes go on, as two instances, and neither waits for the other's threads."""
    with Probe("orders", "router", kafka.url(topic), probe="p") as probe:
        probe.arrived(7, NOW_US)
        assert probe.flush(30)
        pid = os.fork()
        if pid == 0:
            probe.arrived(8, NOW_US)
            probe.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        worker = multiprocessing.get_context("fork").Process(target=_stamp_in_child, args=(kafka.url(topic),))
        worker.start()
        worker.join(30)
        assert worker.exitcode == 0
        probe.arrived(10, NOW_US)
    # Three say bye: the probe, its twin in the child that stamps with it, and the worker's own.
    batches = read(kafka, topic, 3)
    assert sum(batch.count for batch in batches) == 4
    assert {batch.probe for batch in batches} >= {"p", f"p-{pid}"}


def test_a_dead_broker_costs_the_host_memory_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    """With a dead broker, stamps without room and records never delivered are counted, all of them."""
    (port,) = free_ports(1)
    probe = Probe("orders", "router", f"kafka://127.0.0.1:{port}/t", most_stamps=5_000)
    for number in range(200_000):
        probe.arrived(number, NOW_US)
        assert probe._sender is not None
        assert probe._sender.waiting <= 5_000
    probe.close()
    assert probe.dropped == 200_000
    assert "Traceback" not in caplog.text
