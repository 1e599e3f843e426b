"""Encoder and decoder of records: one marker byte, the schema's fingerprint, and the batch as an Avro body.

Version 2 is written; versions 1 and 2 are read. Writing goes through fastavro. Reading is by hand, because the
monitor reads millions of observations a second and these schemas are fixed: a record costs a few microseconds however
many observations it carries, and no packed array is copied. Property tests compare the two.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

import fastavro
import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract import id_texts
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Metrics, MetricsStamp, Outcome, WireIdKind
from hopwatch.probes.contract.body import BodyCursor, Buffer, ByteSpan, RecordError
from hopwatch.probes.contract.lag_histograms import HistogramError, check_histogram
from hopwatch.probes.contract.limits import (
    ID_BYTES,
    MAX_CAUSE_CHARS,
    MAX_COUNT,
    MAX_DROPS,
    MAX_HISTOGRAM_BYTES,
    MAX_LABEL_CHARS,
    MAX_LABELS,
    MAX_METRICS,
    MAX_NAME_CHARS,
    MAX_REASON_CHARS,
    MAX_REASONS,
    MAX_RECORD_BYTES,
    NAME_PATTERN,
    NO_REASON,
    NOT_STAMPED,
    WINDOW_MS,
    WINDOW_US,
)

MARKER: Final = 0x81
MAX_KNOWN_LABELS: Final = 4_096
"""Labels of batches that are kept as they were read; others are read again."""


def _schema(version: int) -> dict[str, object]:
    text = resources.files("hopwatch.probes.contract").joinpath(f"observation_batch.v{version}.avsc").read_text("utf-8")
    return dict(json.loads(text))


SCHEMA_1: Final = _schema(1)
SCHEMA: Final = _schema(2)
"""Schema of the records that are written."""
FINGERPRINT_1: Final = bytes.fromhex("90f6ad4a1245681f6d5985ae674c05f6a12f41bc8e9f2982eacf6e6271a27d9d")
FINGERPRINT: Final = bytes.fromhex("644b1dd5485e458e98e1dd30fcf33cfa31719c9023cbd25358c7638d6721d9a5")
"""SHA-256 of the schemas' Avro canonical forms; a test recomputes them."""

_PREFIX: Final = bytes([MARKER]) + FINGERPRINT
PREFIX_BYTES: Final = len(_PREFIX)
VERSION: Final = 2
"""Version of the schema that is written."""
_VERSIONS: Final = {bytes([MARKER]) + FINGERPRINT_1: 1, _PREFIX: VERSION}
_WRITER: Final = fastavro.parse_schema(SCHEMA)
ITEM_BYTES: Final = (
    ("event_offset_us", 4),
    ("lag_in_us", 8),
    ("lag_out_us", 8),
    ("outcome", 1),
    ("reason", 1),
    ("id_text_ends", 4),
    ("until_us", 8),
    ("sequence", 8),
)
"""Packed fields beside the ids, in the order of the wire, and the bytes of an item of each."""
_DTYPES: Final = {name: np.dtype(name) for name in ("<i8", "<u4", "<u8", "u1", f"V{ID_BYTES}")}
"""Types of packed fields."""
__all__ = [
    "FINGERPRINT",
    "FINGERPRINT_1",
    "MARKER",
    "SCHEMA",
    "SCHEMA_1",
    "Buffer",
    "ByteSpan",
    "MetricsView",
    "RecordError",
    "RecordView",
    "check_prefix",
    "check_prefixes",
    "check_values",
    "decode",
    "encode",
    "find_event_offsets",
    "find_versions",
    "read_packed",
    "read_packed_many",
    "read_record",
]  # fmt: skip


class MetricsView(NamedTuple):
    """Messages of a window that were counted at one stamp; :class:`hopwatch.probes.contract.batch.Metrics`."""

    stamp: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    id_xor: int
    id_sum: int
    bytes: int
    lag_histogram: ByteSpan


