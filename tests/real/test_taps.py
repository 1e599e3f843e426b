"""Taps of a topic on a real broker: others of the group come and go, taps are killed, poison lies among the good."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from hopwatch.cli.main import main
from hopwatch.probes import Probe, message_headers
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.integrations.confluent_kafka import instrument
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.kafka import KafkaTap
from hopwatch.probes.taps.messages import FieldSource, MessageField, MessageReader
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.topic import SourceTopic
from hopwatch.testing import EPOCH_US, MemorySink, observations
from servers.kafka import Kafka
from servers.process import PATIENCE_S, free_ports, until
from tests.support.drops import drops
from tests.support.probe_host import ROOT, rows, spooled
from tests.support.program import Program

PARTITIONS: Final = 4
RUN: Final = ("hopwatch", "tap", "kafka")
Headers = list[tuple[str, str | bytes]]
PAUSE_S: Final = 0.002


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """Return a topic of the test's own."""
    name = str(request.node.name).replace("[", "-").replace("]", "")[:200]
    kafka.create_topic(name, PARTITIONS)
    return name


class Traffic:
    """Messages with marks, numbered, one after the other until it is to end."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        """Start."""
        self.sent = 0
        self.offsets: dict[bytes, tuple[int, int]] = {}
        """Of each id, the partition and the offset."""
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all", "linger.ms": 5})
        self._topic, self._is_over = topic, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            number = self.sent
            headers: list[tuple[str, str | bytes]] = [
                (message_headers.ID_HEADER, str(number)),
                (message_headers.TIME_HEADER, str(EPOCH_US)),
            ]
            self._producer.produce(
                self._topic, b"", partition=number % PARTITIONS, headers=headers, on_delivery=self._note(number)
            )
            self._producer.poll(0)
            self.sent += 1

    def _note(self, number: int) -> Callable[..., None]:
        def note(error: object, message: object) -> None:
            assert error is None
            self.offsets[id_bytes(str(number))] = (message.partition(), message.offset())  # type: ignore[attr-defined]

        return note

    def end(self) -> set[bytes]:
        """Return the ids of all that was sent."""
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        return set(self.offsets)


@pytest.fixture
def traffic(kafka: Kafka, topic: str) -> Iterator[Traffic]:
    """Yield traffic on the topic, which ends with the test."""
    sending = Traffic(kafka, topic)
    yield sending
    sending.end()


class Taps:
    """Taps of one group, each a process, with one spool."""

    def __init__(self, kafka: Kafka, topic: str, folder: Path) -> None:
        """Name the places."""
        self.kafka, self.topic, self.spool, self._said = kafka, topic, folder / "spool", folder / "said"
        self.group = f"taps of {topic}"

    @contextmanager
    def running(self) -> Iterator[Program]:
        """Start one; it is killed at the end if it goes on."""
        command = [*RUN, "--from", self.kafka.url(self.topic), "--group", self.group, "--from-start", "--json"]
        command += ["--stream", "orders", "--node", "topic", "--sink", f"spool:{self.spool}"]
        with self._said.open("ab") as said:
            process = Program(command, folder=ROOT, out=said)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def stop(self, process: Program) -> None:
        """End one in order."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, self._said.read_text()

    def stamped(self) -> Counter[bytes]:
        """Return how often each message was stamped."""
        return Counter(row.message_id for batches in spooled(self.spool).values() for row in rows(batches))

    def senders(self) -> set[str]:
        """Return the taps that have stamped something."""
        return {name for name, batches in spooled(self.spool).items() if rows(batches)}

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until something is so."""
        until(is_so, f"{what}; the taps say {self._said.read_text()[-2_000:]}")

    def committed(self) -> dict[int, int]:
        """Return the offsets that the group has committed."""
        asking = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": self.group, "log_level": 0})
        try:
            found = asking.committed([TopicPartition(self.topic, at) for at in range(PARTITIONS)], timeout=30)
        finally:
            asking.close()
        return {one.partition: one.offset for one in found}


@pytest.fixture
def taps(kafka: Kafka, topic: str, tmp_path: Path) -> Taps:
    """Return taps of the topic, none of which runs yet."""
    return Taps(kafka, topic, tmp_path)


def test_taps_that_come_and_go_stamp_each_message_once(taps: Taps, traffic: Traffic) -> None:
    """A second one joins and leaves: what it has was committed before, and nobody stamps it again."""
    with taps.running() as first:
        taps.until(lambda: len(taps.senders()) == 1, "the first tap stamps")
        with taps.running() as second:
            taps.until(lambda: len(taps.senders()) == 2, "the second tap stamps")
            taps.stop(second)
        count = taps.stamped().total()
        taps.until(lambda: taps.stamped().total() > count + 500, "the first one goes on")
        sent = traffic.end()
        taps.until(lambda: taps.stamped().keys() >= sent, "all is stamped")
        taps.stop(first)
    assert taps.stamped() == Counter(sent)
    assert {batches[-1].kind for batches in spooled(taps.spool).values()} <= {
        BatchKind.OBSERVATIONS,
        BatchKind.HEARTBEAT,
    }


def test_a_tap_that_is_killed_skips_nothing(taps: Taps, traffic: Traffic, times: Callable[[int, int], int]) -> None:
    """Another one goes on where it had committed: only what came after that may be stamped twice."""
    allowed: Counter[bytes] = Counter()
    for _ in range(times(2, 5)):
        with taps.running() as killed:
            before = taps.stamped().total()
            taps.until(lambda least=before + 1_000: taps.stamped().total() > least, "the tap stamps")  # type: ignore[misc]
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
        committed = taps.committed()
        allowed.update(one for one, (at, offset) in traffic.offsets.copy().items() if offset >= committed[at])
    with taps.running() as last:
        sent = traffic.end()
        taps.until(lambda: taps.stamped().keys() >= sent, "all is stamped")
        taps.stop(last)
    stamped = taps.stamped()
    assert stamped.keys() == sent
    assert {one: count for one, count in stamped.items() if count > 1 + allowed[one]} == {}
    assert (
        taps.committed().items()
        >= {
            at: 1 + max(offset for there, offset in traffic.offsets.values() if there == at) for at in range(PARTITIONS)
        }.items()
    )


class Watched:
    """A tap in this process, in a thread, with a sink in memory."""

    def __init__(self, kafka: Kafka, topic: str, reader: MessageReader, group: str = "taps") -> None:
        """Put the parts together."""
        self.heard: list[str] = []
        self.around = RunContext(self.heard.append)
        self.sink = MemorySink()
        patient = BlockingSink(self.sink, self.around)
        self.probe = Probe("orders", "topic", patient, follows=True, max_age_s=None)
        self.stamping = TapStamper((self.probe, patient), StampSide.IN, self.around)
        source = SourceTopic(kafka.url(topic), group, self.around, from_start=True)
        source.check()
        self.tap = KafkaTap(source, reader, self.stamping, self.around)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it until the block ends."""
        thread = threading.Thread(target=self.tap.run)
        thread.start()
        try:
            yield
        finally:
            self.around.stop.set()
            thread.join(PATIENCE_S)
            self.probe.close(bye=False)


