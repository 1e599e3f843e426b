"""Segments in, a few rows out: nothing is ever a row per observation.

The worker opens each segment itself, checks every record, and leaves the observations where they are: a row carries
claim checks on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hopwatch.monitor import segment_file
from hopwatch.monitor.parcels import SetAside
from hopwatch.monitor.rules import StreamRules
from hopwatch.monitor.spark.intake import Intake, checked, sender, undeclared
from hopwatch.monitor.spark.rows import CLOCK_ROW, SET_ASIDE_ROW, Batches, Row, arrow
from hopwatch.monitor.spark.sources.spool import local_path
from hopwatch.monitor.undeclared import UNKNOWN_NODE
from hopwatch.probes.contract import envelope, segment


def decoder(rules: Mapping[str, StreamRules]) -> Callable[[Batches], Batches]:
    """Return the function for ``mapInArrow`` that turns batches of paths into batches of rows."""

    def decode_batches(batches: Batches) -> Batches:
        yield from arrow(decode((local_path(path) for batch in batches for path in batch.column(0).to_pylist()), rules))

    return decode_batches


def decode(paths: Iterable[str], rules: Mapping[str, StreamRules]) -> Iterator[Row]:
    """Yield the rows of all segments, and last a clock row with the latest arrival among them."""
    latest_us = None
    for path in paths:
        file = segment_file.read(path)
        if file.fault:
            yield _set_aside(SetAside(path, 0, file.size, file.arrival_us, file.fault, file.message))
        if file.fault == segment_file.UNREADABLE_FILE:
            # Nobody knows when it came.
            continue
        latest_us = max(file.arrival_us, latest_us or file.arrival_us)
        if not file.fault:
            yield from _rows(path, file.arrival_us, file.data, rules)
    if latest_us is not None:
        yield Row(CLOCK_ROW, "", 0, 0, latest_us, b"")


def _rows(path: str, arrival_us: int, data: bytes, rules: Mapping[str, StreamRules]) -> Iterator[Row]:
    intake = Intake(rules)
    for frame in segment.read_frames(data):
        fault: envelope.RecordError | None
        sent_by = None
        try:
            view = _view(data, frame)
            fault, sent_by = undeclared(view, rules), sender(view)
            if fault is None or fault.reason == UNKNOWN_NODE:
                intake.take(data, view, frame.start, frame.end, arrival_us)
        except envelope.RecordError as error:
            fault = error
        if fault is not None:
            where = path, frame.start, frame.end - frame.start, arrival_us
            yield _set_aside(SetAside(*where, fault.reason, str(fault), sent_by))
    yield from intake.rows(path)


def _set_aside(place: SetAside) -> Row:
    return Row(SET_ASIDE_ROW, "", 0, 0, None, place.pack())


def _view(data: bytes, frame: segment.Frame) -> envelope.RecordView:
    if frame.fault:
        raise envelope.RecordError(frame.fault, frame.message)
    return checked(data, frame.start, frame.end)
