"""Reader of many small records at once, as arrays; a record that is not as most are is left to the reader of one.

Most records are small, whole, of the current version, and have neither reasons, nor drops, nor counts. What stands
here reads only such, and says of them what :func:`envelope.read_record` says, but once for all: of a small record the
steps of Python are what costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import BatchKind, Outcome, WireIdKind
from hopwatch.probes.contract.body import Buffer, ByteSpan
from hopwatch.probes.contract.envelope import RecordError, RecordView
from hopwatch.probes.contract.limits import (
    ID_BYTES,
    MAX_COUNT,
    MAX_ID_TEXT_CHARS,
    MAX_LABELS,
    MAX_NAME_CHARS,
    NAME_PATTERN,
    NO_REASON,
    NOT_STAMPED,
    WINDOW_MS,
    WINDOW_US,
)

MIN_RECORDS: Final = 32
"""Fewer records are left to the reader of one: the arrays would cost more than they save."""
MAX_COMMON_BYTES: Final = 4_096
"""A larger record is left to the reader of one, as its own arrays are what costs."""
_MAX_BITS: Final = 63
"""Bits of a varint of nine bytes; a longer one is left to the reader of one."""
_MAX_KNOWN_NAMES: Final = 1 << 16
_CONTINUES: Final = 0x80
_NO_TEXTS: Final = (None, None, None, None)
_make_span: Final[Callable[[Iterable[int]], ByteSpan]] = partial(tuple.__new__, ByteSpan)
_make_view: Final[Callable[[Iterable[Any]], RecordView]] = partial(tuple.__new__, RecordView)
"""As ``_make`` of both does, without a step of Python."""
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Spans(NamedTuple):
    """A field of each record: bytes ``starts`` to ``ends`` of the buffer."""

    starts: Int64s
    ends: Int64s

    @property
    def sizes(self) -> Int64s:
        """Return how many bytes each has."""
        return self.ends - self.starts

    def views(self) -> list[ByteSpan]:
        """Return them one by one."""
        return list(map(_make_span, zip(self.starts.tolist(), self.ends.tolist(), strict=True)))


class _Cursors:
    """Cursors over the bodies of many records; ``is_common`` says which of these are as expected so far."""

    def __init__(self, buffer: Buffer, positions: Int64s, ends: Int64s) -> None:
        self.buffer = buffer
        self._bytes = np.frombuffer(buffer, np.uint8)
        self.positions, self.ends = positions, ends
        self.is_common = np.ones(len(positions), bool)

    def expect(self, is_expected: Bools) -> None:
        """Give up the records that are not as expected."""
        self.is_common &= is_expected

    def read_longs(self) -> Int64s:
        """Read a zigzag varint of each record."""
        values, more, bits = np.zeros(len(self.positions), np.uint64), np.ones(len(self.positions), bool), 0
        while bits < _MAX_BITS and more.any():
            # Of a record that ends before, any byte is read; it is given up below.
            byte = np.where(more, self._bytes[np.minimum(self.positions, len(self._bytes) - 1)], np.uint8(0))
            values |= (byte & np.uint8(_CONTINUES - 1)).astype(np.uint64) << np.uint64(bits)
            self.positions = self.positions + more
            more = byte >= _CONTINUES
            bits += 7
        self.expect(~more & (self.positions <= self.ends))
        return (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)

    def read_spans(self) -> _Spans:
        """Read a length of each record, and skip that many bytes."""
        lengths = self.read_longs()
        starts = self.positions
        is_within = (lengths >= 0) & (lengths <= self.ends - starts)
        self.expect(is_within)
        self.positions = np.where(is_within, starts + lengths, starts)
        return _Spans(starts, self.positions)

    def read_maps(self) -> _Spans:
        """Skip a map of texts of each record, which is of one block."""
        starts, counts = self.positions, self.read_longs()
        self.expect((counts >= 0) & (counts <= MAX_LABELS))
        for place in range(2 * int(np.where(self.is_common, counts, 0).max(initial=0))):
            self._skip_where(place < 2 * counts)
        # Behind the items of a block the next one begins, which has none.
        before = self.positions
        following = self.read_longs()
        self.expect((counts == 0) | (following == 0))
        self.positions = np.where(counts == 0, before, self.positions)
        return _Spans(starts, self.positions)

    def _skip_where(self, is_there: Bools) -> None:
        """Skip a text of those records that have one."""
        positions, is_common = self.positions, self.is_common.copy()
        self.read_spans()
        self.positions = np.where(is_there, self.positions, positions)
        self.is_common = np.where(is_there, self.is_common, is_common)


def read_common_records(buffer: Buffer, starts: Int64s, ends: Int64s) -> list[RecordView | None]:
    """Read the records at some places of a buffer, each as the readers of one do, and check their values.

    None stands for a record that is to be read by itself: it may be whole or not.
    """
    sizes = ends - starts
    chosen = np.flatnonzero((sizes <= MAX_COMMON_BYTES) & (sizes > envelope.PREFIX_BYTES) & (ends <= len(buffer)))
    views: list[RecordView | None] = [None] * len(starts)
    if len(chosen) < MIN_RECORDS:
        return views
    for place, view in zip(chosen.tolist(), _read_chosen(buffer, starts[chosen], ends[chosen]), strict=True):
        views[place] = view
    return views


def _read_chosen(buffer: Buffer, starts: Int64s, ends: Int64s) -> list[RecordView | None]:
    body = _Cursors(buffer, starts + envelope.PREFIX_BYTES, ends)
    body.expect(envelope.find_versions(buffer, starts) == envelope.VERSION)
    probe = body.read_spans()
    epoch_us, seq, kind = body.read_longs(), body.read_longs(), body.read_longs()
    stream, node = body.read_spans(), body.read_spans()
    window_start_ms, sent_at_us, through_us = body.read_longs(), body.read_longs(), body.read_longs()
    count = body.read_longs()
    ids, offsets, lag_in, lag_out, outcome, reason = (body.read_spans() for _ in range(6))
    reasons, drops = body.read_longs(), body.read_longs()
    labels = body.read_maps()
    id_kind = body.read_longs()
    texts, text_ends, until, sequence = (body.read_spans() for _ in range(4))
    metrics = body.read_longs()
    body.expect((reasons == 0) & (drops == 0) & (metrics == 0) & (body.positions == ends))
    body.expect((seq >= 0) & (kind >= 0) & (kind <= BatchKind.METRICS) & (window_start_ms % WINDOW_MS == 0))
    body.expect((id_kind >= 0) & (id_kind <= WireIdKind.TEXT))
    body.expect(np.where(kind == BatchKind.OBSERVATIONS, (count >= 1) & (count <= MAX_COUNT), count == 0))
    body.expect(ids.sizes == ID_BYTES * count)
    fields = offsets, lag_in, lag_out, outcome, reason, text_ends, until, sequence
    for spans, (_, item_bytes) in zip(fields, envelope.ITEM_BYTES, strict=True):
        body.expect((spans.sizes == 0) | (spans.sizes == item_bytes * count))
    body.expect((id_kind == WireIdKind.TEXT) | ((texts.sizes == 0) & (text_ends.sizes == 0)))
    last_outcome = np.where(id_kind == WireIdKind.UNKNOWN, Outcome.REJECTED, Outcome.DEFERRED)
    body.expect(_reduce(np.maximum, body, offsets, "<u4", 0) < WINDOW_US)
    body.expect(_reduce(np.maximum, body, outcome, "u1", 0) <= last_outcome)
    body.expect(_reduce(np.minimum, body, reason, "u1", NO_REASON) == NO_REASON)
    is_stamped = [_reduce(np.minimum, body, lags, "<i8", NOT_STAMPED) != NOT_STAMPED for lags in (lag_in, lag_out)]
    body.expect(is_stamped[0] | is_stamped[1] | (count == 0))
    _check_texts(body, texts, text_ends)
    texts_of = _read_texts(body, (probe, stream, node, labels))
    nothing: list[tuple[()]] = [()] * len(starts)
    columns = (
        texts_of[0], epoch_us.tolist(), seq.tolist(), kind.tolist(), texts_of[1], texts_of[2],
        window_start_ms.tolist(), sent_at_us.tolist(), through_us.tolist(), count.tolist(),
        *(spans.views() for spans in (ids, offsets, lag_in, lag_out, outcome, reason)), nothing, nothing, texts_of[3],
        id_kind.tolist(), *(spans.views() for spans in (texts, text_ends, until, sequence)), nothing, labels.views(),
    )  # fmt: skip
    return [
        _make_view(of_record) if is_common else None
        for is_common, of_record in zip(body.is_common.tolist(), zip(*columns, strict=True), strict=True)
    ]


def _reduce(ufunc: np.ufunc, body: _Cursors, spans: _Spans, dtype: str, nothing: int) -> Int64s:
    """Reduce the values of a field of each record that is common so far; where it has none there is nothing."""
    found = np.full(len(spans.starts), nothing, np.int64)
    chosen = np.flatnonzero(body.is_common & (spans.sizes > 0))
    if len(chosen):
        counts = spans.sizes[chosen] // np.dtype(dtype).itemsize
        values = envelope.read_packed_many(body.buffer, spans.starts[chosen], counts, dtype)
        found[chosen] = ufunc.reduceat(values, np.cumsum(counts) - counts)
    return found


def _check_texts(body: _Cursors, texts: _Spans, text_ends: _Spans) -> None:
    """Give up the records with texts of ids that do not end one behind the other, or that are long."""
    body.expect((text_ends.sizes > 0) | (texts.sizes == 0))
    chosen = np.flatnonzero(body.is_common & (text_ends.sizes > 0))
    if not len(chosen):
        return
    counts = text_ends.sizes[chosen] // np.dtype("<u4").itemsize
    ends = envelope.read_packed_many(body.buffer, text_ends.starts[chosen], counts, "<u4").astype(np.int64)
    first, last = np.cumsum(counts) - counts, np.cumsum(counts) - 1
    lengths = np.diff(ends, prepend=0)
    lengths[first] = ends[first]
    is_common = np.minimum.reduceat(lengths, first) >= 0
    is_common &= (np.maximum.reduceat(lengths, first) <= MAX_ID_TEXT_CHARS) & (ends[last] == texts.sizes[chosen])
    body.is_common[chosen[~is_common]] = False


def _read_texts(body: _Cursors, spans: tuple[_Spans, ...]) -> tuple[list[Any], ...]:
    """Return probe, stream, node and labels of each record, and give up where one is not as it has to be."""
    found: tuple[list[Any], ...] = ([], [], [], [])
    places = zip(*(column.tolist() for of_records in spans for column in of_records), strict=True)
    for number, (is_common, of_record) in enumerate(zip(body.is_common.tolist(), places, strict=True)):
        told = _read_texts_of_one(body.buffer, *of_record) if is_common else None
        body.is_common[number] = told is not None
        for column, text in zip(found, told or _NO_TEXTS, strict=True):
            column.append(text)
    return found


def _read_texts_of_one(  # noqa: PLR0913, PLR0917 - where each of four texts begins and ends
    buffer: Buffer,
    probe_start: int,
    probe_end: int,
    stream_start: int,
    stream_end: int,
    node_start: int,
    node_end: int,
    labels_start: int,
    labels_end: int,
) -> tuple[str, str, str, dict[str, str]] | None:
    probe = _read_probe(buffer[probe_start:probe_end])
    stream, node = _read_name(buffer[stream_start:stream_end]), _read_name(buffer[node_start:node_end])
    if probe is None or stream is None or node is None:
        return None
    if labels_end - labels_start == 1:
        return probe, stream, node, {}
    try:
        return probe, stream, node, envelope.read_labels(buffer, labels_start, labels_end)
    except RecordError:
        return None


@lru_cache(maxsize=_MAX_KNOWN_NAMES)
def _read_probe(text: bytes) -> str | None:
    try:
        name = text.decode()
    except UnicodeDecodeError:
        return None
    return name if 1 <= len(name) <= MAX_NAME_CHARS else None


@lru_cache(maxsize=_MAX_KNOWN_NAMES)
def _read_name(text: bytes) -> str | None:
    name = text.decode("ascii", "replace")
    return name if NAME_PATTERN.fullmatch(name) else None