def test_poison_is_counted_and_skipped(kafka: Kafka, topic: str) -> None:
    """Messages without marks, with bad ones or too large are counted as drops, and the tap goes on."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 5_242_880})
    good: Headers = [(message_headers.ID_HEADER, b"good"), (message_headers.TIME_HEADER, str(EPOCH_US))]
    body = json.dumps({"price": 5}).encode()
    poison: list[tuple[bytes | None, Headers]] = [
        (body, []), (body, good[:1]), (body, good[1:]), (body, [good[0], (message_headers.TIME_HEADER, b"soon")]),
        (body, [(message_headers.ID_HEADER, b"\xff"), good[1]]), (b"{", good), (None, good), (b"x" * 5_000_000, good),
    ]  # fmt: skip
    for value, headers in [*poison, (body, good), (body, good)]:
        producer.produce(topic, value, headers=headers, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    by_headers = Watched(kafka, topic, MessageReader())
    by_value = Watched(
        kafka, topic, MessageReader(MessageField(FieldSource.JSON, "price"), MessageField(FieldSource.RECORD)), "others"
    )
    with by_headers.running():
        until(lambda: by_headers.stamping.tally.stamped >= 5, "the good are stamped", 20)
    assert by_headers.stamping.tally.summary(by_headers.probe.dropped) == {
        "stamped": 5, "bad": {"bad_id": 1, "bad_time": 1, "no_id": 2, "no_time": 1}, "dropped": 5,
    }  # fmt: skip
    with by_value.running():
        until(lambda: by_value.stamping.tally.stamped >= 7, "the good are stamped", 20)
    assert by_value.stamping.tally.summary(by_value.probe.dropped) == {
        "stamped": 7, "bad": {"no_value": 1, "not_json": 1, "oversized": 1}, "dropped": 3,
    }  # fmt: skip


def test_a_tap_completes_what_it_has_read_to_the_end(kafka: Kafka, topic: str, traffic: Traffic) -> None:
    """Under traffic and when all is quiet: its moment follows the clock, and stands while it reads nothing."""
    watched = Watched(kafka, topic, MessageReader())
    with watched.running():
        started_us = time.time_ns() // 1_000
        until(
            lambda: watched.probe._sender is not None and watched.probe._sender.complete_through_us > started_us, "it"
        )
        traffic.end()
        quiet_us = time.time_ns() // 1_000
        sender = watched.probe._sender
        until(
            lambda: sender is not None and sender._find_complete_us() > quiet_us + 2_000_000,
            "the quiet is complete too",
        )
    assert watched.heard == []


def test_one_of_more_taps_than_partitions_completes_all(kafka: Kafka, topic: str) -> None:
    """A tap without a partition is heard, and keeps no window open."""
    kafka.create_topic(f"{topic}-narrow", 1)
    both = [Watched(kafka, f"{topic}-narrow", MessageReader()) for _ in range(2)]
    senders = [watched.probe._sender for watched in both]
    with both[0].running():
        until(lambda: senders[0] is not None and senders[0]._find_complete_us() > 0, "the first has the partition")
        with both[1].running():
            joined_us = time.time_ns() // 1_000
            for sender in senders:
                until(lambda of=sender: of._find_complete_us() > joined_us + 5_000_000, "the moment follows the clock")  # type: ignore[misc]


def test_a_record_of_an_absurd_time_stops_nothing(kafka: Kafka, topic: str) -> None:
    """A record with an absurd time is counted as a drop, and the tap goes on."""
    most = str(2**63 - 1)
    kafka.create_topic(
        f"{topic}-any", 1, {"message.timestamp.after.max.ms": most, "message.timestamp.before.max.ms": most}
    )
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, stamp_ms in enumerate((2**62, EPOCH_US, EPOCH_US // 1_000)):
        producer.produce(f"{topic}-any", b"", headers=[(message_headers.ID_HEADER, str(number))], timestamp=stamp_ms)
    assert producer.flush(PATIENCE_S) == 0
    watched = Watched(kafka, f"{topic}-any", MessageReader(time_spot=MessageField(FieldSource.RECORD)))
    with watched.running():
        until(lambda: watched.stamping.tally.stamped >= 1, "the good one is stamped", 20)
    assert watched.stamping.tally.summary(watched.probe.dropped) == {
        "stamped": 1, "bad": {"bad_time": 2}, "dropped": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "code", "told"),
    [
        (
            "kafka://127.0.0.1:{closed}/orders",
            3,
            "hopwatch: the topic orders at 127.0.0.1:{closed} cannot be reached: ",
        ),
        (
            "kafka://{bootstrap}/none",
            3,
            "hopwatch: the topic none at {bootstrap} cannot be read: Broker: Unknown topic",
        ),
        ("ftp://{bootstrap}/none", 2, 'hopwatch: --from: a Kafka URL is "kafka://HOST:PORT/TOPIC", such as '),
        ("kafka://{bootstrap}", 2, "hopwatch: --from: it names no topic, got 'kafka://{bootstrap}'"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, code: int, told: str
) -> None:
    """The error is one line with what, where and what to do; exit code 2 is a wrong call, 3 a failed service."""
    places = {"closed": free_ports(1)[0], "bootstrap": kafka.bootstrap}
    names = ["--group", "g", "--stream", "orders", "--node", "topic", "--sink", f"spool:{tmp_path}"]
    assert main(["tap", "kafka", "--from", url.format(**places), *names]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(told.format(**places))
    assert code == 2 or line.endswith("then start again")


def test_a_wrong_password_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what it is, and not as brokers that are down; with the right one the tap gets in."""
    cluster = Kafka(tmp_path / "kafka")
    (secure,) = free_ports(1)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    listeners = {"PLAINTEXT": cluster.ports[0], "SECURE": secure, "CONTROLLER": cluster._controllers[0]}
    asked = [f"{name}://127.0.0.1:{port}" for name, port in listeners.items()]
    cluster.more = {
        "listeners": ",".join(asked),
        "advertised.listeners": ",".join(asked[:2]),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{login} user_tap="right";',
    }
    for name, value in {
        "SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": "tap",
    }.items():
        monkeypatch.setenv(f"HOPWATCH_TRANSPORT__KAFKA__{name}", value)
    source = ["--from", f"kafka://127.0.0.1:{secure}/orders", "--group", "g"]
    names = ["--stream", "orders", "--node", "topic", "--sink", f"spool:{tmp_path}/spool"]
    try:
        cluster.start()
        for password, told in (("wrong", "Authentication failed"), ("right", "Unknown topic")):
            monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SASL_PASSWORD", password)
            assert main(["tap", "kafka", *source, *names]) == 3
            (line,) = capsys.readouterr().err.splitlines()
            assert told in line
            assert password not in line
    finally:
        cluster.stop()


