"""The envelope round a batch: one marker byte, the schema's fingerprint, the Avro body; and the way back.

Writing goes through fastavro. Reading is by hand, because the monitor reads millions of observations a second and this
schema is fixed: a record costs a few microseconds however many observations it carries, and no packed array is copied.
The two are held against each other by property tests.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib import resources
from itertools import repeat
from mmap import mmap
from typing import Final, NamedTuple

import fastavro
import numpy as np

from probes.contract.batch import Batch, Drop, Kind, Outcome
from probes.contract.limits import (
    ID_BYTES,
    MAX_CAUSE_CHARS,
    MAX_COUNT,
    MAX_DROPS,
    MAX_LABEL_CHARS,
    MAX_LABELS,
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
SCHEMA: Final[dict[str, object]] = json.loads(
    resources.files("probes.contract").joinpath("observation_batch.v1.avsc").read_text("utf-8")
)
FINGERPRINT: Final = bytes.fromhex("90f6ad4a1245681f6d5985ae674c05f6a12f41bc8e9f2982eacf6e6271a27d9d")
"""SHA-256 of the schema's Avro canonical form; a test computes it afresh."""

_PREFIX: Final = bytes([MARKER]) + FINGERPRINT
_WRITER: Final = fastavro.parse_schema(SCHEMA)
_ITEM_BYTES: Final = (("event_offset_us", 4), ("lag_in_us", 8), ("lag_out_us", 8), ("outcome", 1), ("reason", 1))
_VARINT_BYTES: Final = 10


Buffer = bytes | mmap
"""What records are read from: bytes in memory, or a file mapped into it."""


class RecordError(ValueError):
    """A record that is not what WIRE.md says; ``reason`` is its short name, the message says what was got."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep the short name beside the sentence."""
        super().__init__(message)
        self.reason = reason


class Span(NamedTuple):
    """Where a packed field lies in the buffer that was read: bytes ``start`` to ``end``."""

    start: int
    end: int


class RecordView(NamedTuple):
    """A batch whose packed fields are still where they were read: positions in the buffer, nothing copied."""

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
    message_ids: Span
    event_offset_us: Span
    lag_in_us: Span
    lag_out_us: Span
    outcome: Span
    reason: Span
    reasons: tuple[str, ...]
    drops: tuple[Drop, ...]
    labels: dict[str, str]


def encode(batch: Batch) -> bytes:
    """Return the record of ``batch``: marker, fingerprint, Avro body.

    Raises:
        RecordError: the batch breaks a limit of the wire, so that no reader would take it.
    """
    body = io.BytesIO()
    body.write(_PREFIX)
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    fields["kind"] = batch.kind.name
    fields["drops"] = [
        {"window_start_ms": drop.window_start_ms, "count": drop.count, "cause": drop.cause} for drop in batch.drops
    ]
    try:
        fastavro.schemaless_writer(body, _WRITER, fields)
    except (OverflowError, UnicodeEncodeError) as error:
        raise RecordError("bad_value", f"a number has at most 64 bits, a text is UTF-8: {error}") from None
    record = body.getvalue()
    check(record, read(record))
    return record


def decode(record: bytes) -> Batch:
    """Return the batch that ``record`` carries, every limit of the wire checked.

    Raises:
        RecordError: the only error that any bytes can cause.
    """
    view = read(record)
    check(record, view)
    packed = {
        name: bytes(record[span.start : span.end]) for name, span in view._asdict().items() if isinstance(span, Span)
    }
    return Batch(**{**view._asdict(), "kind": Kind(view.kind), **packed})


