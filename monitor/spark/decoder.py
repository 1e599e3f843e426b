"""Decoder of segments: a few rows for each segment, never a row per observation.

The worker opens each segment itself, checks every record, and leaves the observations where they are: a row carries
claim checks on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hopwatch.monitor import segment_file
from hopwatch.monitor.kernel.recent import RecentSampler
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.row_kinds import SET_ASIDE_ROW
from hopwatch.monitor.spark.rows import Batches, JobRow, build_clock_row, to_arrow
from hopwatch.monitor.spark.segment_accumulator import (
    SegmentAccumulator,
    find_undeclared,
    keeps_book,
    parse_record,
    recent_rows,
    sender_of,
)
from hopwatch.monitor.spark.sources.spool import local_path
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope, segment


def build_decoder(rules: Mapping[str, StreamConfig], *, samples: bool = False) -> Callable[[Batches], Batches]:
    """Return the function for ``mapInArrow`` that turns Arrow batches of paths into Arrow batches of rows.

    Recent stamps are sampled if asked for.
    """

    def decode_batches(batches: Batches) -> Batches:
        paths = (local_path(path) for batch in batches for path in batch.column(0).to_pylist())
        yield from to_arrow(decode_segments(paths, rules, RecentSampler() if samples else None))

    return decode_batches


def decode_segments(
    paths: Iterable[str], rules: Mapping[str, StreamConfig], sampler: RecentSampler | None = None
) -> Iterator[JobRow]:
    """Yield the rows of all segments, then what the sampler has, and last a clock row with the latest arrival."""
    latest_us = None
    for path in paths:
        file = segment_file.read_segment_file(path)
        if file.fault:
            yield _set_aside_row(SetAside(path, 0, file.size, file.arrival_us, file.fault, file.message))
        if file.fault == segment_file.UNREADABLE_FILE:
            # Its arrival time is unknown.
            continue
        latest_us = max(file.arrival_us, latest_us or file.arrival_us)
        if not file.fault:
            yield from _decode_records(path, file.arrival_us, file.data, SegmentAccumulator(rules, sampler))
    yield from recent_rows(sampler)
    if latest_us is not None:
        yield build_clock_row(latest_us)


def _decode_records(path: str, arrival_us: int, data: bytes, intake: SegmentAccumulator) -> Iterator[JobRow]:
    rules = intake.rules
    for frame in segment.read_frames(data):
        fault: envelope.RecordError | None
        sent_by = None
        try:
            view = _parse_frame(data, frame)
            fault, sent_by = find_undeclared(view, rules), sender_of(view)
            if fault is None or keeps_book(fault, view, rules):
                intake.add_record(data, view, frame.start, frame.end, arrival_us)
        except envelope.RecordError as error:
            fault = error
        if fault is not None:
            where = path, frame.start, frame.end - frame.start, arrival_us
            yield _set_aside_row(SetAside(*where, fault.reason, str(fault), sent_by))
    yield from intake.rows(path)


def _set_aside_row(place: SetAside) -> JobRow:
    return JobRow(SET_ASIDE_ROW, "", 0, 0, None, place.pack())


def _parse_frame(data: bytes, frame: segment.Frame) -> envelope.RecordView:
    if frame.fault:
        raise envelope.RecordError(frame.fault, frame.message)
    return parse_record(data, frame.start, frame.end)
