"""Redrive of lost messages on a real broker: what is proven lost goes again, at a rate, and over a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from hopwatch.deliver.redrive.messages import REDRIVEN_HEADER
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.support.probe_host import ROOT
from tests.support.spool import START_MS, at_us, observation_batch
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches

PARTITIONS: Final = 2
WINDOW: Final = ("--window", "2026-01-01T00:00:00Z")
AT_B: Final = ("--stream", "orders", "--node", "b")


def name_id(number: int) -> str:
    """Return the id of a numbered message as its header has it."""
    return str(uuid.UUID(int=number))


class Place:
    """A topic that node a writes, and a store in which messages of it are lost at node b."""

    def __init__(self, kafka: Kafka, topic: str, folder: Path) -> None:
        """Make topic and configuration."""
        self.kafka, self.topic = kafka, topic
        # Messages of tests are from the first of January.
        kafka.create_topic(topic, PARTITIONS, {"retention.ms": "-1"})
        text = CONFIGURATION + f'topics = {{ a = "{kafka.url(topic)}" }}\n'
        self.workspace = Workspace(folder).configure(text)
        self.state = folder / "redrive.jsonl"

    def write(self, numbers: Iterable[int], **more: Any) -> None:  # noqa: ANN401 - as the client takes it
        """Write messages, of each second of the window, with marks and a header of the service's own."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "acks": "all"})
        for number in numbers:
            headers: list[tuple[str, str | bytes | None]] = [
                (ID_HEADER, name_id(number)),
                ("own", b"\0\xff"),
                (TIME_HEADER, str(at_us(number % 60))),
                ("empty", None),
            ]
            given: dict[str, Any] = {
                "value": b"value of %d" % number,
                "key": b"key of %d" % number,
                "headers": headers,
                "timestamp": START_MS + number % 60 * 1_000,
                "partition": number % PARTITIONS,
            }
            producer.produce(self.topic, **(given | more))
        assert producer.flush(PATIENCE_S) == 0

    def lose(self, count: int, lost: Sequence[int]) -> None:
        """Let the monitor judge that of so many messages some are lost on the way from a to b."""
        seen = [number for number in range(count) if number not in lost]
        self.workspace.watch(observation_batch(range(count)), observation_batch(seen, "b"), *closing_batches(seq=1))

    def read(self, topic: str = "") -> list[Message]:
        """Return all records of a topic, partition by partition."""
        return read_all(self.kafka, topic or self.topic)

    def flags(self, *more: str) -> list[str]:
        """Return the flags of a redrive that sends."""
        return [*AT_B, "--rate", "10000", "--state", str(self.state), *more]

    def runs(self) -> list[dict[str, Any]]:
        """Return the lines of runs in the state."""
        lines = [json.loads(line) for line in self.state.read_text().splitlines()]
        return [line["run"] for line in lines if "run" in line]


def read_all(kafka: Kafka, topic: str) -> list[Message]:
    """Return all records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "test", "enable.partition.eof": True})
    found: list[Message] = []
    try:
        for number in sorted(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions):
            low, _ = consumer.get_watermark_offsets(TopicPartition(topic, number), PATIENCE_S)
            consumer.assign([TopicPartition(topic, number, low)])
            while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
                found.append(message)
    finally:
        consumer.close()
    return found


def find_copies(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Return the ids of the records that were sent again, in order, each with its count."""
    headers = [dict(message.headers() or ()) for message in messages]
    return [
        (one[ID_HEADER].decode(), one[REDRIVEN_HEADER].decode())  # type: ignore[union-attr]  # bytes, as they are read
        for one in headers
        if REDRIVEN_HEADER in one
    ]


@pytest.fixture
def place(kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place of the test's own."""
    return Place(kafka, str(request.node.name).replace("[", "-").replace("]", "")[:200], tmp_path)


def told(place: Place, capsys: pytest.CaptureFixture[str], *flags: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON of a redrive."""
    capsys.readouterr()
    assert place.workspace.run("redrive", *flags, "--json") == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_lost_messages_are_sent_again_unchanged(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Key, value, headers, time and partition stay, with one header more; the run is noted."""
    place.write(range(10))
    place.lose(10, [3, 9])
    before = place.read()
    assert told(place, capsys, *AT_B, *WINDOW, "--dry-run")["found"] == 2
    assert len(place.read()) == len(before)
    found = told(place, capsys, *place.flags(*WINDOW, "--why", "incident 7"))
    assert (found["lost"], found["found"], found["sent"], found["repeated"]) == (2, 2, 2, [])
    after = place.read()
    assert len(after) == len(before) + 2
    assert sorted(find_copies(after)) == [(name_id(3), "1"), (name_id(9), "1")]
    for number in (3, 9):
        first, second = [one for one in after if one.key() == b"key of %d" % number]
        for part in ("value", "timestamp", "partition"):
            assert getattr(first, part)() == getattr(second, part)()
        assert second.headers() == [*(first.headers() or ()), (REDRIVEN_HEADER, b"1")]
    began, ended = place.runs()
    assert (began["why"], began["lost"], "ended" in began) == ("incident 7", 2, False)
    assert (ended["sent"], ended["not_found"], ended["stopped"]) == (2, 0, False)