class RecordView(NamedTuple):
    """Batch without copies: its packed fields are positions in the buffer that was read."""

    probe: str
    epoch_us: int
    seq: int
    kind: int
    stream: str
    node: str
    window_start_ms: int
    sent_at_us: int
    complete_through_us: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    message_ids: ByteSpan
    event_offset_us: ByteSpan
    lag_in_us: ByteSpan
    lag_out_us: ByteSpan
    outcome: ByteSpan
    reason: ByteSpan
    reasons: tuple[str, ...]
    drops: tuple[Drop, ...]
    labels: dict[str, str]
    id_kind: int
    id_texts: ByteSpan
    id_text_ends: ByteSpan
    until_us: ByteSpan
    sequence: ByteSpan
    metrics: tuple[MetricsView, ...]
    labels_span: ByteSpan
    """Where the map of labels is."""


def encode(batch: Batch) -> bytes:
    """Return the record of ``batch``: marker, fingerprint, Avro body.

    Raises:
        RecordError: the batch breaks a limit of the wire, so that every reader would refuse it.
    """
    if batch.id_kind is WireIdKind.UNKNOWN:
        raise RecordError("bad_value", "a batch says of which kind its ids are, got one of version 1, which does not")
    body = io.BytesIO()
    body.write(_PREFIX)
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    fields |= {"kind": batch.kind.name, "id_kind": batch.id_kind.name}
    fields["metrics"] = [asdict(one) | {"stamp": one.stamp.name, "bytes": one.size_bytes} for one in batch.metrics]
    fields["drops"] = [
        {"window_start_ms": drop.window_start_ms, "count": drop.count, "cause": drop.cause} for drop in batch.drops
    ]
    try:
        fastavro.schemaless_writer(body, _WRITER, fields)
    except (OverflowError, UnicodeEncodeError) as error:
        raise RecordError("bad_value", f"a number has at most 64 bits, a text is UTF-8: {error}") from None
    record = body.getvalue()
    check_values(record, read_record(record))
    return record


def decode(record: bytes) -> Batch:
    """Return the batch of a record; every limit of the wire is checked.

    It copies the packed fields; the monitor uses :func:`read_record`, which copies none.

    Raises:
        RecordError: the bytes are no valid record; no input raises another error.
    """
    view = read_record(record)
    check_values(record, view)
    packed = {
        name: bytes(record[span.start : span.end])
        for name, span in view._asdict().items()
        if isinstance(span, ByteSpan)
    }
    fields = view._asdict() | packed | {"kind": BatchKind(view.kind), "id_kind": WireIdKind(view.id_kind)}
    fields["metrics"] = tuple(
        Metrics(MetricsStamp(one.stamp), *one[1:5], bytes(record[one.lag_histogram.start : one.lag_histogram.end]))
        for one in view.metrics
    )
    return Batch(**{name: fields[name] for name in Batch.__dataclass_fields__})


def read_record(buffer: Buffer, start: int = 0, end: int | None = None) -> RecordView:
    """Read the record at ``buffer[start:end]``; sizes are checked, the values inside the packed fields are not.

    Raises:
        RecordError: the bytes are no record of a known version, or break a limit that needs no look at the arrays.
    """
    end = len(buffer) if end is None else end
    version = check_prefix(buffer, start, end)
    body = BodyCursor(buffer, start + len(_PREFIX), end)
    head = _read_head(body)
    window_start_ms, sent_at_us, complete_through_us, count = (
        body.read_long(),
        body.read_long(),
        body.read_long(),
        body.read_long(),
    )
    message_ids, event_offset_us, lag_in_us = body.read_span(), body.read_span(), body.read_span()
    lag_out_us, outcome, reason = body.read_span(), body.read_span(), body.read_span()
    reasons = tuple(body.read_text("reason", MAX_REASON_CHARS) for _ in body.iter_items("reasons", MAX_REASONS))
    drops = tuple(_read_drop(body) for _ in body.iter_items("drops", MAX_DROPS))
    labels_start = body.position
    labels = _read_label_map(body)
    labels_span = ByteSpan(labels_start, body.position)
    named = _read_version_2(body) if version > 1 else _VERSION_1_FIELDS
    if body.position != end:
        raise RecordError("trailing_bytes", f"{end - body.position} bytes follow the last field of the record")
    view = RecordView(
        *head, window_start_ms, sent_at_us, complete_through_us, count,
        message_ids, event_offset_us, lag_in_us, lag_out_us, outcome, reason, reasons, drops, labels,
        *named, labels_span,
    )  # fmt: skip
    _check_header(view, version)
    return view


