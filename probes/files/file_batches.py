"""Batches of a file: what the columns of its rows become on the wire, by their content alone.

Instance, epoch, numbers, arrivals and bytes of the batches follow from the file's print, its server and its rows: no
clock, no path. Whoever imports the same file makes the same batches, and the monitor counts each number once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Outcome
from hopwatch.probes.contract.limits import MAX_DROPS, MAX_LABEL_CHARS, NOT_STAMPED, SCHEMA_LABEL, WINDOW_MS, WINDOW_US
from hopwatch.probes.event_times import MAX_EVENT_US
from hopwatch.probes.files.rows import GOOD, REASONS, UNTIMED, RowColumns
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, PackedBatch, pack_batches
from hopwatch.probes.taps.untimed_messages import MissedMessages, UntimedMessages
from hopwatch.probes.values import SkipReason

FAR_US: Final = 366 * 86_400_000_000
"""Distance from the middle of a file's first rows beyond which an event time is taken for a mistake."""
MAX_KEPT_DROPS: Final = 10_000
"""Windows and causes of drops that are told; more leave a number out, which may be any of them."""


class TimedRecord(NamedTuple):
    """Record, and the end of the minute in which the file says that its observations were stamped, µs."""

    record: bytes
    arrival_us: int


class FileEnd(NamedTuple):
    """End of a server's rows in one file: all that its bye is made of, and the heartbeats before it.

    ``marks`` are these, by number and the moment, µs, before which each completes all.
    """

    probe: str
    epoch_us: int
    server: str
    seq: int
    last_us: int
    marks: Sequence[Sequence[int]] = ()

    def open_instance(self, stream: str, node: str) -> ProbeInstance:
        """Return the instance that ends so."""
        return ProbeInstance(stream, node, self.probe, self.epoch_us, build_labels(self.server))

    def build_records(self, stream: str, node: str) -> Iterator[TimedRecord]:
        """Yield the records by which the file completes its rows, the last of which is the bye."""
        instance, end_us = self.open_instance(stream, node), find_minute_end_us(self.last_us)
        told = [(BatchKind.HEARTBEAT, seq, at_us - 1, at_us - 1) for seq, at_us in self.marks]
        for kind, seq, sent_us, through_us in (*told, (BatchKind.BYE, self.seq, end_us - 1, self.last_us)):
            batch = Batch(
                instance.probe, instance.epoch_us, seq, kind, stream, node,
                sent_us // WINDOW_US * WINDOW_MS, sent_us, through_us, labels=instance.labels,
            )  # fmt: skip
            yield TimedRecord(envelope.encode(batch), sent_us + 1)


