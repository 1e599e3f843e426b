"""Observations as columns, and the batches that they are packed into: one window each, at most 4,096 observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
import numpy.ma  # np.unique would import it at its first call, and a fork meanwhile would leave its lock held for ever
from numpy.typing import NDArray

from probes.contract.limits import MAX_REASONS, NO_REASON, NOT_STAMPED, WINDOW_MS, WINDOW_US

BATCH_OBSERVATIONS: Final = 4_096
NO_TEXT: Final = -1
"""The place among the texts of an observation that gives no reason."""

_COLUMNS: Final = ("ids", "event_us", "in_us", "out_us", "outcome", "reason")


@dataclass(slots=True, eq=False)
class Columns:
    """Observations as columns of equal length; lags are moments still, NOT_STAMPED where there is no stamp."""

    ids: NDArray[np.uint64]
    event_us: NDArray[np.int64]
    in_us: NDArray[np.int64]
    out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    reason: NDArray[np.int64]

    def taken(self, chosen: NDArray[np.bool_ | np.int64]) -> Columns:
        """Return the chosen rows, given as a mask or as places."""
        return Columns(*(getattr(self, name)[chosen] for name in _COLUMNS))


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the rows of all parts as one, so that what is stamped in small pieces is not sent in them."""
    return Columns(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


class PackedFields(TypedDict):
    """The arrays of a batch, under the names of the wire."""

    message_ids: bytes
    event_offset_us: bytes
    lag_in_us: bytes
    lag_out_us: bytes
    outcome: bytes
    reason: bytes


@dataclass(frozen=True, slots=True)
class Packed:
    """The observations of one batch, as the wire packs them, and the window they are of."""

    window_start_ms: int
    count: int
    fields: PackedFields
    reasons: tuple[str, ...]


def batches(columns: Columns, texts: list[str]) -> Iterator[Packed]:
    """Yield the batches of some observations, window by window; ``texts`` are what ``reason`` counts."""
    windows = columns.event_us // WINDOW_US
    order = np.argsort(windows, kind="stable")
    cuts = np.flatnonzero(np.diff(windows[order])) + 1
    for window in np.split(order, cuts):
        for first in range(0, len(window), BATCH_OBSERVATIONS):
            yield _packed(columns.taken(window[first : first + BATCH_OBSERVATIONS]), texts)


def _packed(columns: Columns, texts: list[str]) -> Packed:
    minute = int(columns.event_us[0]) // WINDOW_US
    places, reasons = _reasons(columns.reason, texts)
    fields: PackedFields = {
        "message_ids": np.ascontiguousarray(columns.ids).tobytes(),
        "event_offset_us": (columns.event_us - minute * WINDOW_US).astype("<u4").tobytes(),
        "lag_in_us": _lags(columns.in_us, columns.event_us),
        "lag_out_us": _lags(columns.out_us, columns.event_us),
        "outcome": columns.outcome.tobytes() if columns.outcome.any() else b"",
        "reason": places.tobytes() if reasons else b"",
    }
    return Packed(minute * WINDOW_MS, len(columns.event_us), fields, reasons)


def _lags(moments_us: NDArray[np.int64], event_us: NDArray[np.int64]) -> bytes:
    absent = moments_us == NOT_STAMPED
    if absent.all():
        return b""
    return np.where(absent, NOT_STAMPED, moments_us - event_us).astype("<i8").tobytes()


def _reasons(chosen: NDArray[np.int64], texts: list[str]) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return each observation's place among the reasons used here, and these; what is past the limit has none."""
    used = [number for number in np.unique(chosen).tolist() if number != NO_TEXT][:MAX_REASONS]
    # One place more than texts, so that NO_TEXT, counted from the end, finds one of its own.
    table = np.full(len(texts) + 1, NO_REASON, np.uint8)
    table[used] = np.arange(len(used))
    return table[chosen], tuple(texts[number] for number in used)
