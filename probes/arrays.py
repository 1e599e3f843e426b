"""Conversion of a host's arrays of ids and event times: checked, copied, in wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopwatch.probes import id_columns
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import encode_id as named_one
from hopwatch.probes.contract.limits import ID_BYTES
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import EventTime, event_time_us
from hopwatch.probes.recorder import MessageId

MessageIds = ArrayLike | Sequence[MessageId]
"""The ids of many messages."""
EventTimes = ArrayLike | Sequence[EventTime]
"""Event times of many messages."""

_ITEM_KINDS: Final = "OUT"
"""Dtype kinds that are converted item by item: objects, and two kinds of texts."""

MAX_LENGTH: Final = 2**31
"""Maximum length that is believed of a refused array."""


class MessageColumns(NamedTuple):
    """Ids as pairs of 64 bits, shape (n, 2), event times in µs, (n,), kinds of ids, one or (n,), and texts if any."""

    ids: NDArray[np.uint64]
    events_us: NDArray[np.int64]
    id_kinds: WireIdKind | NDArray[np.uint8]
    id_texts: Sequence[bytes | None] | None


class _IdArrays(NamedTuple):
    ids: NDArray[np.uint64]
    kinds: WireIdKind | NDArray[np.uint8]
    texts: Sequence[bytes | None] | None = None


def build_columns(message_ids: MessageIds, event_times: EventTimes) -> MessageColumns:
    """Convert ids and event times to columns; the host's arrays are copied.

    Raises:
        ProbeError: the arrays have an unknown form, or there are not as many ids as event times.
    """
    ids, events_us = _parse_ids(message_ids), parse_event_times(event_times)
    if len(ids.ids) != len(events_us):
        raise ProbeError(f"there is one event time an id, got {len(ids.ids)} ids and {len(events_us)} event times")
    return MessageColumns(ids.ids, events_us, ids.kinds, ids.texts)


def parse_ids(message_ids: MessageIds) -> NDArray[np.uint64]:
    """Convert ids to pairs of 64 bits, shape (n, 2).

    Raises:
        ProbeError: they have an unknown form.
    """
    return _parse_ids(message_ids).ids


def estimate_length(message_ids: MessageIds) -> int:
    """Estimate the number of messages in a refused array; at least 1."""
    try:
        length = len(message_ids)  # type: ignore[arg-type]  # what has no length says so
        return max(1, min(length // ID_BYTES if isinstance(message_ids, bytes) else length, MAX_LENGTH))
    except Exception:  # noqa: BLE001 - a host's own class may raise anything
        return 1


def _parse_ids(message_ids: MessageIds) -> _IdArrays:
    if isinstance(message_ids, bytes):
        if len(message_ids) % ID_BYTES:
            raise ProbeError(f"ids in bytes have {ID_BYTES} each, got {len(message_ids)} bytes in all")
        return _IdArrays(_pairs(message_ids), WireIdKind.BYTES)
    if isinstance(message_ids, list | tuple) and not all(map(_is_int, message_ids)):
        # In an array texts would lose trailing zeros, and each would take the room of the longest.
        return _parse_items(message_ids)
    ids = np.asarray(message_ids)
    if not ids.size:
        return _IdArrays(np.empty((0, 2), np.uint64), WireIdKind.BYTES)
    if ids.ndim == 1 and ids.dtype.kind in "iu":
        return _IdArrays(_parse_integers(ids), WireIdKind.INT)
    if ids.ndim == 1 and ids.dtype.kind in _ITEM_KINDS:
        return _parse_items(ids.tolist())
    is_of_items = ids.ndim == 1 and ids.dtype.kind in "SV" and ids.dtype.itemsize == ID_BYTES
    if is_of_items or (ids.dtype == np.uint8 and ids.shape[1:] == (ID_BYTES,)):
        return _IdArrays(_pairs(ids.tobytes()), WireIdKind.BYTES)
    form = f"texts, UUIDs, integers, (n, {ID_BYTES}) uint8 or items of {ID_BYTES} bytes"
    raise ProbeError(f"ids in arrays are {form}, got {ids.dtype} of shape {ids.shape}")


def _is_int(message_id: object) -> bool:
    return type(message_id) is int


def _parse_items(message_ids: Sequence[Any]) -> _IdArrays:
    found = id_columns.encode_ids(message_ids)
    if not found.is_valid.all():
        first = message_ids[int(np.flatnonzero(~found.is_valid)[0])]
        named_one(first)  # says itself what is wrong with it
        raise ProbeError(f"an id of {type(first).__name__} cannot be read")
    has_texts = any(text is not None for text in found.texts)
    return _IdArrays(found.ids, found.kinds, found.texts if has_texts else None)


def _parse_integers(ids: NDArray[np.generic]) -> NDArray[np.uint64]:
    if (least := ids.min()) < 0:
        raise ProbeError(f"an integer message id lies in 0 … 2^128 - 1, got {least}")
    pairs = np.zeros((len(ids), 2), ">u8")
    pairs[:, 1] = ids
    return pairs.view(np.uint64)


def _pairs(packed: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(packed, np.uint64).reshape(-1, 2)


def parse_event_times(event_times: EventTimes) -> NDArray[np.int64]:
    """Convert event times to µs, shape (n,).

    Raises:
        ProbeError: they have an unknown form.
    """
    events = _as_array(event_times)
    if not events.size:
        return np.empty(0, np.int64)
    if events.dtype.kind == "M":
        events = events.astype("datetime64[us]")
    if events.ndim == 1 and events.dtype.kind == "O":
        return np.array([event_time_us(moment) for moment in events.tolist()], np.int64)
    if events.dtype.kind not in "iuM" or events.ndim != 1:
        got = f"{events.dtype} of shape {events.shape}"
        form = "integers in µs since 1970, datetime64 in UTC or datetimes with a zone"
        raise ProbeError(f"event times in arrays are {form}, got {got}")
    return events.astype(np.int64)


def _as_array(event_times: EventTimes) -> NDArray[Any]:
    """Return event times as an array; a pandas column is converted to UTC, and refused without a zone."""
    dtype = getattr(event_times, "dtype", None)
    if type(event_times).__module__.partition(".")[0] != "pandas" or getattr(dtype, "kind", "") != "M":
        return np.asarray(event_times)
    if getattr(dtype, "tz", None) is None:
        got = f"a {type(event_times).__name__} of {dtype}"
        raise ProbeError(f"an event time has a zone, got {got}: use tz_localize")
    return np.asarray(event_times, "datetime64[us]")
