"""Stamps in, batches out: arrays only, no clock, no input or output.

A stamp is what one call said of one message; a recorder joins the stamps of a message at this node that were taken
since the last flush into one observation, sorts observations into windows and packs them.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.contract.batch import Outcome
from probes.contract.ids import IdError, id_bytes
from probes.contract.limits import ID_BYTES, MAX_REASON_CHARS, MAX_REASONS, NO_REASON, NOT_STAMPED, WINDOW_US

BATCH_OBSERVATIONS: Final = 4_096
LATEST_US: Final = 2**53
"""Event times from here on (the year 2255) are not believed."""

_UUID_BYTES: Final = attrgetter("bytes")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND: Final = timedelta(microseconds=1)


class Side(IntEnum):
    """What a stamp says."""

    ARRIVED = 0
    DEPARTED = 1
    FILTERED = 2
    REJECTED = 3


class Stamp(NamedTuple):
    """One call: what it said, of which message, when (ns since 1970), and why if the message ends here."""

    side: int
    message_id: Any
    event_time: Any
    at_ns: int
    reason: str | None = None


class Stamps(NamedTuple):
    """One call with arrays: packed ids, event times in µs, one moment for all."""

    side: int
    message_ids: NDArray[np.uint64]
    event_times_us: NDArray[np.int64]
    at_ns: int


class Packed(NamedTuple):
    """The observations of one batch, as the wire packs them, and the window they are of."""

    window_start_ms: int
    count: int
    fields: dict[str, bytes]
    reasons: tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    """Observations as columns; lags are moments still, NOT_STAMPED where there is no stamp."""

    ids: NDArray[np.uint64]
    event_us: NDArray[np.int64]
    in_us: NDArray[np.int64]
    out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    reason: NDArray[np.int64]

    def taken(self, chosen: Any) -> _Columns:  # noqa: ANN401 - whatever indexes an array
        return _Columns(*(getattr(self, name)[chosen] for name in _COLUMNS))


_COLUMNS: Final = ("ids", "event_us", "in_us", "out_us", "outcome", "reason")

Refusals = Counter[tuple[int, str]]
"""Stamps that cannot be sent: how many by (window start in ms, cause)."""


def event_time_us(event_time: Any) -> int:  # noqa: ANN401 - anything may come from a host
    """Return an event time as µs since 1970.

    Raises:
        ValueError: it is a naive datetime, or neither a datetime nor a whole number.
    """
    if isinstance(event_time, datetime):
        if event_time.tzinfo is None:
            raise ValueError(f"an event time has a zone, got the naive {event_time.isoformat()}: use datetime.now(timezone.utc)")
        return (event_time - _EPOCH) // _MICROSECOND
    if isinstance(event_time, int) and not isinstance(event_time, bool):
        return event_time
    raise ValueError(f"an event time is an aware datetime or whole µs since 1970, got {type(event_time).__name__}")


def check_event_time(event_us: int) -> int:
    """Return the event time, if a window can hold it.

    Raises:
        ValueError: it lies before 1970 or is not believed.
    """
    if not 0 <= event_us < LATEST_US:
        raise ValueError(f"an event time lies between 1970 and 2255, got {event_us} µs since 1970")
    return event_us


def record(taken: Sequence[Stamp | Stamps], not_before_ns: int) -> tuple[list[Packed], Refusals]:
    """Turn what was stamped since the last flush into batches, and count what cannot be sent.

    A stamp lies within its call. Where the flush before overtook a call, so that the stamp came after that flush had
    completed its moment, ``not_before_ns`` moves it just past that moment: still within the call, and nothing that is
    called complete is ever added to.
    """
    refusals: Refusals = Counter()
    singles = [stamp for stamp in taken if isinstance(stamp, Stamp)]
    arrays = [stamp for stamp in taken if isinstance(stamp, Stamps)]
    reasons: dict[str, int] = {}
    parts = [_of_singles(singles, refusals, reasons)] if singles else []
    parts += _of_arrays(arrays, refusals)
    texts = list(reasons)
    batches = [batch for part in parts for batch in _batches(_moved(part, not_before_ns // 1_000), texts)]
    return batches, refusals


def _of_singles(stamps: list[Stamp], refusals: Refusals, reasons: dict[str, int]) -> _Columns:
    sides, message_ids, event_times, moments_ns, said = zip(*stamps, strict=True)
    events, event_ok = _event_times(event_times)
    ids, id_ok = _ids(message_ids)
    at_us = np.array(moments_ns, np.int64) // 1_000
    good = event_ok & id_ok
    if not good.all():
        windows_us = np.where(event_ok, events, at_us)
        _refuse(refusals, windows_us[~event_ok], "bad event time")
        _refuse(refusals, windows_us[event_ok & ~id_ok], "bad message id")
    side = np.array(sides, np.int64)
    reason = np.array([NO_REASON if text is None else reasons.setdefault(text, len(reasons)) for text in said], np.int64) if any(said) else np.full(len(side), NO_REASON)
    stamped = _stamped(side, ids, events, at_us, reason)
    return _paired(stamped.taken(good), side[good])


def _of_arrays(chunks: list[Stamps], refusals: Refusals) -> list[_Columns]:
    parts: list[_Columns] = []
    waiting: list[tuple[Stamps, _Columns]] = []
    for chunk in chunks:
        good = (chunk.event_times_us >= 0) & (chunk.event_times_us < LATEST_US)
        if not good.all():
            _refuse(refusals, np.full(int((~good).sum()), chunk.at_ns // 1_000), "bad event time")
        count = len(good)
        side, at_us = np.full(count, chunk.side), np.full(count, chunk.at_ns // 1_000)
        columns = _stamped(side, chunk.message_ids, chunk.event_times_us, at_us, np.full(count, NO_REASON))
        columns = columns if good.all() else columns.taken(good)
        partner = next((pair for pair in waiting if chunk.side == Side.DEPARTED and _same(pair[1], columns)), None)
        if partner is not None:
            partner[1].out_us = columns.out_us
            waiting.remove(partner)
            continue
        parts.append(columns)
        if chunk.side == Side.ARRIVED:
            waiting.append((chunk, columns))
    return parts


def _same(one: _Columns, other: _Columns) -> bool:
    """Whether two calls spoke of the same messages in the same order."""
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.event_us, other.event_us)


def _stamped(
    side: NDArray[np.int64],
    ids: NDArray[np.uint64],
    events: NDArray[np.int64],
    at_us: NDArray[np.int64],
    reason: NDArray[np.int64],
) -> _Columns:
    departs = side == Side.DEPARTED
    outcome = np.array([Outcome.PASSED, Outcome.PASSED, Outcome.FILTERED, Outcome.REJECTED], np.uint8)[side]
    return _Columns(
        ids, events, np.where(departs, NOT_STAMPED, at_us), np.where(departs, at_us, NOT_STAMPED), outcome, reason
    )


def _paired(columns: _Columns, side: NDArray[np.int64]) -> _Columns:
    """Join each arrival with the departure of the same message: the first with the first, the second with the second."""
    if not (side == Side.DEPARTED).any() or not (side == Side.ARRIVED).any():
        return columns
    place = np.arange(len(side))
    order = np.lexsort((place, side, columns.event_us, columns.ids[:, 1], columns.ids[:, 0]))
    ids, events, ordered_side = columns.ids[order], columns.event_us[order], side[order]
    new_message = np.ones(len(order), bool)
    new_message[1:] = (ids[1:] != ids[:-1]).any(axis=1) | (events[1:] != events[:-1])
    new_run = new_message.copy()
    new_run[1:] |= ordered_side[1:] != ordered_side[:-1]
    run_starts = np.flatnonzero(new_run)
    rank = np.arange(len(order)) - np.repeat(run_starts, np.diff(np.append(run_starts, len(order))))
    message = np.cumsum(new_message) - 1
    slot = message * (int(rank.max()) + 1) + rank
    arrivals, departures = ordered_side == Side.ARRIVED, ordered_side == Side.DEPARTED
    _, at_arrival, at_departure = np.intersect1d(slot[arrivals], slot[departures], assume_unique=True, return_indices=True)
    joined, gone = order[arrivals][at_arrival], order[departures][at_departure]
    columns.out_us[joined] = columns.out_us[gone]
    keep = np.ones(len(order), bool)
    keep[gone] = False
    return columns.taken(keep)


def _moved(columns: _Columns, not_before_us: int) -> _Columns:
    for moments in (columns.in_us, columns.out_us):
        late = (moments != NOT_STAMPED) & (moments <= not_before_us)
        if late.any():
            moments[late] = not_before_us + 1
    return columns


def _batches(columns: _Columns, texts: list[str]) -> Iterator[Packed]:
    order = np.argsort(columns.event_us // WINDOW_US, kind="stable")
    starts = (columns.event_us // WINDOW_US)[order]
    cuts = np.flatnonzero(np.diff(starts)) + 1
    for window in np.split(order, cuts):
        for first in range(0, len(window), BATCH_OBSERVATIONS):
            yield _packed(columns.taken(window[first : first + BATCH_OBSERVATIONS]), texts)


def _packed(columns: _Columns, texts: list[str]) -> Packed:
    start_us = int(columns.event_us[0]) // WINDOW_US * WINDOW_US
    reasons, used = _reasons(columns.reason, texts)
    fields = {
        "message_ids": np.ascontiguousarray(columns.ids).tobytes(),
        "event_offset_us": (columns.event_us - start_us).astype("<u4").tobytes(),
        "lag_in_us": _lags(columns.in_us, columns.event_us),
        "lag_out_us": _lags(columns.out_us, columns.event_us),
        "outcome": columns.outcome.tobytes() if columns.outcome.any() else b"",
        "reason": reasons.tobytes() if used else b"",
    }
    return Packed(start_us // 1_000, len(columns.event_us), fields, used)


def _lags(moments_us: NDArray[np.int64], event_us: NDArray[np.int64]) -> bytes:
    absent = moments_us == NOT_STAMPED
    if absent.all():
        return b""
    return np.where(absent, NOT_STAMPED, moments_us - event_us).astype("<i8").tobytes()


def _reasons(chosen: NDArray[np.int64], texts: list[str]) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return the index of each observation's reason among those used here, and these; what is past the limit has none."""
    used = [number for number in np.unique(chosen).tolist() if number < len(texts) and number != NO_REASON][:MAX_REASONS]
    table = np.full(max(len(texts), NO_REASON) + 1, NO_REASON, np.uint8)
    table[used] = np.arange(len(used))
    return table[chosen], tuple(texts[number][:MAX_REASON_CHARS] for number in used)


