"""Landing of Kafka records: those that windows point to are written to segments on a disk shared by all workers.

One task lands the records of a range of offsets in one segment, named by them: a task that lands the range again,
after a crash or beside a straggler, writes the same bytes under the same name. What the windows need is there, synced,
before a row says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hopwatch.monitor.kernel.books import NO_OFFSET_US
from hopwatch.monitor.kernel.recent import RecentSampler
from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.payloads import NOT_LANDED, OffsetRun, SendingInstance, SetAside
from hopwatch.monitor.row_kinds import OFFSETS_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark.rows import Batches, JobRow, build_clock_row, to_arrow
from hopwatch.monitor.spark.segment_accumulator import (
    SegmentAccumulator,
    find_undeclared,
    keeps_book,
    parse_record,
    recent_rows,
    sender_of,
)
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.common_records import read_common_records
from hopwatch.probes.contract.kafka import OFFSET_HEADER
from hopwatch.probes.folder_sync import sync_folder

LOG_APPEND_TIME: Final = 1
"""Kafka's mark of a timestamp that the broker gave."""
READ_THROUGH: Final = "read-through"
"""The file in which the driver tells the workers how far all partitions were read, µs; without it nothing is known."""
_NAME_CHARS: Final = 100
"""Characters of the topic's name in a segment's name: a file's may have 255, and a topic's up to 249."""
RECORDS_AT_ONCE: Final = 1_000
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
"""Records are parsed together up to so many, or so many bytes."""
KAFKA_COLUMNS: Final = ("partition", "offset", "timestamp", "timestampType", "headers", "value")
"""Kafka's columns that the workers need, in this order."""
_OFFSET: Final = re.compile(rb"-?\d{1,18}")


class _ArrivedRecord(NamedTuple):
    """A record of Kafka, bytes ``start`` to ``end`` of ``data``; ``view`` is there if it was read with others."""

    offset: int
    arrival_us: int
    is_of_broker: bool
    data: bytes
    start: int
    end: int
    view: envelope.RecordView | None
    offset_max_us: int

    @property
    def value(self) -> bytes:
        """Return its own bytes."""
        return self.data[self.start : self.end]


@dataclass(slots=True)
class _OffsetRange:
    """The records of one partition that a task has read, as far as it is."""

    topic: str
    partition: int
    intake: SegmentAccumulator
    file: BufferedWriter | None = None
    size: int = 0
    runs: list[OffsetRun] = field(default_factory=list)
    broken: list[SetAside] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Return the topic and partition, as a record's place without its offset."""
        return f"{self.topic}/{self.partition}"

    @property
    def name(self) -> str:
        """The segment's name: the offsets, both ends included."""
        first, last = self.runs[0].first, self.runs[-1].last
        return f"{self.topic:.{_NAME_CHARS}}-{self.partition}-{first:020d}-{last:020d}{segment.SEGMENT_SUFFIX}"


def build_lander(
    topic: str, folder: Path, rules: Mapping[str, StreamConfig], *, samples: bool = False
) -> Callable[[Batches], Batches]:
    """Return the function for ``mapInArrow`` that lands records in a folder and yields batches of rows.

    Recent stamps are sampled if asked for.
    """

    def land_batches(batches: Batches) -> Batches:
        sampler = RecentSampler() if samples else None
        yield from to_arrow(land_records(batches, topic, folder, rules, sampler))

    return land_batches


def land_records(
    batches: Batches,
    topic: str,
    folder: Path,
    rules: Mapping[str, StreamConfig],
    sampler: RecentSampler | None = None,
) -> Iterator[JobRow]:
    """Land the records of all batches; yield what they come to, then what the sampler has, and last a clock row.

    The clock row has the latest arrival, capped shortly after the time up to which all partitions were read before.
    Spark's watermark is the latest of all tasks. Without the cap, a fast partition would close windows for which a
    slow partition still brings records.
    """
    ranges: dict[int, _OffsetRange] = {}
    try:
        for table in _join_batches(batches):
            for partition, record in _parse_records(table):
                if partition not in ranges:
                    ranges[partition] = _OffsetRange(topic, partition, SegmentAccumulator(rules, sampler))
                _land_record(ranges[partition], record, folder, rules)
        for one in ranges.values():
            yield from _publish(one, folder)
    finally:
        for one in ranges.values():
            _discard(one)
    yield from recent_rows(sampler)
    latest_us = max((run.last_arrival_us for one in ranges.values() for run in one.runs), default=None)
    if latest_us is not None:
        through_us = load_read_through_us(folder)
        # With no known position, emit 0 rather than 1970 + 1 min.
        most_us = through_us + STRAGGLING_US if through_us else 0
        yield build_clock_row(min(latest_us, most_us))


def load_read_through_us(folder: Path) -> int:
    """Return the moment up to which all partitions were read, 0 where that is not known."""
    try:
        return int((folder / READ_THROUGH).read_text("ascii"))
    except FileNotFoundError:
        return 0


