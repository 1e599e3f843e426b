"""A stream with three topics of its own, and validators of it, for tests on a real broker."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as Folder
from typing import Any, Final

import orjson
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from hopwatch.cli.main import main
from hopwatch.gate.codec import Codec
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.gate.retry import KafkaRetry
from hopwatch.probes.avro_reader import PREFIX_BYTES
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.taps.context import RunContext
from servers.kafka import Kafka
from servers.process import PATIENCE_S
from tests.support.gate_client import configured
from tests.support.probe_host import ROOT
from tests.support.program import Program
from tests.support.schemas import FIRST, SECOND, Json, schema

RUN: Final = ("hopwatch", "validate", "kafka")
PARTITIONS: Final = 3
LATE_S: Final = 240.0
"""Who was killed in a transaction keeps the group and its readers waiting."""
PLAIN: Final = {"max.message.bytes": "1048588"}
BODY: Final = PREFIX_BYTES


class Place:
    """A stream with three topics of its own, and validators of it."""

    def __init__(self, kafka: Kafka, name: str, folder: Folder) -> None:
        """Make the topics, write the configuration, register two versions of the schema."""
        self.kafka, self.name, self.folder = kafka, name, folder
        self.spool, self.said_in, self.config = folder / "spool", folder / "said", folder / "hopwatch.toml"
        for topic in (name, f"{name}.good", f"{name}.bad"):
            kafka.create_topic(topic, PARTITIONS, PLAIN)
        self.config.write_text(configured(f"{kafka.url(name)}.good", f'rejected = "{kafka.url(name)}.bad"'))
        self.numbers = [self.register(one) for one in (FIRST, SECOND)]
        self._asking = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name})
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def close(self) -> None:
        """Let its clients go; what was not sent yet stays unsent."""
        self.producer.purge()
        self.producer.flush(PATIENCE_S)
        self._asking.close()

    def register(self, said: Json) -> int:
        """Make a schema the newest version of the subject, and return its number."""
        file = self.folder / "schema.avsc"
        file.write_bytes(orjson.dumps(said))
        assert main(["schema", "register", "--config", str(self.config), "--subject", "orders", str(file)]) == 0
        return 1 if said is FIRST else 2

    def arguments(self, *more: str) -> list[str]:
        """Return what a validator is asked."""
        return ["--config", str(self.config), "--stream", "orders", "--from", self.kafka.url(self.name),
                "--group", self.name, "--from-start", "--json", *more]  # fmt: skip

    @contextmanager
    def running(self, *more: str) -> Iterator[Program]:
        """Start a validator; it is killed at the end if it goes on."""
        with self.said_in.open("ab") as said:
            environ = {**os.environ, "PYTHONFAULTHANDLER": "1"}
            asked = [*RUN, *self.arguments(*more)]
            process = Program(asked, folder=ROOT, environ=environ, err=said)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def stop(self, process: Program) -> Any:  # noqa: ANN401 - JSON
        """End one in order, and return its counts."""
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, self.said()
        return orjson.loads(out)

    def ended(self, process: Program) -> int:
        """Return what one ends with that was asked to; one that does not end says where it stands, and fails."""
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            process.wait(PATIENCE_S)
            pytest.fail(f"it did not end within {PATIENCE_S} s:\n{self.said()[-8_000:]}")

    def said(self) -> str:
        """Return what validators have said."""
        return self.said_in.read_text()

    def send(self, value: bytes | None, number: object = None, **more: Any) -> None:  # noqa: ANN401 - what a client takes
        """Send a record, with an id if one is given."""
        headers = [] if number is None else [(ID_HEADER, str(number))]
        headers.append((TIME_HEADER, str(time.time_ns() // 1_000)))
        self.producer.produce(self.name, value, **{"headers": headers, **more})
        self.producer.poll(0)

    def sent(self) -> None:
        """Wait until all that was sent is in the topic."""
        assert self.producer.flush(PATIENCE_S) == 0

    def framed(self, said: Json, value: Json) -> bytes:
        """Return a value in the envelope."""
        return Codec(schema(said)).encode(orjson.dumps(value))

    def read(self, topic: str, count: int, patience_s: float = LATE_S) -> list[Message]:
        """Return what is committed in a topic, once there are so many, or when it is too late for them."""
        consumer = Consumer(
            {"bootstrap.servers": self.kafka.bootstrap, "group.id": "looks on", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(topic, at, 0) for at in range(PARTITIONS)])
        # A client may hand over a record twice when its partition gets another leader: its place says which it is.
        found: dict[tuple[int | None, int | None], Message] = {}
        end_s = time.monotonic() + patience_s
        try:
            while time.monotonic() < end_s:
                more = consumer.consume(10_000, 0.5)
                found |= {(one.partition(), one.offset()): one for one in more if one.error() is None}
                if len(found) >= count and not more:
                    break
        finally:
            consumer.close()
        return list(found.values())

    def written(self) -> int:
        """Return how many records were written of what is validated, committed or not, marks of Kafka included."""
        consumer = Consumer(
            {"bootstrap.servers": self.kafka.bootstrap, "group.id": "looks on", "isolation.level": "read_uncommitted"}
        )
        try:
            places = [TopicPartition(f"{self.name}.good", at) for at in range(PARTITIONS)]
            return sum(consumer.get_watermark_offsets(one, 30)[1] for one in places)
        finally:
            consumer.close()

    def committed(self) -> dict[int, int]:
        """Return how far the group has come in each partition."""
        asked = [TopicPartition(self.name, at) for at in range(PARTITIONS)]
        found = KafkaRetry(RunContext(print)).call(lambda: self._asking.committed(asked, 30))
        return {one.partition: one.offset for one in found}

    def dealt_out(self) -> list[list[int]]:
        """Return the partitions of each of the group that has some."""
        admin = self.kafka.admin()
        answer: Any = admin.describe_consumer_groups([self.name])[self.name]
        members = answer.result().members
        return [[one.partition for one in found] for member in members if (found := member.assignment.topic_partitions)]

    def good(self, count: int) -> list[Message]:
        """Return what was validated."""
        return self.read(f"{self.name}.good", count)

    def bad(self, count: int) -> list[Message]:
        """Return what was rejected."""
        return self.read(f"{self.name}.bad", count)


def id_of(message: Message) -> str:
    """Return the id in the headers."""
    return dict(message.headers() or [])[ID_HEADER].decode()


def rejected(message: Message) -> RejectedRecord:
    """Return what a record among the rejected says."""
    found = decode_rejected(message.value() or b"")
    assert isinstance(found, RejectedRecord)
    return found