def read(buffer: Buffer, start: int = 0, end: int | None = None) -> RecordView:
    """Read the record at ``buffer[start:end]``; sizes are checked, the values inside the packed fields are not.

    Raises:
        RecordError: the bytes are no record of this version, or break a limit that needs no look into the arrays.
    """
    end = len(buffer) if end is None else end
    check_prefix(buffer, start, end)
    body = _Body(buffer, start + len(_PREFIX), end)
    probe = body.text("probe", MAX_NAME_CHARS, 1)
    epoch_us, seq, kind = body.long(), body.long(), body.long()
    stream, node = body.text("stream", MAX_NAME_CHARS), body.text("node", MAX_NAME_CHARS)
    window_start_ms, sent_at_us, complete_through_us, count = body.long(), body.long(), body.long(), body.long()
    message_ids, event_offset_us, lag_in_us = body.span(), body.span(), body.span()
    lag_out_us, outcome, reason = body.span(), body.span(), body.span()
    reasons = tuple(body.text("reason", MAX_REASON_CHARS) for _ in body.items("reasons", MAX_REASONS))
    drops = tuple(_drop(body) for _ in body.items("drops", MAX_DROPS))
    labels = {
        body.text("label", MAX_LABEL_CHARS): body.text("label", MAX_LABEL_CHARS)
        for _ in body.items("labels", MAX_LABELS)
    }
    if body.position != end:
        raise RecordError("trailing_bytes", f"{end - body.position} bytes follow the last field of the record")
    view = RecordView(
        probe, epoch_us, seq, kind, stream, node, window_start_ms, sent_at_us, complete_through_us, count,
        message_ids, event_offset_us, lag_in_us, lag_out_us, outcome, reason, reasons, drops, labels,
    )  # fmt: skip
    _check_header(view)
    return view


def check(buffer: Buffer, view: RecordView) -> None:
    """Check the values inside the packed fields of a record that was read.

    Raises:
        RecordError: an offset outside the window, an unknown outcome or reason, a passed observation without a stamp.
    """
    if not view.count:
        return
    offsets = packed(buffer, view.event_offset_us, "<u4")
    if offsets.size and int(offsets.max()) >= WINDOW_US:
        raise RecordError("bad_value", f"event_offset_us is below {WINDOW_US}, got {int(offsets.max())}")
    outcomes = packed(buffer, view.outcome, "u1")
    if outcomes.size and int(outcomes.max()) > Outcome.REJECTED:
        raise RecordError("bad_value", f"outcome is 0, 1 or 2, got {int(outcomes.max())}")
    reasons = packed(buffer, view.reason, "u1")
    unknown = reasons[(reasons != NO_REASON) & (reasons >= len(view.reasons))]
    if unknown.size:
        given = f"an index into the {len(view.reasons)} reasons given"
        raise RecordError("bad_value", f"a reason is {NO_REASON} or {given}, got {int(unknown[0])}")
    _check_stamps(packed(buffer, view.lag_in_us, "<i8"), packed(buffer, view.lag_out_us, "<i8"), outcomes)


def packed(buffer: Buffer, span: Span, dtype: str) -> np.ndarray:
    """Return a packed field as an array over the buffer, without a copy; shape (count,) or (0,)."""
    item_bytes = np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype, (span.end - span.start) // item_bytes, span.start)


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


def check_prefix(buffer: Buffer, start: int, end: int) -> None:
    """Check that a record of this version begins at ``buffer[start]``.

    Raises:
        RecordError: it is too long or too short for one, or has another marker or fingerprint.
    """
    length = end - start
    if length > MAX_RECORD_BYTES:
        raise RecordError("oversized", f"a record has at most {MAX_RECORD_BYTES} bytes, got {length}")
    if length < len(_PREFIX):
        raise RecordError("truncated", f"a record has at least {len(_PREFIX)} bytes, got {length}")
    if buffer[start] != MARKER:
        raise RecordError("bad_marker", f"a record starts with 0x{MARKER:02x}, got 0x{buffer[start]:02x}")
    if buffer[start : start + len(_PREFIX)] != _PREFIX:
        got = bytes(buffer[start + 1 : start + len(_PREFIX)]).hex()
        raise RecordError("unknown_schema", f"no schema is known by the fingerprint {got}")


