"""A delivery with topics of its own, and processes of it, for tests on a real broker."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path as Folder
from typing import Any, Final

import orjson
from confluent_kafka import Message, Producer

from hopwatch.cli.main import main
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.support.probe_host import ROOT
from tests.support.program import Program
from tests.support.topic_records import read_records

RUN: Final = ("hopwatch", "deliver")
PARTITIONS: Final = 3
PLAIN: Final = {"max.message.bytes": "1048588"}
NAME: Final = "billing"


class DeliveryPlace:
    """A delivery of one topic to one URL, with its processes."""

    def __init__(self, kafka: Kafka, topic: str, folder: Folder, url: str, *keys: str, name: str = NAME) -> None:
        """Make the topics, and write the configuration with more keys of the delivery."""
        self.kafka, self.topic, self.folder, self.name = kafka, topic, folder, name
        self.spool, self.said_in, self.config = folder / "spool", folder / "said", folder / "hopwatch.toml"
        kafka.create_topic(topic, PARTITIONS, PLAIN)
        given = {key.partition(" ")[0] for key in keys}
        others = ('retry = ["1s", "3s"]', "tries = 2", 'linger = "10ms"', "from_start = true")
        said = [*keys, *(key for key in others if key.partition(" ")[0] not in given)]
        self.config.write_text(
            f"""
[transport]
url = "spool:{self.spool}"
[store]
url = "sqlite:///{folder / "hopwatch.db"}"
[streams.orders]
path = "router -> deliver"
[deliver.{name}]
stream = "orders"
from = "{kafka.url(topic)}"
url = "{url}"
group = "{topic}"
{chr(10).join(said)}
"""
        )
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def create_topics(self) -> None:
        """Make what is missing, as an operator does."""
        asked = ["--config", str(self.config), "--replication", "1", "--min-insync", "1", "--allow-weak"]
        assert main(["deliver", "create-topics", self.name, *asked]) == 0

    @contextmanager
    def running(self, *words: str) -> Iterator[Program]:
        """Start a process; it is killed at the end if it goes on."""
        asked = [*RUN, *words, "--config", str(self.config), "--allow-weak", "--json"]
        with self.said_in.open("ab") as said:
            environ = {**os.environ, "PYTHONFAULTHANDLER": "1"}
            process = Program(asked, folder=ROOT, environ=environ, err=said)
        try:
            yield process
        except BaseException as error:
            ended = process.poll()
            error.add_note(f"{words or 'deliver'} {'runs' if ended is None else f'ended with {ended}'}: {self.said()}")
            raise
        finally:
            process.kill()
            process.wait()

    def stop(self, process: Program) -> Any:  # noqa: ANN401 - JSON
        """End one in order, and return its counts."""
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, self.said()
        return orjson.loads(out)["orders"]

    def said(self) -> str:
        """Return what processes have said."""
        return self.said_in.read_text()

    def send(self, ids: Sequence[str], value: bytes | None = None, **more: Any) -> None:  # noqa: ANN401 - what a client takes
        """Send a record for each id, and wait until they are in the topic."""
        for one in ids:
            headers = [(ID_HEADER, one), (TIME_HEADER, str(time.time_ns() // 1_000)), ("team", "blue")]
            said = b'{"order":"%b"}' % one.encode() if value is None else value
            self.producer.produce(self.topic, said, **{"headers": headers, "key": one.encode(), **more})
            self.producer.poll(0)
        assert self.producer.flush(PATIENCE_S) == 0

    def read(self, topic: str) -> list[Message]:
        """Return what is committed in a topic now."""
        return read_records(self.kafka, topic)

    def rejected(self) -> dict[str, RejectedRecord]:
        """Return what was rejected, by ids; each once."""
        messages = self.read(f"{self.topic}.rejected")
        found = {id_of(one): decode_rejected(one.value() or b"") for one in messages}
        assert len(found) == len(messages), "a message was rejected twice"
        return {one: record for one, record in found.items() if isinstance(record, RejectedRecord)}

    def listed(self) -> Any:  # noqa: ANN401 - JSON
        """Return what ``hopwatch deliver list`` says of the delivery."""
        with redirect_stdout(io.StringIO()) as out:
            assert main(["deliver", "list", "--config", str(self.config), "--json"]) == 0
        return orjson.loads(out.getvalue())["deliveries"][0]

    def shared(self) -> list[list[int]]:
        """Return the partitions of each member of the group."""
        admin = self.kafka.admin()
        answer: Any = admin.describe_consumer_groups([self.topic])[self.topic]
        return [[one.partition for one in member.assignment.topic_partitions] for member in answer.result().members]

    def await_drained(self) -> None:
        """Wait until nothing waits any more."""
        until(lambda: sum(self.listed()[key] for key in ("lag", "retries")) == 0, "nothing waits")


def id_of(message: Message) -> str:
    """Return the id in the headers."""
    return dict(message.headers() or [])[ID_HEADER].decode()
