"""Packing of observations from columns into batches.

A batch has at most 4,096 observations, of one window, one kind of id and one set of labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypedDict

import numpy as np
import numpy.ma  # np.unique would import it at its first call, and a fork meanwhile would leave its lock held for ever
from numpy.typing import NDArray

from hopwatch.probes.contract import id_texts
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.limits import MAX_ID_TEXT_CHARS, MAX_REASONS, NO_REASON, NOT_STAMPED, WINDOW_MS, WINDOW_US

BATCH_OBSERVATIONS: Final = 4_096
BATCH_TEXT_BYTES: Final = 512 * 1_024
"""Bytes of id texts per batch, at most: a record stays below Kafka's megabyte; further ids have hashes only."""
NO_TEXT: Final = -1
"""Index of an absent text: an observation without a reason, or an id without a text."""
NO_LABELS: Final = 0
"""Number of the labels of a message that has none of its own; others count from 1."""
Labels = tuple[tuple[str, str], ...]
"""Labels of messages, beside those of their probe: names and values."""

_KINDS: Final = len(WireIdKind)
_COLUMNS: Final = (
    "ids",
    "event_us",
    "in_us",
    "out_us",
    "outcome",
    "reason",
    "id_kind",
    "id_text",
    "until_us",
    "label_set",
)


@dataclass(slots=True, eq=False)
class Columns:
    """Observations as columns of equal length; stamps are still moments, NOT_STAMPED where absent, not lags.

    ``until_us`` is the moment until which a deferred message waits, 0 of others; ``label_set`` is NO_LABELS or the
    number of the message's labels.
    """

    ids: NDArray[np.uint64]
    event_us: NDArray[np.int64]
    in_us: NDArray[np.int64]
    out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    reason: NDArray[np.int64]
    id_kind: NDArray[np.uint8]
    id_text: NDArray[np.int64]
    until_us: NDArray[np.int64]
    label_set: NDArray[np.int64]

    def select(self, chosen: NDArray[np.bool_ | np.int64] | slice) -> Columns:
        """Return the chosen rows, given as a mask, as indices or, without a copy, as a slice."""
        return Columns(*(getattr(self, name)[chosen] for name in _COLUMNS))


def concatenate(parts: Sequence[Columns]) -> Columns:
    """Concatenate the rows of all parts, so that many small calls share batches."""
    return Columns(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


class PackedFields(TypedDict):
    """Arrays of a batch, under the names of the wire."""

    message_ids: bytes
    event_offset_us: bytes
    lag_in_us: bytes
    lag_out_us: bytes
    outcome: bytes
    reason: bytes
    id_kind: WireIdKind
    id_texts: bytes
    id_text_ends: bytes
    until_us: bytes


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """Observations of one batch in wire format, with their window; ``labels`` are those of its messages."""

    window_start_ms: int
    count: int
    fields: PackedFields
    reasons: tuple[str, ...]
    labels: Labels = ()


def pack_batches(
    columns: Columns, texts: list[str], names: Sequence[bytes] = (), label_sets: Sequence[Labels] = ()
) -> Iterator[PackedBatch]:
    """Yield the batches of some observations, by window, kind of id and labels.

    ``reason`` is an index into ``texts``, ``id_text`` one into ``names``; ``label_set`` counts ``label_sets`` from 1.
    """
    keys = columns.event_us // WINDOW_US * _KINDS + columns.id_kind
    if label_sets:
        keys = keys * (len(label_sets) + 1) + columns.label_set
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        columns, keys = columns.select(order), keys[order]
    bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    for start, end in pairwise(bounds):
        for first in range(start, end, BATCH_OBSERVATIONS):
            packed = _pack_batch(columns.select(slice(first, min(first + BATCH_OBSERVATIONS, end))), texts, names)
            number = int(columns.label_set[first])
            yield packed if number == NO_LABELS else replace(packed, labels=label_sets[number - 1])


def _pack_batch(columns: Columns, texts: list[str], names: Sequence[bytes]) -> PackedBatch:
    minute = int(columns.event_us[0]) // WINDOW_US
    places, reasons = _pack_reasons(columns.reason, texts)
    id_kind = WireIdKind(int(columns.id_kind[0]))
    laid_out, ends = _pack_id_texts(columns.id_text, names) if id_kind is WireIdKind.TEXT else (b"", b"")
    fields: PackedFields = {
        "message_ids": np.ascontiguousarray(columns.ids).tobytes(),
        "event_offset_us": (columns.event_us - minute * WINDOW_US).astype("<u4").tobytes(),
        "lag_in_us": _pack_lags(columns.in_us, columns.event_us),
        "lag_out_us": _pack_lags(columns.out_us, columns.event_us),
        "outcome": columns.outcome.tobytes() if columns.outcome.any() else b"",
        "reason": places.tobytes() if reasons else b"",
        "id_kind": id_kind,
        "id_texts": laid_out,
        "id_text_ends": ends,
        "until_us": columns.until_us.astype("<i8").tobytes() if columns.until_us.any() else b"",
    }
    return PackedBatch(minute * WINDOW_MS, len(columns.event_us), fields, reasons)


def _pack_id_texts(chosen: NDArray[np.int64], names: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the concatenated texts of ids, and the end of each; a text beyond the limits is left empty."""
    if not len(names) or (chosen == NO_TEXT).all():
        return b"", b""
    texts = [names[place] if place != NO_TEXT else b"" for place in chosen.tolist()]
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if lengths.max() > MAX_ID_TEXT_CHARS or lengths.sum() > BATCH_TEXT_BYTES:
        lengths[lengths > MAX_ID_TEXT_CHARS] = 0
        kept = np.cumsum(lengths) <= BATCH_TEXT_BYTES
        texts = [text if keep else b"" for text, keep in zip(texts, (kept & (lengths > 0)).tolist(), strict=True)]
    return id_texts.join_texts(texts)


def _pack_lags(moments_us: NDArray[np.int64], event_us: NDArray[np.int64]) -> bytes:
    absent = moments_us == NOT_STAMPED
    if absent.all():
        return b""
    return np.where(absent, NOT_STAMPED, moments_us - event_us).astype("<i8").tobytes()


def _pack_reasons(chosen: NDArray[np.int64], texts: list[str]) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return each observation's index into this batch's reasons, and these; those beyond the limit have none."""
    if not texts:
        return np.full(len(chosen), NO_REASON, np.uint8), ()
    used = [number for number in np.unique(chosen).tolist() if number != NO_TEXT][:MAX_REASONS]
    # One place more than texts, so that NO_TEXT, counted from the end, finds one of its own.
    table = np.full(len(texts) + 1, NO_REASON, np.uint8)
    table[used] = np.arange(len(used))
    return table[chosen], tuple(texts[number] for number in used)