def _given(message: Message) -> Headers:
    """Return headers as the stubs of the client's types take them, which is not as they give them."""
    return [*(message.headers() or [])]


def test_instrumented_clients_stamp_what_travels(kafka: Kafka, topic: str) -> None:
    """Made, received, forwarded and received again: each message once at each end of each hop, under one id."""
    kafka.create_topic(f"{topic}-next", 1)
    sinks = {node: MemorySink() for node in ("ingest", "router", "end")}
    probes = {node: Probe("orders", node, sink, strict=True) for node, sink in sinks.items()}
    config = {"bootstrap.servers": kafka.bootstrap}
    reading = {**config, "auto.offset.reset": "earliest"}
    origin = instrument(Producer(config), probe=probes["ingest"])
    first = instrument(Consumer({**reading, "group.id": "router"}), probe=probes["router"])
    forward = instrument(Producer(config), probe=probes["router"])
    last = instrument(Consumer({**reading, "group.id": "end"}), probe=probes["end"])
    reports: list[object] = []
    for number in range(100):
        origin.produce(topic, str(number), on_delivery=lambda error, _: reports.append(error))
    assert origin.flush(PATIENCE_S) == 0
    assert reports == [None] * 100
    values: list[bytes | None] = []
    with closing(first), closing(last):
        first.subscribe([topic])
        last.subscribe([f"{topic}-next"])

        def has_all() -> bool:
            for message in first.consume(10, 0.1):
                forward.produce(f"{topic}-next", message.value(), headers=_given(message))
            forward.poll(0)
            while (one := last.poll(0.05)) is not None:
                values.append(one.value())
            return len(values) == 100

        until(has_all, "all came to the end")
    assert forward.flush(PATIENCE_S) == 0
    assert sorted(int(value or b"") for value in values) == list(range(100))
    for probe in probes.values():
        probe.close()
    said = {node: observations(sink) for node, sink in sinks.items()}
    ins = {node: Counter(row.message_id for row in rows if row.in_us is not None) for node, rows in said.items()}
    outs = {node: Counter(row.message_id for row in rows if row.out_us is not None) for node, rows in said.items()}
    # On a busy machine a probe flushes between a message's two stamps, which then stand in two observations.
    once = outs["ingest"]
    assert (len(once), set(once.values())) == (100, {1})
    assert ins == {"ingest": Counter(), "router": once, "end": once}
    assert outs == {"ingest": once, "router": once, "end": Counter()}
    assert [drop for sink in sinks.values() for drop in drops(sink.records)] == []