def save_read_through(folder: Path, moment_us: int) -> None:
    """Tell the workers of the next batch up to which moment all partitions were read."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{READ_THROUGH}.new"
    draft.write_text(str(moment_us), "ascii")
    draft.replace(folder / READ_THROUGH)


def _join_batches(batches: Batches) -> Iterator[pa.Table]:
    """Yield batches together: so small records are read at once, and large ones do not pile up."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        if sum(one.num_rows for one in held) >= RECORDS_AT_ONCE or sum(one.nbytes for one in held) >= BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _parse_records(table: pa.Table) -> Iterator[tuple[int, _ArrivedRecord]]:
    partitions, offsets, moments, kinds, headers, values = (table.column(name) for name in KAFKA_COLUMNS)
    moments_us = moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    # A record without a value is an empty one.
    packed = values.fill_null(b"").cast(pa.large_binary()).combine_chunks()
    _, ends_buffer, data_buffer = packed.buffers()
    bounds = np.frombuffer(ends_buffer, np.int64, len(packed) + 1, packed.offset * np.dtype(np.int64).itemsize)
    whole = memoryview(data_buffer or b"")
    # Of large records no copy of all is made: they are read one by one.
    data = bytes(whole) if len(whole) <= 2 * BYTES_AT_ONCE else b""
    views = read_common_records(data, bounds[:-1], bounds[1:])
    told = (partitions.to_pylist(), offsets.to_pylist(), moments_us, kinds.to_pylist(), _read_clock_offsets(headers))
    for partition, offset, arrival_us, kind, offset_max_us, view, start, end in zip(
        *told, views, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
    ):
        if view is None:
            # What is read by itself is told by places in its own bytes.
            value = bytes(whole[start:end])
            place = value, 0, len(value), None
        else:
            place = data, start, end, view
        yield partition, _ArrivedRecord(offset, arrival_us, kind == LOG_APPEND_TIME, *place, offset_max_us)


def _read_clock_offsets(headers: pa.ChunkedArray) -> list[int]:
    """Return what the header of each record says of its probe's clock, NO_OFFSET_US where there is none."""
    found = [NO_OFFSET_US] * len(headers)
    laid = headers.combine_chunks()
    told = laid.flatten()
    is_asked = pc.equal(told.field("key"), OFFSET_HEADER)
    rows, values = laid.value_parent_indices().filter(is_asked), told.field("value").filter(is_asked)
    for row, value in zip(rows.to_pylist(), values.to_pylist(), strict=True):
        if value is not None and _OFFSET.fullmatch(value):
            found[row] = int(value)
    return found


def _land_record(one: _OffsetRange, record: _ArrivedRecord, folder: Path, rules: Mapping[str, StreamConfig]) -> None:
    if one.runs and one.runs[-1].last + 1 == record.offset:
        one.runs[-1] = one.runs[-1].longer(record.offset, record.arrival_us)
    else:
        one.runs.append(OffsetRun(one.place, record.offset, record.offset, record.arrival_us, record.arrival_us))
    try:
        view = _parse_arrived(record)
    except envelope.RecordError as error:
        _set_aside(one, record, error)
        return
    fault = find_undeclared(view, rules)
    if fault is not None:
        _set_aside(one, record, fault, sender_of(view))
        if keeps_book(fault, view, rules):
            one.intake.add_record(record.data, view, 0, record.end - record.start, record.arrival_us)
        return
    start = _append(one, record.value, folder) if view.kind == BatchKind.OBSERVATIONS else 0
    end, moved = start + record.end - record.start, start - record.start
    one.intake.add_record(record.data, view, start, end, record.arrival_us, moved, record.offset_max_us)


def _set_aside(
    one: _OffsetRange, record: _ArrivedRecord, fault: envelope.RecordError, sent_by: SendingInstance | None = None
) -> None:
    where = (one.place, record.offset, record.end - record.start, record.arrival_us)
    one.broken.append(SetAside(*where, fault.reason, str(fault), sent_by))


def _parse_arrived(record: _ArrivedRecord) -> envelope.RecordView:
    if not record.is_of_broker:
        # The producer's clock may say anything, and the arrival clock of all streams goes by it.
        what = "the topic's message.timestamp.type is LogAppendTime, got a record with its producer's time"
        raise envelope.RecordError("no_arrival_time", what)
    return record.view or parse_record(record.data, record.start, record.end)


def _append(one: _OffsetRange, record: bytes, folder: Path) -> int:
    """Write a record behind the others; return where it starts."""
    if one.file is None:
        folder.mkdir(parents=True, exist_ok=True)
        # A name of its own: a straggler may be landing the same records.
        one.file = (folder / f"{uuid4().hex}{segment.OPEN_SUFFIX}").open("xb")
        one.size = one.file.write(segment.MAGIC)
    start = one.size + segment.FRAME_BYTES
    one.size += one.file.write(segment.encode_frame(record))
    return start


def _publish(one: _OffsetRange, folder: Path) -> Iterator[JobRow]:
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
        yield JobRow(SET_ASIDE_ROW, "", 0, 0, None, place.pack())
    for run in one.runs:
        yield JobRow(OFFSETS_ROW, "", 0, 0, None, run.pack())


def _discard(one: _OffsetRange) -> None:
    """Close a range's file, and delete what was not published."""
    if one.file is not None:
        one.file.close()
        Path(one.file.name).unlink(missing_ok=True)