def read_labels(buffer: Buffer, start: int, end: int) -> dict[str, str]:
    """Read the labels of a record that was read before, from where they stand."""
    return _read_label_map(BodyCursor(buffer, start, end))


def find_event_offsets(buffer: Buffer, ids_end: int) -> int | None:
    """Return where the event offsets begin of a record that was read before; None where it has none.

    ``ids_end`` is where its message ids end, behind which the length of the offsets stands.
    """
    position, is_given = ids_end, False
    while True:
        byte = buffer[position]
        position += 1
        is_given |= byte & 0x7F > 0
        if byte < 0x80:  # noqa: PLR2004 - the varint's own continuation bit
            return position if is_given else None


def _read_label_map(body: BodyCursor) -> dict[str, str]:
    """Read labels; most batches have the same as another one, and these are read once."""
    end = body.find_map_end()
    if end is None:
        return _read_labels_by_text(body)
    packed = bytes(body.buffer[body.position : end])
    labels = _read_known_labels(packed)
    body.position = end
    return dict(labels)


@lru_cache(maxsize=MAX_KNOWN_LABELS)
def _read_known_labels(packed: bytes) -> dict[str, str]:
    return _read_labels_by_text(BodyCursor(packed, 0, len(packed)))


def _read_labels_by_text(body: BodyCursor) -> dict[str, str]:
    return {
        body.read_text("label", MAX_LABEL_CHARS): body.read_text("label", MAX_LABEL_CHARS)
        for _ in body.iter_items("labels", MAX_LABELS)
    }


def check_values(buffer: Buffer, view: RecordView) -> None:
    """Check the values inside the packed fields of a record that was read.

    Raises:
        RecordError: an offset outside the window, an unknown outcome or reason, a passed observation without a stamp,
            id texts with wrong ends; metrics in a batch of another kind, or a lag histogram that is none.
    """
    if view.metrics and view.kind != BatchKind.METRICS:
        raise RecordError("bad_value", f"metrics stand in a batch of kind METRICS, got {len(view.metrics)} in another")
    for one in view.metrics:
        _check_histogram(buffer, one)
    if not view.count:
        return
    offsets = read_packed(buffer, view.event_offset_us, "<u4")
    if offsets.size and int(offsets.max()) >= WINDOW_US:
        raise RecordError("bad_value", f"event_offset_us is below {WINDOW_US}, got {int(offsets.max())}")
    outcomes = read_packed(buffer, view.outcome, "u1")
    last_outcome = Outcome.REJECTED if view.id_kind == WireIdKind.UNKNOWN else Outcome.DEFERRED
    if outcomes.size and int(outcomes.max()) > last_outcome:
        raise RecordError("bad_value", f"outcome is {_format_choices(last_outcome)}, got {int(outcomes.max())}")
    reasons = read_packed(buffer, view.reason, "u1")
    unknown = reasons[(reasons != NO_REASON) & (reasons >= len(view.reasons))]
    if unknown.size:
        given = f"an index into the {len(view.reasons)} reasons given"
        raise RecordError("bad_value", f"a reason is {NO_REASON} or {given}, got {int(unknown[0])}")
    _check_stamps(read_packed(buffer, view.lag_in_us, "<i8"), read_packed(buffer, view.lag_out_us, "<i8"), outcomes)
    id_texts.check_texts(read_packed(buffer, view.id_texts, "u1"), read_packed(buffer, view.id_text_ends, "<u4"))