def _event_times(event_times: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return event times in µs, 0 for those that cannot be, and which can."""
    if set(map(type, event_times)) == {int}:
        try:
            events = np.array(event_times, np.int64)
        except OverflowError:
            pass
        else:
            ok = (events >= 0) & (events < LATEST_US)
            return np.where(ok, events, 0), ok
    found = [_event_time_or_none(event_time) for event_time in event_times]
    ok = np.array([event is not None for event in found], bool)
    return np.array([event or 0 for event in found], np.int64), ok


def _event_time_or_none(event_time: Any) -> int | None:  # noqa: ANN401
    try:
        return check_event_time(event_time_us(event_time))
    except (ValueError, TypeError, OverflowError):
        return None


def _ids(message_ids: Sequence[Any]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return ids as pairs of 64 bits, zeros for those that cannot be, and which can."""
    kinds = set(map(type, message_ids))
    if kinds == {uuid.UUID}:
        found = list(map(_UUID_BYTES, message_ids))
    elif kinds == {bytes} and set(map(len, message_ids)) == {ID_BYTES}:
        found = list(message_ids)
    else:
        found = [_id_or_none(message_id) for message_id in message_ids]
    ok = np.array([message_id is not None for message_id in found], bool)
    packed = b"".join(message_id or bytes(ID_BYTES) for message_id in found)
    return np.frombuffer(packed, np.uint64).reshape(-1, 2), ok


def _id_or_none(message_id: Any) -> bytes | None:  # noqa: ANN401
    try:
        return id_bytes(message_id)
    except (IdError, ValueError):
        return None


def _refuse(refusals: Refusals, moments_us: NDArray[np.int64], cause: str) -> None:
    """Count stamps under the window of their event time, or of the stamp where that cannot be known."""
    starts_ms = moments_us // WINDOW_US * (WINDOW_US // 1_000)
    for start_ms, count in zip(*np.unique(starts_ms, return_counts=True), strict=True):
        refusals[int(start_ms), cause] += int(count)
