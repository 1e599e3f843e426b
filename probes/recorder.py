"""Conversion of stamps into batches: pure functions on arrays, no clock, no input or output.

A stamp is one call for one message; the stamps of a message at this node since the last flush are joined into one
observation.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes import id_columns
from hopwatch.probes.contract.batch import Outcome, WireIdKind
from hopwatch.probes.contract.limits import NOT_STAMPED, WINDOW_MS, WINDOW_US
from hopwatch.probes.event_times import (
    MAX_AHEAD_US,
    MAX_EVENT_US,
    EventTime,
    describe_fault,
    event_time_us,
    guess_moment_us,
    guess_moments_us,
    is_plausible,
    is_representable,
)
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, Labels, PackedBatch, concatenate, pack_batches

_OUTCOMES: Final = np.array(
    [Outcome.PASSED, Outcome.PASSED, Outcome.FILTERED, Outcome.REJECTED, Outcome.DEFERRED, Outcome.REJECTED], np.uint8
)
"""Outcome of each kind of stamp."""

MessageId = uuid.UUID | bytes | SupportsIndex | str
"""Message id as a service passes it; integer types of numpy count as integers."""


class StampKind(IntEnum):
    """Kind of a stamp; REJECTED_INSIDE is a rejection behind an arrival that was stamped before."""

    ARRIVED = 0
    DEPARTED = 1
    FILTERED = 2
    REJECTED = 3
    DEFERRED = 4
    REJECTED_INSIDE = 5


class Stamp(NamedTuple):
    """One call for one message: its kind, id, event time and moment (ns since 1970), with a reason if it ends here.

    ``until_us`` is the moment until which a deferred message waits.
    """

    side: int
    message_id: MessageId
    event_time: EventTime
    at_ns: int
    reason: str | None = None
    until_us: int = 0
    labels: Labels = ()


class StampArrays(NamedTuple):
    """One call for many messages: packed ids, event times in µs, one moment for all."""

    side: int
    message_ids: NDArray[np.uint64]
    event_times_us: NDArray[np.int64]
    at_ns: int
    id_kinds: WireIdKind | NDArray[np.uint8] = WireIdKind.BYTES
    id_texts: Sequence[bytes | None] | None = None
    labels: Labels = ()


MAX_LABEL_SETS: Final = 64
"""Sets of labels of messages that are told apart in one flush; messages with further ones go without theirs."""
BAD_EVENT_TIME: Final = "bad event time"
IMPLAUSIBLE: Final = "implausible event time"
POSSIBLE_WINDOW: Final = "implausible event time, perhaps of this minute"
"""Cause of an additional count: the same stamps, in the windows that their event times may mean."""
BAD_MESSAGE_ID: Final = "bad message id"
BAD_UNTIL: Final = "bad moment to wait until"


class Refusals(Counter[tuple[int, str]]):
    """Numbers of refused stamps by (window start in ms, cause), with an example of each cause for the log."""

    def __init__(self, counts: Mapping[tuple[int, str], int] | None = None) -> None:
        """Start with some counts, or none."""
        super().__init__(counts or {})
        self.examples: dict[str, str] = {}


def refuse_array(events_us: NDArray[np.int64], at_ns: int, cause: str, max_age_us: int | None = None) -> Refusals:
    """Count the stamps of an array that was refused as a whole.

    Invalid event times are counted in the window of ``at_ns``, and are then the cause: their own windows are unknown.
    """
    refusals = Refusals()
    at_us = np.full(len(events_us), at_ns // 1_000)
    good = _check_event_times(events_us, at_us, is_representable(events_us), refusals, max_age_us)
    _count_by_window(refusals, events_us[good], cause)
    return refusals


def refuse_count(count: int, at_ns: int, cause: str) -> Refusals:
    """Count stamps of which only the number is known, in the window of their call."""
    return Refusals({(at_ns // 1_000 // WINDOW_US * WINDOW_MS, cause): count})


def refuse_stamp(event_time: EventTime, at_ns: int, cause: str, max_age_us: int | None = None) -> Refusals:
    """Count one refused stamp, on the host's own thread; as :func:`refuse_array` does for many."""
    event_us, at_us = _event_time_or_none(event_time), at_ns // 1_000
    if event_us is None:
        return refuse_count(1, at_ns, BAD_EVENT_TIME)
    if max_age_us is None or -MAX_AHEAD_US <= at_us - event_us <= max_age_us:
        return Refusals({(event_us // WINDOW_US * WINDOW_MS, cause): 1})
    refusals = refuse_count(1, at_ns, IMPLAUSIBLE)
    perhaps_us = guess_moment_us(event_us)
    if 0 < perhaps_us < MAX_EVENT_US and perhaps_us // WINDOW_US != at_us // WINDOW_US:
        refusals[perhaps_us // WINDOW_US * WINDOW_MS, POSSIBLE_WINDOW] = 1
    return refusals


def build_batches(
    taken: Sequence[Stamp | StampArrays], not_before_us: int, max_age_us: int | None = None, *, id_text: bool = True
) -> tuple[list[PackedBatch], Refusals]:
    """Build batches from the stamps since the last flush, and count those that cannot be sent.

    A stamp's moment lies within its call. If the last flush completed that moment before the stamp was queued, the
    stamp is moved just past ``not_before_us``, the completed moment: still within the call, and nothing is added to a
    time that was completed. With ``max_age_us`` stamps with older event times, or times ahead, are refused. Without
    ``id_text`` the texts of ids are left out.
    """
    refusals = Refusals()
    texts: list[str] = []
    names: list[bytes] = []
    label_sets: dict[Labels, int] = {}
    singles = [stamp for stamp in taken if isinstance(stamp, Stamp)]
    parts = [_record_stamps(singles, refusals, texts, names, max_age_us, label_sets)] if singles else []
    arrays = [stamp for stamp in taken if isinstance(stamp, StampArrays)]
    parts += _record_arrays(arrays, refusals, names, max_age_us, label_sets)
    if not parts:
        return [], refusals
    columns = _move_late(concatenate(parts), not_before_us)
    return list(pack_batches(columns, texts, names if id_text else (), list(label_sets))), refusals


def find_first_fault(
    taken: Sequence[Stamp | StampArrays], max_age_us: int | None, cause: str = IMPLAUSIBLE
) -> str | None:
    """Return a description of the first event time that is refused for this cause; None if there is none."""
    for call in taken:
        at_us = call.at_ns // 1_000
        if isinstance(call, StampArrays):
            events_us = call.event_times_us
            is_wrong = ~is_representable(events_us) | ~is_plausible(
                events_us, np.full(len(events_us), at_us), max_age_us
            )
            wrong = events_us[is_wrong].tolist()
        else:
            event_time = call.event_time
            wrong = [event_time if type(event_time) is int else _event_time_or_none(event_time)]
        for event_us in wrong:
            if event_us is not None and (cause == BAD_EVENT_TIME) == (event_us >= MAX_EVENT_US):
                told = describe_fault(event_us, at_us, max_age_us)
                if told is not None:
                    return told
    return None


def _record_stamps(  # noqa: PLR0913, PLR0917 - what all stamps of a flush share
    stamps: list[Stamp],
    refusals: Refusals,
    texts: list[str],
    names: list[bytes],
    max_age_us: int | None,
    label_sets: dict[Labels, int],
) -> Columns:
    sides, message_ids, event_times, moments_ns, said, until_us, labels = zip(*stamps, strict=True)
    events_us, event_ok = _parse_event_times(event_times)
    found = id_columns.encode_ids(message_ids)
    id_ok = found.is_valid
    side, at_us = np.array(sides, np.int64), np.array(moments_ns, np.int64) // 1_000
    event_ok = _check_event_times(events_us, at_us, event_ok, refusals, max_age_us)
    _count_by_window(refusals, events_us[event_ok & ~id_ok], BAD_MESSAGE_ID)
    if found.bad_types:
        refusals.examples[BAD_MESSAGE_ID] = ", ".join(sorted(found.bad_types))
    good = event_ok & id_ok
    columns = _build_columns(side, found.ids, events_us, at_us)
    columns.id_kind, columns.id_text = found.kinds, _append_texts(found.texts, names)
    if any(until_us):
        columns.until_us = np.array(until_us, np.int64)
    if any(labels):
        columns.label_set = np.array([_number_labels(one, label_sets) for one in labels], np.int64)
    if any(said):
        texts += dict.fromkeys(filter(None, said))
        place = {text: number for number, text in enumerate(texts)}
        columns.reason = np.array([place.get(text, NO_TEXT) for text in said], np.int64)
    return _pair_stamps(columns.select(good), side[good], label_sets)


def _number_labels(labels: Labels, label_sets: dict[Labels, int]) -> int:
    """Return the number of a set of labels, and add it to ``label_sets`` if it is new and there is room."""
    if not labels or (labels not in label_sets and len(label_sets) >= MAX_LABEL_SETS):
        return NO_LABELS
    return label_sets.setdefault(labels, len(label_sets) + 1)


def _join_labels(
    arrived: NDArray[np.int64], departed: NDArray[np.int64], label_sets: dict[Labels, int]
) -> NDArray[np.int64]:
    """Return the numbers of the labels of both stamps of messages; of a label with two values that of the arrival."""
    if np.array_equal(arrived, departed) or not departed.any():
        return arrived
    sets: list[Labels] = [(), *label_sets]
    pairs, place = np.unique(arrived * len(sets) + departed, return_inverse=True)
    joined = []
    for first, second in (divmod(pair, len(sets)) for pair in pairs.tolist()):
        both = dict(sets[second]) | dict(sets[first])
        joined.append(_number_labels(tuple(both.items()), label_sets) or first)
    return np.array(joined, np.int64)[place]


def _append_texts(texts: Sequence[bytes | None], names: list[bytes]) -> NDArray[np.int64]:
    """Append texts of ids to ``names``, and return the index of each."""
    if not any(text is not None for text in texts):
        return np.full(len(texts), NO_TEXT)
    first = len(names)
    names += [text or b"" for text in texts]
    return np.arange(first, len(names))


def _check_event_times(
    events_us: NDArray[np.int64],
    at_us: NDArray[np.int64],
    are_good: NDArray[np.bool_],
    refusals: Refusals,
    max_age_us: int | None,
) -> NDArray[np.bool_]:
    """Return a mask of the stamps with good event times, and count the others in the windows of their moments."""
    good = are_good & is_plausible(events_us, at_us, max_age_us)
    _count_by_window(refusals, at_us[~are_good], BAD_EVENT_TIME)
    _count_by_window(refusals, at_us[are_good & ~good], IMPLAUSIBLE)
    if max_age_us is not None:
        _count_possible(refusals, events_us[~good], at_us[~good])
    return good


def _count_possible(refusals: Refusals, events_us: NDArray[np.int64], at_us: NDArray[np.int64]) -> None:
    """Count implausible stamps also in the windows that their event times may mean.

    The event time may be wrong, or the clock of this host; their own moments are counted already.
    """
    perhaps_us = guess_moments_us(events_us)
    is_other = perhaps_us // WINDOW_US != at_us // WINDOW_US
    _count_by_window(refusals, perhaps_us[(events_us > 0) & is_representable(perhaps_us) & is_other], POSSIBLE_WINDOW)


def _record_arrays(
    chunks: list[StampArrays],
    refusals: Refusals,
    names: list[bytes],
    max_age_us: int | None,
    label_sets: dict[Labels, int],
) -> list[Columns]:
    """Join the arrays that arrived with the same arrays that departed; others stay as they are."""
    parts: list[Columns] = []
    waiting: dict[bytes, list[Columns]] = {}
    for chunk in chunks:
        columns = _record_array(chunk, refusals, names, max_age_us)
        if chunk.labels:
            columns.label_set = np.full(len(columns.event_us), _number_labels(chunk.labels, label_sets))
        # Keyed by the first and the last id, then compared whole: no search among all waiting arrays.
        alike = waiting.setdefault(columns.ids[:1].tobytes() + columns.ids[-1:].tobytes(), [])
        if chunk.side == StampKind.DEPARTED and (partner := _find_partner(columns, alike)):
            partner.out_us = columns.out_us
            partner.label_set = _join_labels(partner.label_set, columns.label_set, label_sets)
            alike.remove(partner)
            continue
        parts.append(columns)
        if chunk.side == StampKind.ARRIVED:
            alike.append(columns)
    return parts


def _record_array(chunk: StampArrays, refusals: Refusals, names: list[bytes], max_age_us: int | None) -> Columns:
    believed = is_representable(chunk.event_times_us)
    at_us = np.full(len(believed), chunk.at_ns // 1_000)
    good = _check_event_times(chunk.event_times_us, at_us, believed, refusals, max_age_us)
    columns = _build_columns(np.full(len(good), chunk.side), chunk.message_ids, chunk.event_times_us, at_us)
    columns.id_kind = np.broadcast_to(np.asarray(chunk.id_kinds, np.uint8), len(good))
    if chunk.id_texts is not None:
        columns.id_text = _append_texts(chunk.id_texts, names)
    return columns if good.all() else columns.select(good)


def _find_partner(departed: Columns, waiting: list[Columns]) -> Columns | None:
    """Return the first arrived array of the same messages in the same order."""
    for arrived in waiting:
        if np.array_equal(arrived.ids, departed.ids) and np.array_equal(arrived.event_us, departed.event_us):
            return arrived
    return None


def _build_columns(
    side: NDArray[np.int64], ids: NDArray[np.uint64], events_us: NDArray[np.int64], at_us: NDArray[np.int64]
) -> Columns:
    departs = side == StampKind.DEPARTED
    has_arrived = departs | (side == StampKind.REJECTED_INSIDE)
    in_us, out_us = np.where(has_arrived, NOT_STAMPED, at_us), np.where(departs, at_us, NOT_STAMPED)
    none = np.full(len(side), NO_TEXT)
    kinds, until_us = np.zeros(len(side), np.uint8), np.zeros(len(side), np.int64)
    label_set = np.full(len(side), NO_LABELS)
    return Columns(ids, events_us, in_us, out_us, _OUTCOMES[side], none, kinds, none, until_us, label_set)


def _pair_stamps(columns: Columns, side: NDArray[np.int64], label_sets: dict[Labels, int]) -> Columns:
    """Join arrivals with departures of the same message: the first with the first, the second with the second."""
    if not (side == StampKind.DEPARTED).any() or not (side == StampKind.ARRIVED).any():
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
    arrivals, departures = ordered_side == StampKind.ARRIVED, ordered_side == StampKind.DEPARTED
    _, at_arrival, at_departure = np.intersect1d(
        slot[arrivals], slot[departures], assume_unique=True, return_indices=True
    )
    joined, gone = order[arrivals][at_arrival], order[departures][at_departure]
    columns.out_us[joined] = columns.out_us[gone]
    columns.label_set[joined] = _join_labels(columns.label_set[joined], columns.label_set[gone], label_sets)
    keep = np.ones(len(order), bool)
    keep[gone] = False
    return columns.select(keep)


def _move_late(columns: Columns, not_before_us: int) -> Columns:
    for moments in (columns.in_us, columns.out_us):
        late = (moments != NOT_STAMPED) & (moments <= not_before_us)
        if late.any():
            moments[late] = not_before_us + 1
    return columns


def _parse_event_times(event_times: Sequence[EventTime]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return event times in µs, 0 for invalid ones, and a mask of the valid ones."""
    if set(map(type, event_times)) == {int}:
        try:
            events_us = np.array(event_times, np.int64)
        except OverflowError:  # at least one is invalid, and is found below
            pass
        else:
            return events_us, is_representable(events_us)
    found = [_event_time_or_none(event_time) for event_time in event_times]
    ok = np.array([event_us is not None for event_us in found], bool)
    return np.array([event_us or 0 for event_us in found], np.int64), ok


def _event_time_or_none(event_time: EventTime) -> int | None:
    try:
        # int.__index__ reads the number itself: a subclass of the host may override its methods.
        event_us = int.__index__(event_time_us(event_time))
    except Exception:  # noqa: BLE001 - a host's own time zone may raise anything, and costs its own stamp only
        return None
    return event_us if 0 <= event_us < MAX_EVENT_US else None


def _count_by_window(refusals: Refusals, moments_us: NDArray[np.int64], cause: str) -> None:
    """Count stamps by the windows of the given moments: event times, or stamp times where these are unknown."""
    starts_ms, counts = np.unique(moments_us // WINDOW_US * WINDOW_MS, return_counts=True)
    for start_ms, count in zip(starts_ms.tolist(), counts.tolist(), strict=True):
        refusals[start_ms, cause] += count