def read_packed(buffer: Buffer, span: ByteSpan, dtype: str) -> np.ndarray:
    """Return a packed field as an array over the buffer, without a copy; shape (count,) or (0,)."""
    kind = _DTYPES[dtype]
    return np.frombuffer(buffer, kind, (span.end - span.start) // kind.itemsize, span.start)


def read_packed_many(buffer: Buffer, starts: NDArray[np.int64], counts: NDArray[np.int64], dtype: str) -> NDArray[Any]:
    """Return a packed field of many records as one array, a copy; each begins at one of ``starts``.

    An item takes some 20 ns, and a record nothing; to read one by one, a record takes some 1 µs, and an item next to
    nothing.
    """
    # Items as bytes, one of them at each byte of the buffer: so they are taken from any place the fastest.
    item_bytes = np.dtype(dtype).itemsize
    every = np.ndarray((max(0, len(buffer) - item_bytes + 1),), f"V{item_bytes}", buffer, 0, (1,))
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    taken: NDArray[Any] = every[np.repeat(starts, counts) + item_bytes * within].view(dtype)
    return taken


def _check_histogram(buffer: Buffer, metrics: MetricsView) -> None:
    packed = bytes(buffer[metrics.lag_histogram.start : metrics.lag_histogram.end])
    try:
        if packed:
            check_histogram(packed, metrics.count)
    except HistogramError as error:
        raise RecordError("bad_value", str(error)) from None


def _format_choices(last: int) -> str:
    return f"{', '.join(map(str, range(last)))} or {last}"


def _check_stamps(lags_in: np.ndarray, lags_out: np.ndarray, outcomes: np.ndarray) -> None:
    stamped_everywhere = any(lags.size and int(lags.min()) != NOT_STAMPED for lags in (lags_in, lags_out))
    if stamped_everywhere:
        return
    bare: np.ndarray | bool = True
    for lags in (lags_in, lags_out):
        if lags.size:
            bare = bare & (lags == NOT_STAMPED)
    if outcomes.size:
        bare = bare & (outcomes == Outcome.PASSED)
    if np.any(bare):
        raise RecordError("bad_value", "an observation that passed carries neither an in nor an out stamp")


def check_prefix(buffer: Buffer, start: int, end: int) -> int:
    """Check that a record begins at ``buffer[start]``, and return its version, 1 or 2.

    Raises:
        RecordError: it is too long or too short for one, or has another marker or fingerprint.
    """
    length = end - start
    if length > MAX_RECORD_BYTES:
        raise RecordError("oversized", f"a record has at most {MAX_RECORD_BYTES} bytes, got {length}")
    # The marker first: bytes that begin with it may be a record of ours, cut or not; all others are foreign.
    if not length or buffer[start] != MARKER:
        got = f"0x{buffer[start]:02x}" if length else "no byte"
        raise RecordError("bad_marker", f"a record starts with 0x{MARKER:02x}, got {got}")
    if length < len(_PREFIX):
        raise RecordError("truncated", f"a record has at least {len(_PREFIX)} bytes, got {length}")
    prefix = bytes(buffer[start : start + len(_PREFIX)])
    if prefix not in _VERSIONS:
        unknown = f"no schema is known by the fingerprint {prefix[1:].hex()}"
        if not _has_known_head(BodyCursor(buffer, start + len(_PREFIX), end)):
            raise RecordError("bad_marker", f"{unknown}, and the body does not begin as that of every version does")
        raise RecordError("unknown_schema", unknown)
    return _VERSIONS[prefix]


def find_versions(buffer: Buffer, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the version of the record that begins at each place, of PREFIX_BYTES at least; 0 where none is known."""
    prefixes = read_packed_many(buffer, starts, np.ones(len(starts), np.int64), f"V{PREFIX_BYTES}")
    versions = np.zeros(len(starts), np.int64)
    for prefix, version in _VERSIONS.items():
        versions[prefixes == np.frombuffer(prefix, prefixes.dtype)[0]] = version
    return versions


def check_prefixes(buffer: Buffer, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Check many records as :func:`check_prefix` does one: by their markers and fingerprints, read all at once.

    Raises:
        RecordError: at one of the places no record begins.
    """
    is_known = (ends <= len(buffer)) & (ends - starts >= PREFIX_BYTES)
    is_known[is_known] = find_versions(buffer, starts[is_known]) > 0
    for place in np.flatnonzero(~is_known).tolist():
        check_prefix(buffer, int(starts[place]), int(ends[place]))


def _has_known_head(body: BodyCursor) -> bool:
    """Return whether a body begins with the fields that all versions share, up to the node."""
    try:
        _, _, seq, kind, *names = _read_head(body)
    except RecordError:
        return False
    return min(seq, kind) >= 0 and all(NAME_PATTERN.fullmatch(name) for name in names)


def _read_head(body: BodyCursor) -> tuple[str, int, int, int, str, str]:
    """Read the fields that all versions share: probe, epoch in µs, number, kind, stream, node."""
    probe = body.read_text("probe", MAX_NAME_CHARS, 1)
    epoch_us, seq, kind = body.read_long(), body.read_long(), body.read_long()
    return probe, epoch_us, seq, kind, body.read_text("stream", MAX_NAME_CHARS), body.read_text("node", MAX_NAME_CHARS)


def _check_header(view: RecordView, version: int) -> None:
    last = BatchKind.BYE if version == 1 else BatchKind.METRICS
    if not 0 <= view.kind <= last:
        raise RecordError("bad_value", f"kind is {_format_choices(last)}, got {view.kind}")
    if version > 1 and not 0 <= view.id_kind <= WireIdKind.TEXT:
        raise RecordError("bad_value", f"id_kind is {_format_choices(WireIdKind.TEXT)}, got {view.id_kind}")
    if view.seq < 0:
        raise RecordError("bad_value", f"seq counts from 0, got {view.seq}")
    for what, name in (("stream", view.stream), ("node", view.node)):
        if not NAME_PATTERN.fullmatch(name):
            raise RecordError("bad_name", f"a {what} is 1 to 128 of the characters A-Za-z0-9._-, got {name[:40]!r}")
    if view.window_start_ms % WINDOW_MS:
        raise RecordError("bad_value", f"window_start_ms is a whole minute, got {view.window_start_ms}")
    if not (1 <= view.count <= MAX_COUNT if view.kind == BatchKind.OBSERVATIONS else view.count == 0):
        raise RecordError("bad_count", f"count is 1 to {MAX_COUNT}, and 0 without observations, got {view.count}")
    _check_lengths(view)


def _check_lengths(view: RecordView) -> None:
    ids_bytes = view.message_ids.end - view.message_ids.start
    if ids_bytes != ID_BYTES * view.count:
        raise RecordError("bad_length", f"message_ids has {ID_BYTES} bytes for each of {view.count}, got {ids_bytes}")
    for (name, item_bytes), span in zip(ITEM_BYTES, (*view[11:16], *view[21:24]), strict=True):
        if span.end - span.start not in (0, item_bytes * view.count):
            each = f"{item_bytes} bytes for each of {view.count}"
            raise RecordError("bad_length", f"{name} is empty or {each}, got {span.end - span.start}")
    if view.id_kind != WireIdKind.TEXT and (
        view.id_texts.end > view.id_texts.start or view.id_text_ends.end > view.id_text_ends.start
    ):
        raise RecordError("bad_value", f"ids have texts where id_kind is {WireIdKind.TEXT}, got {view.id_kind}")


_Version2Fields = tuple[int, ByteSpan, ByteSpan, ByteSpan, ByteSpan, tuple[MetricsView, ...]]
_NOWHERE: Final = ByteSpan(0, 0)
_VERSION_1_FIELDS: Final[_Version2Fields] = (WireIdKind.UNKNOWN, _NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE, ())


def _read_version_2(body: BodyCursor) -> _Version2Fields:
    """Read the fields that version 2 adds behind those of version 1."""
    id_kind, texts, ends, until_us, sequence = (
        body.read_long(),
        body.read_span(),
        body.read_span(),
        body.read_span(),
        body.read_span(),
    )
    return (
        id_kind,
        texts,
        ends,
        until_us,
        sequence,
        tuple(_read_metrics(body) for _ in body.iter_items("metrics", MAX_METRICS)),
    )


def _read_metrics(body: BodyCursor) -> MetricsView:
    found = MetricsView(
        body.read_long(), body.read_long(), body.read_long(), body.read_long(), body.read_long(), body.read_span()
    )
    if not 0 <= found.stamp < len(MetricsStamp) or found.count < 0 or found.bytes < 0:
        got = f"{found.stamp}, {found.count} and {found.bytes}"
        raise RecordError("bad_value", f"metrics have a stamp of 0 to 4, a count and bytes from 0, got {got}")
    if (size := found.lag_histogram.end - found.lag_histogram.start) > MAX_HISTOGRAM_BYTES:
        raise RecordError("bad_length", f"a lag histogram has at most {MAX_HISTOGRAM_BYTES} bytes, got {size}")
    return found


def _read_drop(body: BodyCursor) -> Drop:
    window_start_ms, count, cause = body.read_long(), body.read_long(), body.read_text("cause", MAX_CAUSE_CHARS)
    if window_start_ms % WINDOW_MS or count < 1:
        raise RecordError(
            "bad_value", f"a drop names a whole minute and a count over 0, got {window_start_ms} and {count}"
        )
    return Drop(window_start_ms, count, cause)
