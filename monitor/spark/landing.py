"""Records out of Kafka, landed: what windows will point to is written to segments on the disk that all workers share.

One task lands the records of a range of offsets in one segment, named by them: whoever lands the range again, after a
crash or beside a straggler, writes the same bytes under the same name. What the windows need is there, synced, before a
row says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import pyarrow as pa

from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.parcels import NOT_LANDED, Offsets, Sender, SetAside
from hopwatch.monitor.rules import StreamRules
from hopwatch.monitor.spark.intake import Intake, checked, sender, undeclared
from hopwatch.monitor.spark.rows import CLOCK_ROW, OFFSETS_ROW, SET_ASIDE_ROW, Batches, Row, arrow
from hopwatch.monitor.undeclared import UNKNOWN_NODE
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import BatchKind

LOG_APPEND_TIME: Final = 1
"""Kafka's mark of a timestamp that the broker gave."""
READ_THROUGH: Final = "read-through"
"""The file in which the driver tells the workers how far all partitions were read, µs; without it nothing is known."""
_NAME_CHARS: Final = 100
"""How much of a topic's name a segment's has: a file's may have 255 characters, and a topic's has up to 249."""
COLUMNS: Final = ("partition", "offset", "timestamp", "timestampType", "value")
"""What the workers need of Kafka's columns, in this order."""


class _Arrived(NamedTuple):
    offset: int
    arrival_us: int
    is_of_broker: bool
    value: bytes


@dataclass(slots=True)
class _Range:
    """The records of one partition that a task has read, as far as it is."""

    topic: str
    partition: int
    intake: Intake
    file: BufferedWriter | None = None
    size: int = 0
    runs: list[Offsets] = field(default_factory=list)
    broken: list[SetAside] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where a record of it stood, but for its offset."""
        return f"{self.topic}/{self.partition}"

    @property
    def name(self) -> str:
        """The segment's name: the offsets, both ends included."""
        first, last = self.runs[0].first, self.runs[-1].last
        return f"{self.topic:.{_NAME_CHARS}}-{self.partition}-{first:020d}-{last:020d}{segment.SEGMENT_SUFFIX}"


def lander(topic: str, folder: Path, rules: Mapping[str, StreamRules]) -> Callable[[Batches], Batches]:
    """Return the function for ``mapInArrow`` that lands records in a folder and yields batches of rows."""

    def land_batches(batches: Batches) -> Batches:
        yield from arrow(land(batches, topic, folder, rules))

    return land_batches


def land(batches: Batches, topic: str, folder: Path, rules: Mapping[str, StreamRules]) -> Iterator[Row]:
    """Land the records of all batches; yield what they come to, and last a clock row.

    That is the latest arrival, but not much later than the moment up to which all partitions were read by the batches
    before: Spark's watermark is the latest of all tasks, and once it is past the last moment at which a window can be
    amended, Spark's state takes nothing for it, which a partition that is behind may still bring.
    """
    ranges: dict[int, _Range] = {}
    try:
        for batch in batches:
            for partition, record in _records(batch):
                if partition not in ranges:
                    ranges[partition] = _Range(topic, partition, Intake(rules))
                _take(ranges[partition], record, folder, rules)
        for one in ranges.values():
            yield from _landed(one, folder)
    finally:
        for one in ranges.values():
            _discard(one)
    latest_us = max((run.last_arrival_us for one in ranges.values() for run in one.runs), default=None)
    if latest_us is not None:
        through_us = read_through_us(folder)
        # A minute beyond nothing would be a moment of 1970, since when no stream has spoken.
        most_us = through_us + STRAGGLING_US if through_us else 0
        yield Row(CLOCK_ROW, "", 0, 0, min(latest_us, most_us), b"")


def read_through_us(folder: Path) -> int:
    """Return the moment up to which all partitions were read, 0 where that is not known."""
    try:
        return int((folder / READ_THROUGH).read_text("ascii"))
    except FileNotFoundError:
        return 0


def note_read_through(folder: Path, moment_us: int) -> None:
    """Tell the workers of the next batch up to which moment all partitions were read."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{READ_THROUGH}.new"
    draft.write_text(str(moment_us), "ascii")
    draft.replace(folder / READ_THROUGH)


def _records(batch: pa.RecordBatch) -> Iterator[tuple[int, _Arrived]]:
    partitions, offsets, moments, kinds, values = (batch.column(name) for name in COLUMNS)
    moments_us = moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    told = zip(partitions.to_pylist(), offsets.to_pylist(), moments_us, kinds.to_pylist(), values, strict=True)
    for partition, offset, arrival_us, kind, value in told:
        yield partition, _Arrived(offset, arrival_us, kind == LOG_APPEND_TIME, value.as_py() or b"")


def _take(one: _Range, record: _Arrived, folder: Path, rules: Mapping[str, StreamRules]) -> None:
    if one.runs and one.runs[-1].last + 1 == record.offset:
        one.runs[-1] = one.runs[-1].longer(record.offset, record.arrival_us)
    else:
        one.runs.append(Offsets(one.place, record.offset, record.offset, record.arrival_us, record.arrival_us))
    try:
        view = _view(record)
    except envelope.RecordError as error:
        _set_aside(one, record, error)
        return
    fault = undeclared(view, rules)
    if fault is not None:
        _set_aside(one, record, fault, sender(view))
        if fault.reason == UNKNOWN_NODE:
            one.intake.take(record.value, view, 0, len(record.value), record.arrival_us)
        return
    start = _append(one, record.value, folder) if view.kind == BatchKind.OBSERVATIONS else 0
    one.intake.take(record.value, view, start, start + len(record.value), record.arrival_us, moved=start)


def _set_aside(one: _Range, record: _Arrived, fault: envelope.RecordError, sent_by: Sender | None = None) -> None:
    where = (one.place, record.offset, len(record.value), record.arrival_us)
    one.broken.append(SetAside(*where, fault.reason, str(fault), sent_by))


def _view(record: _Arrived) -> envelope.RecordView:
    if not record.is_of_broker:
        # The producer's clock may say anything, and the arrival clock of all streams goes by it.
        what = "the topic's message.timestamp.type is LogAppendTime, got a record with its producer's time"
        raise envelope.RecordError("no_arrival_time", what)
    return checked(record.value, 0, len(record.value))


def _append(one: _Range, record: bytes, folder: Path) -> int:
    """Write a record behind the others; return where it starts."""
    if one.file is None:
        folder.mkdir(parents=True, exist_ok=True)
        # A name of its own: a straggler may be landing the same records.
        one.file = (folder / f"{uuid4().hex}{segment.OPEN_SUFFIX}").open("xb")
        one.size = one.file.write(segment.MAGIC)
    start = one.size + segment.FRAME_BYTES
    one.size += one.file.write(segment.encode_frame(record))
    return start


def _landed(one: _Range, folder: Path) -> Iterator[Row]:
    """Publish a range's segment, if anything was landed, and yield its rows."""
    path = NOT_LANDED
    if one.file is not None:
        path = str(folder / one.name)
        one.file.flush()
        os.fsync(one.file.fileno())
        Path(one.file.name).rename(path)
        sync_folder(folder)
    yield from one.intake.rows(path)
    for place in one.broken:
        yield Row(SET_ASIDE_ROW, "", 0, 0, None, place.pack())
    for run in one.runs:
        yield Row(OFFSETS_ROW, "", 0, 0, None, run.pack())


def _discard(one: _Range) -> None:
    """Close a range's file, and delete what was not published."""
    if one.file is not None:
        one.file.close()
        Path(one.file.name).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a new name durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
