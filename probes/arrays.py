"""Ids and event times that a host hands over as arrays, taken over: checked, copied, in the form of the wire."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probes.contract.limits import ID_BYTES
from probes.errors import ProbeError

MOST_TOLD: Final = 2**31
"""So many messages an array spoke of at most: what says more says what cannot be."""


def columns_of(message_ids: ArrayLike, event_times: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return ids as pairs of 64 bits, shape (n, 2), and event times in µs, shape (n,); copies of the host's arrays.

    Raises:
        ProbeError: the arrays are of another form, or there are not as many ids as event times.
    """
    ids, events_us = _ids(message_ids), microseconds(event_times)
    if len(ids) != len(events_us):
        raise ProbeError(f"there is one event time an id, got {len(ids)} ids and {len(events_us)} event times")
    return ids, events_us


def length_of(message_ids: ArrayLike) -> int:
    """Return how many messages an array that was refused spoke of, as far as can be seen and told; at least 1."""
    try:
        length = len(message_ids)  # type: ignore[arg-type]  # what has no length says so
        return max(1, min(length // ID_BYTES if isinstance(message_ids, bytes) else length, MOST_TOLD))
    except Exception:  # noqa: BLE001 - a host's own class may raise anything
        return 1


def _ids(message_ids: ArrayLike) -> NDArray[np.uint64]:
    if isinstance(message_ids, bytes):
        if len(message_ids) % ID_BYTES:
            raise ProbeError(f"ids in bytes have {ID_BYTES} each, got {len(message_ids)} bytes in all")
        return _pairs(message_ids)
    ids = np.asarray(message_ids)
    if not ids.size:
        return np.empty((0, 2), np.uint64)
    if ids.ndim == 1 and ids.dtype.kind in "iu":
        return _integers(ids)
    is_of_items = ids.ndim == 1 and ids.dtype.kind in "SV" and ids.dtype.itemsize == ID_BYTES
    if is_of_items or (ids.dtype == np.uint8 and ids.shape[1:] == (ID_BYTES,)):
        return _pairs(ids.tobytes())
    form = f"(n, {ID_BYTES}) uint8, items of {ID_BYTES} bytes or integers"
    raise ProbeError(f"ids in arrays are {form}, got {ids.dtype} of shape {ids.shape}")


def _integers(ids: NDArray[np.generic]) -> NDArray[np.uint64]:
    if (least := ids.min()) < 0:
        raise ProbeError(f"an integer message id lies in 0 … 2^128 - 1, got {least}")
    pairs = np.zeros((len(ids), 2), ">u8")
    pairs[:, 1] = ids
    return pairs.view(np.uint64)


def _pairs(packed: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(packed, np.uint64).reshape(-1, 2)


def microseconds(event_times: ArrayLike) -> NDArray[np.int64]:
    """Return event times in µs, shape (n,).

    Raises:
        ProbeError: they are of another form.
    """
    events = np.asarray(event_times)
    if not events.size:
        return np.empty(0, np.int64)
    if events.dtype.kind == "M":
        events = events.astype("datetime64[us]")
    if events.dtype.kind not in "iuM" or events.ndim != 1:
        got = f"{events.dtype} of shape {events.shape}"
        raise ProbeError(f"event times in arrays are integers in µs since 1970 or datetime64, got {got}")
    return events.astype(np.int64)
