"""Topic of results in memory, what a topic says once it is compacted, and what it has to say by the store."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import fastavro
from sqlalchemy import Engine, select

from hopwatch.api.results_topic.publisher import ResultsPublisher, register_schema
from hopwatch.api.results_topic.records import ResultRecord
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader, schema, tables
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.dialect.lock import MemoryLock
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.avro_reader import parse_confluent_frame
from tests.support.clock import ManualClock

Json = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RUN = "a run"
"""Run that has the store of a test."""


@dataclass
class MemoryTopic:
    """Topic whose records are those of transactions that were committed, and which ends producers as brokers do."""

    name: str = "results id-1"
    records: list[ResultRecord] = field(default_factory=list)
    epoch: int = 0

    def writer(self) -> MemoryWriter:
        """Return a writer as each process has its own."""
        return MemoryWriter(self)


class Fault(Enum):
    """Fault of the next transaction."""

    BEFORE = "nothing of it is written"
    AFTER = "it is written, and its answer is lost"


@dataclass
class MemoryWriter:
    """Writer of a topic in memory; ``meanwhile`` is called in its next transaction, before that ends."""

    topic: MemoryTopic
    fault: Fault | None = None
    meanwhile: Callable[[], None] | None = None
    epoch: int = 0
    is_closed: bool = False

    def open(self) -> str:
        """Take the topic, unless this writer has it."""
        if not self.epoch:
            self.topic.epoch += 1
            self.epoch = self.topic.epoch
        return self.topic.name

    def write(self, records: Sequence[ResultRecord]) -> None:
        """Write records, unless another writer has the topic by then."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        is_fenced = self.epoch != self.topic.epoch
        if not is_fenced and self.fault is not Fault.BEFORE:
            self.topic.records += records
        if is_fenced or self.fault is not None:
            self.epoch, self.fault = 0, None
            raise TransportError("the brokers are away")

    def close(self) -> None:
        """Let go of the topic."""
        self.epoch, self.is_closed = 0, True


def build_publisher(engine: Engine, writer: MemoryWriter, run: str, hold: StoreLock | None = None) -> ResultsPublisher:
    """Build a publisher of a run into a topic in memory."""
    clock = ManualClock()
    number = register_schema(engine, clock, "results")
    return ResultsPublisher(engine, writer, schema_number=number, clock=clock, run=run, hold=hold or MemoryLock())


def decode(engine: Engine, value: bytes) -> Json:
    """Return what a value says, by the schema that its frame names in the store's registry; times as in a report."""
    frame = parse_confluent_frame(value)
    with SubjectStore(engine, ManualClock()).reading() as shelf:
        kept = shelf.by_number(int(frame.writer))
    assert kept is not None
    told = fastavro.schemaless_reader(io.BytesIO(value[frame.body_start :]), json.loads(kept.text), None)
    assert isinstance(told, dict)
    start_us = (told["window_start"] - EPOCH).total_seconds() * 1e6
    return told | {"window_start": format_iso(round(start_us))}


def compact(records: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return the last value of each key."""
    return {key.decode(): value for key, value in records}


def read_expected(engine: Engine) -> dict[str, Json]:
    """Return what the topic has to say by the store: each node of each window of the report, by its key."""
    found: dict[str, Json] = {}
    window = tables.windows.c
    with schema.open_snapshot(engine) as connection:
        columns = select(window.stream, window.window_start_us, window.sequence)
        for stream, start_us, sequence in connection.execute(columns).all():
            (told,) = reader.read_windows_json(connection, stream, start_us, start_us + 1)
            of_window = {name: told[name] for name in ("window_start", "status", "revision", "verdict", "reasons")}
            for node in told["nodes"]:
                key = f"{stream}|{told['window_start']}|{node['node']}"
                found[key] = json.loads(json.dumps(of_window | node | {"stream": stream, "sequence": sequence}))
    return found


def find_backward_steps(engine: Engine, records: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return the keys whose sequence goes back from a record to a later one, or says two things by one number."""
    last: dict[bytes, tuple[int, bytes]] = {}
    wrong = []
    for key, value in records:
        sequence = decode(engine, value)["sequence"]
        before, what = last.get(key, (-1, b""))
        if sequence < before or (sequence == before and value != what):
            wrong.append(f"{key.decode()}: {sequence} behind {before}")
        last[key] = sequence, value
    return wrong