def _check_header(view: RecordView) -> None:
    if view.kind not in (Kind.OBSERVATIONS, Kind.HEARTBEAT, Kind.BYE):
        raise RecordError("bad_value", f"kind is 0, 1 or 2, got {view.kind}")
    if view.seq < 0:
        raise RecordError("bad_value", f"seq counts from 0, got {view.seq}")
    for what, name in (("stream", view.stream), ("node", view.node)):
        if not NAME_PATTERN.fullmatch(name):
            raise RecordError("bad_name", f"a {what} is 1 to 128 of the characters A-Za-z0-9._-, got {name[:40]!r}")
    if view.window_start_ms % WINDOW_MS:
        raise RecordError("bad_value", f"window_start_ms is a whole minute, got {view.window_start_ms}")
    if not (1 <= view.count <= MAX_COUNT if view.kind == Kind.OBSERVATIONS else view.count == 0):
        raise RecordError("bad_count", f"count is 1 to {MAX_COUNT}, and 0 without observations, got {view.count}")
    ids_bytes = view.message_ids.end - view.message_ids.start
    if ids_bytes != ID_BYTES * view.count:
        raise RecordError("bad_length", f"message_ids has {ID_BYTES} bytes for each of {view.count}, got {ids_bytes}")
    for (name, item_bytes), span in zip(_ITEM_BYTES, view[11:16], strict=True):
        if span.end - span.start not in (0, item_bytes * view.count):
            each = f"{item_bytes} bytes for each of {view.count}"
            raise RecordError("bad_length", f"{name} is empty or {each}, got {span.end - span.start}")


def _drop(body: _Body) -> Drop:
    window_start_ms, count, cause = body.long(), body.long(), body.text("cause", MAX_CAUSE_CHARS)
    if window_start_ms % WINDOW_MS or count < 1:
        raise RecordError(
            "bad_value", f"a drop names a whole minute and a count over 0, got {window_start_ms} and {count}"
        )
    return Drop(window_start_ms, count, cause)


class _Body:
    """A cursor over an Avro body; every step stays inside it."""

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: Buffer, position: int, end: int) -> None:
        self.buffer = buffer
        self.position = position
        self.end = end

    def long(self) -> int:
        """Read a zigzag varint of at most 64 bits."""
        buffer, position, value, shift = self.buffer, self.position, 0, 0
        stop = min(self.end, position + _VARINT_BYTES)
        while position < stop:
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the varint's own continuation bit
                self.position = position
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1)
            shift += 7
        reason = "truncated" if position >= self.end else "malformed"
        raise RecordError(reason, f"no whole number of at most 64 bits at byte {self.position} of the buffer")

    def span(self) -> Span:
        """Read a length and step over as many bytes."""
        length = self.long()
        start = self.position
        if not 0 <= length <= self.end - start:
            raise RecordError("truncated", f"a field of {length} bytes starts where {self.end - start} are left")
        self.position = start + length
        return Span(start, self.position)

    def text(self, what: str, most_chars: int, least_chars: int = 0) -> str:
        """Read a string within its bounds."""
        start, end = self.span()
        if end - start > 4 * most_chars:
            raise RecordError("bad_length", f"a {what} has at most {most_chars} characters, got {end - start} bytes")
        try:
            text = str(self.buffer[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise RecordError("malformed", f"a {what} is not UTF-8: {error.reason}") from None
        if not least_chars <= len(text) <= most_chars:
            raise RecordError("bad_length", f"a {what} has {least_chars} to {most_chars} characters, got {len(text)}")
        return text

    def items(self, what: str, most: int) -> Iterator[None]:
        """Yield once for each item of an Avro array or map, block by block, never more than ``most`` times."""
        seen = 0
        while count := self.long():
            if count < 0:
                # A negative count is followed by the block's size in bytes, which only a reader that skips needs.
                count = -count
                self.long()
            seen += count
            if seen > most:
                raise RecordError("bad_length", f"{what} has at most {most} items, got {seen} or more")
            yield from repeat(None, count)
