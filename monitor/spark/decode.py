"""Segments in, a few rows out: nothing is ever a row per observation.

The worker opens each segment itself, checks every record, and leaves the observations where they are: a row carries
claim checks on them. What no window may see is told apart here, by the record's own arrival and the configuration.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from monitor.kernel.books import FACTS, IN_WINDOW, DropFact
from monitor.kernel.window import Terms
from monitor.parcels import CLAIMED_FIELDS, CLAIMS, EARLY, NOWHERE, Claims, FactSheet, Quarantined
from monitor.rules import StreamRules
from monitor.spark.rows import CLAIMS_ROW, CLOCK_ROW, FACTS_ROW, QUARANTINE_ROW, Batches, Row, arrow
from monitor.spark.sources.spool import local_path
from probes.contract import envelope, segment
from probes.contract.batch import Kind
from probes.contract.limits import MONITOR_STREAM

ROWS_A_BATCH: Final = 256


class _Instance(NamedTuple):
    stream: str
    node: str
    probe: str
    epoch_us: int


@dataclass(slots=True)
class _Sheet:
    """The batches of one instance in one segment, as they are gathered."""

    labels: dict[str, str]
    facts: list[tuple[int, ...]] = field(default_factory=list)
    drops: list[DropFact] = field(default_factory=list)
    claims: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    observations: dict[int, int] = field(default_factory=dict)


def decoder(rules: Mapping[str, StreamRules]) -> Callable[[Batches], Batches]:
    """Return the function for ``mapInArrow`` that turns batches of paths into batches of rows."""

    def decode_batches(batches: Batches) -> Batches:
        rows = decode((local_path(path) for batch in batches for path in batch.column(0).to_pylist()), rules)
        while chunk := list(islice(rows, ROWS_A_BATCH)):
            yield arrow(chunk)

    return decode_batches


def decode(paths: Iterable[str], rules: Mapping[str, StreamRules]) -> Iterator[Row]:
    """Yield the rows of all segments, and last a clock row with the latest arrival among them."""
    latest_us = None
    for path in paths:
        data, arrival_us = _read(path)
        latest_us = max(arrival_us, latest_us or arrival_us)
        yield from _rows(path, arrival_us, data, rules)
    if latest_us is not None:
        yield Row(CLOCK_ROW, "", 0, 0, latest_us, b"")


def _read(path: str) -> tuple[bytes, int]:
    """Return a segment's bytes and its arrival time, the modification time of the file."""
    with Path(path).open("rb") as file:
        return file.read(), os.fstat(file.fileno()).st_mtime_ns // 1_000


def _rows(path: str, arrival_us: int, data: bytes, rules: Mapping[str, StreamRules]) -> Iterator[Row]:
    sheets: dict[_Instance, _Sheet] = {}
    for frame in segment.walk(data):
        try:
            view = _read_record(data, frame)
            terms = _terms(view, rules)
        except envelope.RecordError as error:
            place = Quarantined(path, frame.start, frame.end - frame.start, arrival_us, error.reason, str(error))
            yield Row(QUARANTINE_ROW, "", 0, 0, None, place.pack())
            continue
        _write_down(sheets, view, frame, arrival_us, terms)
    for instance, sheet in sheets.items():
        yield _facts_row(path, instance, sheet)
        yield from _claims_rows(path, arrival_us, instance, sheet, rules)


def _read_record(data: bytes, frame: segment.Frame) -> envelope.RecordView:
    if frame.fault:
        raise envelope.RecordError(frame.fault, frame.message)
    view = envelope.read(data, frame.start, frame.end)
    envelope.check(data, view)
    return view


def _terms(view: envelope.RecordView, rules: Mapping[str, StreamRules]) -> Terms | None:
    """Return the terms of the record's stream; none for the monitor's own pulse."""
    if view.stream == MONITOR_STREAM:
        return None
    known = rules.get(view.stream)
    if known is None:
        raise envelope.RecordError("unknown_stream", f"the configuration has no stream {view.stream!r}")
    if view.node not in known.pathway.nodes:
        raise envelope.RecordError("unknown_node", f"the path of {view.stream!r} has no node {view.node!r}")
    return known.terms


def _write_down(
    sheets: dict[_Instance, _Sheet],
    view: envelope.RecordView,
    frame: segment.Frame,
    arrival_us: int,
    terms: Terms | None,
) -> None:
    instance = _Instance(view.stream, view.node, view.probe, view.epoch_us)
    sheet = sheets.get(instance)
    if sheet is None:
        sheet = sheets[instance] = _Sheet(view.labels)
    standing = terms.standing(view.window_start_ms, arrival_us) if terms else IN_WINDOW
    complete_through_us = min(view.complete_through_us, arrival_us)
    row = len(sheet.facts)
    sheet.drops.extend(DropFact(row, drop.window_start_ms, drop.count, drop.cause) for drop in view.drops)
    came = (view.seq, arrival_us, complete_through_us, view.sent_at_us)
    sheet.facts.append((*came, view.window_start_ms, view.count, view.kind, standing))
    if view.kind != Kind.OBSERVATIONS or terms is None:
        return
    if standing == IN_WINDOW or terms.is_early(view.window_start_ms, arrival_us):
        is_counted = standing == IN_WINDOW
        refs = sheet.claims.setdefault(view.window_start_ms, [])
        spans = (getattr(view, name) for name in CLAIMED_FIELDS)
        places = [span.start if span.end > span.start else NOWHERE for span in spans]
        refs.append((view.seq, frame.start, frame.end, view.count if is_counted else EARLY, *places))
        counted = sheet.observations.get(view.window_start_ms, 0)
        sheet.observations[view.window_start_ms] = counted + view.count * is_counted


def _facts_row(path: str, instance: _Instance, sheet: _Sheet) -> Row:
    facts = np.array(sheet.facts, FACTS)
    parcel = FactSheet(path, *instance, labels=sheet.labels, facts=facts, drops=tuple(sheet.drops)).pack()
    return Row(FACTS_ROW, "", 0, 0, None, parcel)


def _claims_rows(
    path: str, arrival_us: int, instance: _Instance, sheet: _Sheet, rules: Mapping[str, StreamRules]
) -> Iterator[Row]:
    # An instance's name within its stream; JSON keeps any two apart, whatever the probe calls itself.
    name = json.dumps([instance.node, instance.probe, instance.epoch_us])
    for window_start_ms, refs in sheet.claims.items():
        observations = sheet.observations[window_start_ms]
        parcel = Claims(path, arrival_us, instance.node, name, observations, np.array(refs, CLAIMS)).pack()
        for shard in range(rules[instance.stream].shards):
            yield Row(CLAIMS_ROW, instance.stream, window_start_ms, shard, None, parcel)
