"""Stamps in, batches out: arrays only, no clock, no input or output.

A stamp is what one call said of one message; the stamps of a message at this node that were taken since the last flush
are joined into one observation.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes import named
from hopwatch.probes.contract.batch import IdKind, Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED, WINDOW_MS, WINDOW_US
from hopwatch.probes.event_times import (
    AHEAD_US,
    LATEST_US,
    EventTime,
    are_believed,
    are_plausible,
    event_time_us,
    fault,
    meant_one_us,
    meant_us,
)
from hopwatch.probes.packing import NO_TEXT, Columns, Packed, batches, joined

_OUTCOMES: Final = np.array([Outcome.PASSED, Outcome.PASSED, Outcome.FILTERED, Outcome.REJECTED], np.uint8)
"""The outcome of each side."""

MessageId = uuid.UUID | bytes | SupportsIndex | str
"""What a team may call a message; what stands for an integer, as numpy's do, is one."""


class Side(IntEnum):
    """What a stamp says."""

    ARRIVED = 0
    DEPARTED = 1
    FILTERED = 2
    REJECTED = 3


class Stamp(NamedTuple):
    """One call: what it said, of which message, when (ns since 1970), and why if the message ends here."""

    side: int
    message_id: MessageId
    event_time: EventTime
    at_ns: int
    reason: str | None = None


class Stamps(NamedTuple):
    """One call with arrays: packed ids, event times in µs, one moment for all."""

    side: int
    message_ids: NDArray[np.uint64]
    event_times_us: NDArray[np.int64]
    at_ns: int
    id_kinds: IdKind | NDArray[np.uint8] = IdKind.BYTES
    id_texts: Sequence[bytes | None] | None = None


BAD_EVENT_TIME: Final = "bad event time"
IMPLAUSIBLE: Final = "implausible event time"
PERHAPS: Final = "implausible event time, perhaps of this minute"
"""The cause of a count beside another: the same stamps, in the windows that their event times may mean."""
BAD_MESSAGE_ID: Final = "bad message id"


class Refusals(Counter[tuple[int, str]]):
    """Stamps that cannot be sent: how many by (window start in ms, cause); and what was got, by cause, to be logged."""

    def __init__(self, counts: Mapping[tuple[int, str], int] | None = None) -> None:
        """Start with some counts, or none."""
        super().__init__(counts or {})
        self.got: dict[str, str] = {}