def find_minute_end_us(moment_us: int) -> int:
    """Return the end of the minute of a moment."""
    return (moment_us // WINDOW_US + 1) * WINDOW_US


def build_labels(server: str) -> dict[str, str]:
    """Return the labels of an instance of a server; none without one."""
    return {"host": server[:MAX_LABEL_CHARS]} if server else {}


@dataclass(slots=True)
class FileSpan:
    """Span of what was stamped, µs, and the middles of the event times and of the stamps of the first rows."""

    middle_us: int
    stamp_middle_us: int
    first_us: int
    last_us: int


@dataclass(slots=True)
class FileBatches:
    """Batches of the rows of one server in one file."""

    stream: str
    node: str
    probe: str
    server: str
    id_text: bool = True
    schema: str = ""
    span: FileSpan | None = None
    observations: int = 0
    instance: ProbeInstance | None = None
    _seq: int = 0
    _drops: Counter[tuple[int, str]] = field(default_factory=Counter)
    _has_lost_count: bool = False
    _untimed: UntimedMessages = field(default_factory=UntimedMessages)

    def add(self, rows: RowColumns, tally: Counter[str]) -> Iterator[TimedRecord]:
        """Yield the batches of some rows, the hello first; bad rows are counted in ``tally``, and as drops."""
        good = np.flatnonzero(rows.faults == GOOD)
        if self.span is None and len(timed := good if len(good) else np.flatnonzero(rows.event_us >= 0)):
            self._begin(rows, timed)
            yield self._build_hello()
        if self.span is not None and len(good):
            good = self._refuse_far(rows, good)
        self._note_bad(rows, tally)
        if self.span is None or not len(good):
            return
        chosen = good if len(good) < len(rows) else slice(None)
        event_us, in_us, out_us = rows.event_us[chosen], rows.in_us[chosen], rows.out_us[chosen]
        stamped_us = np.maximum(in_us, out_us)
        self.span.last_us = max(self.span.last_us, int(stamped_us.max()))
        count = len(event_us)
        has_texts = self.id_text and len(rows.texts) > 0
        columns = Columns(
            rows.ids[chosen], event_us, in_us, out_us,
            np.full(count, Outcome.PASSED, np.uint8), np.full(count, NO_TEXT), rows.kinds[chosen],
            good if has_texts else np.full(count, NO_TEXT), np.zeros(count, np.int64),
            np.full(count, NO_LABELS),
        )  # fmt: skip
        for packed in pack_batches(columns, [], rows.texts if has_texts else ()):
            self.observations += packed.count
            yield self._build_observations(packed)

    @property
    def stamp_middle_us(self) -> int | None:
        """Return the middle of the stamps of the first rows; None without any row."""
        return None if self.span is None else self.span.stamp_middle_us

    @property
    def end(self) -> FileEnd | None:
        """Return what the bye is made of, behind the last batch; None without any row."""
        if self.instance is None or self.span is None:
            return None
        return FileEnd(self.probe, self.instance.epoch_us, self.server, self._seq, self.span.last_us)

    def finish(self) -> Iterator[TimedRecord]:
        """Yield the last batches, the drops.

        They complete nothing: as of a probe that died, nobody knows what else there was, until a bye says so.
        """
        if self.span is None or self.instance is None:
            return
        for missed in self._untimed.flush(self.span.last_us):
            self._count_missed(missed)
        drops = [Drop(start_ms, count, cause) for (start_ms, cause), count in sorted(self._drops.items())]
        self._seq += self._has_lost_count
        at_us = find_minute_end_us(self.span.last_us)
        for first in range(0, max(1, len(drops)), MAX_DROPS):
            yield self._build(BatchKind.HEARTBEAT, at_us, self.instance.epoch_us, drops[first : first + MAX_DROPS])

    def _refuse_far(self, rows: RowColumns, good: NDArray[np.int64]) -> NDArray[np.int64]:
        """Refuse rows with moments far from those of the file, which would list a window for each minute between."""
        assert self.span is not None  # noqa: S101 - it has begun
        far = np.abs(rows.event_us[good] - self.span.middle_us) > FAR_US
        rows.event_us[good[far]] = UNTIMED
        for stamps_us in (rows.in_us[good], rows.out_us[good]):
            far |= (stamps_us != NOT_STAMPED) & (np.abs(stamps_us - self.span.middle_us) > FAR_US)
        rows.faults[good[far]] = REASONS.index(SkipReason.BAD_TIME) + 1
        return good[~far]

    def _begin(self, rows: RowColumns, timed: NDArray[np.int64]) -> None:
        """Set the instance by the first rows that are good, or have a time; its epoch is the earliest stamp of them."""
        in_us, out_us, event_us = rows.in_us[timed], rows.out_us[timed], rows.event_us[timed]
        stamps = np.concatenate((in_us[in_us != NOT_STAMPED], out_us[out_us != NOT_STAMPED]))
        middle_us = int(np.sort(event_us)[len(event_us) // 2])
        near = stamps[np.abs(stamps - middle_us) <= FAR_US]
        first_us = int(near.min()) if len(near) else middle_us
        stamp_middle_us = int(np.sort(near)[len(near) // 2]) if len(near) else middle_us
        self.span = FileSpan(middle_us, stamp_middle_us, first_us, first_us)
        self.instance = ProbeInstance(self.stream, self.node, self.probe, first_us, build_labels(self.server))

    def _note_bad(self, rows: RowColumns, tally: Counter[str]) -> None:
        """Count bad rows as drops of the windows that they are or may be of, as the rows around them say."""
        bad = np.flatnonzero(rows.faults != GOOD)
        if not len(bad):
            if len(rows):
                self._pass_good(int(rows.event_us[0]), int(rows.event_us[-1]))
            return
        codes, counts = np.unique(rows.faults[bad], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            tally[REASONS[code - 1]] += count
        timed = bad[rows.event_us[bad] >= 0]
        for code in codes.tolist():
            minutes, of_minute = np.unique(
                rows.event_us[timed[rows.faults[timed] == code]] // WINDOW_US, return_counts=True
            )
            for minute, count in zip(minutes.tolist(), of_minute.tolist(), strict=True):
                self._count(REASONS[code - 1], count, minute * WINDOW_US)
        # Runs of rows that are untimed alike, or not: a file may be one long run of either.
        state = np.where((rows.faults != GOOD) & (rows.event_us < 0), rows.faults, GOOD)
        begins = np.concatenate(([0], np.flatnonzero(np.diff(state)) + 1))
        ends = np.append(begins[1:], len(state))
        for first, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if state[first] == GOOD:
                self._pass_good(int(rows.event_us[first]), int(rows.event_us[end - 1]))
            else:
                self._untimed.add_bad(REASONS[int(state[first]) - 1], end - first)

    def _pass_good(self, first_us: int, last_us: int) -> None:
        """Count the untimed rows before a run of others in the windows around them."""
        for event_us in (first_us, last_us):
            for missed in self._untimed.add_good(event_us):
                self._count_missed(missed)

    def _count_missed(self, missed: MissedMessages) -> None:
        self._count(missed.reason, missed.number, missed.window_start_us)

    def _count(self, cause: str, count: int, start_us: int) -> None:
        key = start_us // WINDOW_US * WINDOW_MS, str(cause)
        if key not in self._drops and len(self._drops) >= MAX_KEPT_DROPS:
            self._has_lost_count = True
            return
        self._drops[key] += count

    def _build_hello(self) -> TimedRecord:
        assert self.span is not None  # noqa: S101 - what begins has a span
        return self._build(BatchKind.HEARTBEAT, find_minute_end_us(self.span.first_us), self.span.first_us)

    def _build_observations(self, packed: PackedBatch) -> TimedRecord:
        assert self.instance is not None  # noqa: S101 - what begins has an instance
        arrival_us = _find_arrival_us(packed)
        batch = self._batch(BatchKind.OBSERVATIONS, packed.window_start_ms, arrival_us - 1, self.instance.epoch_us)
        labels = self.instance.labels | ({SCHEMA_LABEL: self.schema} if self.schema else {})
        fields = batch | {"labels": labels, "count": packed.count}
        whole = Batch(**fields, **packed.fields)  # type: ignore[arg-type]
        return TimedRecord(envelope.encode(whole), arrival_us)

    def _build(self, kind: BatchKind, at_us: int, through_us: int, drops: Sequence[Drop] = ()) -> TimedRecord:
        sent_us = at_us - 1
        batch = self._batch(kind, sent_us // WINDOW_US * WINDOW_MS, sent_us, through_us)
        return TimedRecord(envelope.encode(Batch(**batch, drops=tuple(drops))), at_us)  # type: ignore[arg-type]

    def _batch(self, kind: BatchKind, start_ms: int, sent_us: int, through_us: int) -> dict[str, object]:
        """Return the fields that all batches have, with the next number."""
        instance, seq = self.instance, self._seq
        assert instance is not None  # noqa: S101 - what begins has an instance
        self._seq += 1
        return {
            "probe": instance.probe, "epoch_us": instance.epoch_us, "seq": seq, "kind": kind, "stream": self.stream,
            "node": self.node, "window_start_ms": start_ms, "sent_at_us": sent_us, "complete_through_us": through_us,
            "labels": instance.labels,
        }  # fmt: skip


def _find_arrival_us(packed: PackedBatch) -> int:
    """Return the end of the minute of a batch's last stamp, no earlier than that of its window."""
    fields, latest_us = packed.fields, packed.window_start_ms * 1_000 + WINDOW_US - 1
    offsets_us = np.frombuffer(fields["event_offset_us"], "<u4").astype(np.int64)
    for lags in (fields["lag_in_us"], fields["lag_out_us"]):
        if lags:
            lags_us = np.frombuffer(lags, "<i8")
            stamped = lags_us != NOT_STAMPED
            if stamped.any():
                latest_us = max(latest_us, packed.window_start_ms * 1_000 + int((lags_us + offsets_us)[stamped].max()))
    return min(find_minute_end_us(latest_us), MAX_EVENT_US)