def refused(events_us: NDArray[np.int64], at_ns: int, cause: str, max_age_us: int | None = None) -> Refusals:
    """Count stamps of an array that was refused whole.

    ``at_ns`` stands in for event times that cannot be, and these are the cause then: their windows nobody knows.
    """
    refusals = Refusals()
    at_us = np.full(len(events_us), at_ns // 1_000)
    good = _plausible(events_us, at_us, are_believed(events_us), refusals, max_age_us)
    _refuse(refusals, events_us[good], cause)
    return refusals


def refused_count(count: int, at_ns: int, cause: str) -> Refusals:
    """Count stamps of which nothing is known but how many they are, under the window of their call."""
    return Refusals({(at_ns // 1_000 // WINDOW_US * WINDOW_MS, cause): count})


def refused_one(event_time: EventTime, at_ns: int, cause: str, max_age_us: int | None = None) -> Refusals:
    """Count a stamp that was refused before it was recorded, on the host's own time; as :func:`refused` does."""
    event_us, at_us = _event_time_or_none(event_time), at_ns // 1_000
    if event_us is None:
        return refused_count(1, at_ns, BAD_EVENT_TIME)
    if max_age_us is None or -AHEAD_US <= at_us - event_us <= max_age_us:
        return Refusals({(event_us // WINDOW_US * WINDOW_MS, cause): 1})
    refusals = refused_count(1, at_ns, IMPLAUSIBLE)
    perhaps_us = meant_one_us(event_us)
    if 0 < perhaps_us < LATEST_US and perhaps_us // WINDOW_US != at_us // WINDOW_US:
        refusals[perhaps_us // WINDOW_US * WINDOW_MS, PERHAPS] = 1
    return refusals


def record(
    taken: Sequence[Stamp | Stamps], not_before_us: int, max_age_us: int | None = None, *, id_text: bool = True
) -> tuple[list[Packed], Refusals]:
    """Turn what was stamped since the last flush into batches, and count what cannot be sent.

    A stamp lies within its call. Where the flush before overtook a call, so that the stamp came after that flush had
    completed its moment, ``not_before_us`` moves it just past that moment: still within the call, and nothing that is
    called complete is ever added to. With ``max_age_us`` a stamp is refused whose event time is older, or ahead.
    Without ``id_text`` the texts of ids stay here.
    """
    refusals = Refusals()
    texts: list[str] = []
    names: list[bytes] = []
    singles = [stamp for stamp in taken if isinstance(stamp, Stamp)]
    parts = [_of_singles(singles, refusals, texts, names, max_age_us)] if singles else []
    parts += _of_arrays([stamp for stamp in taken if isinstance(stamp, Stamps)], refusals, names, max_age_us)
    if not parts:
        return [], refusals
    return list(batches(_moved(joined(parts), not_before_us), texts, names if id_text else ())), refusals


def first_fault(taken: Sequence[Stamp | Stamps], max_age_us: int | None, cause: str = IMPLAUSIBLE) -> str | None:
    """Return in words what is wrong with the first event time that is refused for this cause, if it is a number."""
    for call in taken:
        at_us = call.at_ns // 1_000
        if isinstance(call, Stamps):
            events_us = call.event_times_us
            is_wrong = ~are_believed(events_us) | ~are_plausible(events_us, np.full(len(events_us), at_us), max_age_us)
            wrong = events_us[is_wrong].tolist()
        else:
            event_time = call.event_time
            wrong = [event_time if type(event_time) is int else _event_time_or_none(event_time)]
        for event_us in wrong:
            if event_us is not None and (cause == BAD_EVENT_TIME) == (event_us >= LATEST_US):
                told = fault(event_us, at_us, max_age_us)
                if told is not None:
                    return told
    return None


def _of_singles(
    stamps: list[Stamp], refusals: Refusals, texts: list[str], names: list[bytes], max_age_us: int | None
) -> Columns:
    sides, message_ids, event_times, moments_ns, said = zip(*stamps, strict=True)
    events_us, event_ok = _event_times(event_times)
    found = named.of(message_ids)
    id_ok = found.can_be
    side, at_us = np.array(sides, np.int64), np.array(moments_ns, np.int64) // 1_000
    event_ok = _plausible(events_us, at_us, event_ok, refusals, max_age_us)
    _refuse(refusals, events_us[event_ok & ~id_ok], BAD_MESSAGE_ID)
    if found.odd:
        refusals.got[BAD_MESSAGE_ID] = ", ".join(sorted(found.odd))
    good = event_ok & id_ok
    columns = _stamped(side, found.ids, events_us, at_us)
    columns.id_kind, columns.id_text = found.kinds, _placed(found.texts, names)
    if any(said):
        texts += dict.fromkeys(filter(None, said))
        place = {text: number for number, text in enumerate(texts)}
        columns.reason = np.array([place.get(text, NO_TEXT) for text in said], np.int64)
    return _paired(columns.taken(good), side[good])


def _placed(texts: Sequence[bytes | None], names: list[bytes]) -> NDArray[np.int64]:
    """Lay the texts of ids behind the others, and return the place of each."""
    if not any(text is not None for text in texts):
        return np.full(len(texts), NO_TEXT)
    first = len(names)
    names += [text or b"" for text in texts]
    return np.arange(first, len(names))


def _plausible(
    events_us: NDArray[np.int64],
    at_us: NDArray[np.int64],
    are_good: NDArray[np.bool_],
    refusals: Refusals,
    max_age_us: int | None,
) -> NDArray[np.bool_]:
    """Return which stamps have event times that can be, and count the others under their own moments."""
    good = are_good & are_plausible(events_us, at_us, max_age_us)
    _refuse(refusals, at_us[~are_good], BAD_EVENT_TIME)
    _refuse(refusals, at_us[are_good & ~good], IMPLAUSIBLE)
    if max_age_us is not None:
        _doubt(refusals, events_us[~good], at_us[~good])
    return good


def _doubt(refusals: Refusals, events_us: NDArray[np.int64], at_us: NDArray[np.int64]) -> None:
    """Count stamps, which count under their own moments already, in the windows that their event times may mean, too.

    Which of the two is wrong nobody knows: it may be the clock of this host.
    """
    perhaps_us = meant_us(events_us)
    is_other = perhaps_us // WINDOW_US != at_us // WINDOW_US
    _refuse(refusals, perhaps_us[(events_us > 0) & are_believed(perhaps_us) & is_other], PERHAPS)


def _of_arrays(chunks: list[Stamps], refusals: Refusals, names: list[bytes], max_age_us: int | None) -> list[Columns]:
    """Join the arrays that arrived with the same arrays that departed; others stay as they are."""
    parts: list[Columns] = []
    waiting: dict[bytes, list[Columns]] = {}
    for chunk in chunks:
        columns = _of_array(chunk, refusals, names, max_age_us)
        # Found by both ends and compared whole: a partner is not looked for among all that wait.
        alike = waiting.setdefault(columns.ids[:1].tobytes() + columns.ids[-1:].tobytes(), [])
        if chunk.side == Side.DEPARTED and (partner := _partner(columns, alike)):
            partner.out_us = columns.out_us
            alike.remove(partner)
            continue
        parts.append(columns)
        if chunk.side == Side.ARRIVED:
            alike.append(columns)
    return parts


def _of_array(chunk: Stamps, refusals: Refusals, names: list[bytes], max_age_us: int | None) -> Columns:
    believed = are_believed(chunk.event_times_us)
    at_us = np.full(len(believed), chunk.at_ns // 1_000)
    good = _plausible(chunk.event_times_us, at_us, believed, refusals, max_age_us)
    columns = _stamped(np.full(len(good), chunk.side), chunk.message_ids, chunk.event_times_us, at_us)
    columns.id_kind = np.broadcast_to(np.asarray(chunk.id_kinds, np.uint8), len(good))
    if chunk.id_texts is not None:
        columns.id_text = _placed(chunk.id_texts, names)
    return columns if good.all() else columns.taken(good)


def _partner(departed: Columns, waiting: list[Columns]) -> Columns | None:
    """Return the first arrival of the same messages in the same order."""
    for arrived in waiting:
        if np.array_equal(arrived.ids, departed.ids) and np.array_equal(arrived.event_us, departed.event_us):
            return arrived
    return None


def _stamped(
    side: NDArray[np.int64], ids: NDArray[np.uint64], events_us: NDArray[np.int64], at_us: NDArray[np.int64]
) -> Columns:
    departs = side == Side.DEPARTED
    in_us, out_us = np.where(departs, NOT_STAMPED, at_us), np.where(departs, at_us, NOT_STAMPED)
    none = np.full(len(side), NO_TEXT)
    return Columns(ids, events_us, in_us, out_us, _OUTCOMES[side], none, np.zeros(len(side), np.uint8), none)


def _paired(columns: Columns, side: NDArray[np.int64]) -> Columns:
    """Join arrivals with departures of the same message: the first with the first, the second with the second."""
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
    _, at_arrival, at_departure = np.intersect1d(
        slot[arrivals], slot[departures], assume_unique=True, return_indices=True
    )
    joined, gone = order[arrivals][at_arrival], order[departures][at_departure]
    columns.out_us[joined] = columns.out_us[gone]
    keep = np.ones(len(order), bool)
    keep[gone] = False
    return columns.taken(keep)


def _moved(columns: Columns, not_before_us: int) -> Columns:
    for moments in (columns.in_us, columns.out_us):
        late = (moments != NOT_STAMPED) & (moments <= not_before_us)
        if late.any():
            moments[late] = not_before_us + 1
    return columns


def _event_times(event_times: Sequence[EventTime]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return event times in µs, 0 for those that cannot be, and which can."""
    if set(map(type, event_times)) == {int}:
        try:
            events_us = np.array(event_times, np.int64)
        except OverflowError:  # one of them at least cannot be, and is found below
            pass
        else:
            return events_us, are_believed(events_us)
    found = [_event_time_or_none(event_time) for event_time in event_times]
    ok = np.array([event_us is not None for event_us in found], bool)
    return np.array([event_us or 0 for event_us in found], np.int64), ok


def _event_time_or_none(event_time: EventTime) -> int | None:
    try:
        # The number itself: a host's own kind of int may say anything of itself.
        event_us = int.__index__(event_time_us(event_time))
    except Exception:  # noqa: BLE001 - a host's own time zone may raise anything, and costs its own stamp only
        return None
    return event_us if 0 <= event_us < LATEST_US else None


def _refuse(refusals: Refusals, moments_us: NDArray[np.int64], cause: str) -> None:
    """Count stamps under the windows of their moments: event times, or stamps where these cannot be known."""
    starts_ms, counts = np.unique(moments_us // WINDOW_US * WINDOW_MS, return_counts=True)
    for start_ms, count in zip(starts_ms.tolist(), counts.tolist(), strict=True):
        refusals[start_ms, cause] += count
