"""Arguments of a stamp: checked, counted where they are refused, and reasons brought into the form of the wire."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

from hopwatch.probes import event_times, recorder
from hopwatch.probes.arrays import EventTimes, MessageIds, estimate_length, parse_event_times
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import MAX_LABEL_CHARS, MAX_LABELS, MAX_REASON_CHARS, SCHEMA_LABEL
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import EventTime
from hopwatch.probes.packing import Labels
from hopwatch.probes.recorder import MessageId, Refusals

BAD_ARRAYS: Final = "bad arrays"

_log = logging.getLogger("hopwatch.probe")


def check_arguments(message_id: MessageId, event_time: EventTime, at_us: int, max_age_us: int | None) -> None:
    """Check the id and the event time of a stamp, as a strict probe does.

    Raises:
        ProbeError: one of them is none, or the event time is too old or ahead of the clock.
    """
    try:
        id_bytes(message_id)
        event_us = event_times.event_time_us(event_time)
        told = event_times.describe_fault(event_us, at_us, max_age_us, is_number=isinstance(event_time, int))
    except Exception as error:
        raise ProbeError(str(error)) from error
    if told is not None:
        raise ProbeError(told)


def refuse_arrays(message_ids: MessageIds, event_times: EventTimes, at_ns: int, max_age_us: int | None) -> Refusals:
    """Count refused arrays in the windows of their event times, or, where these are bad, in that of the call."""
    count, refusals = estimate_length(message_ids), Refusals()
    try:
        refusals = recorder.refuse_array(parse_event_times(event_times), at_ns, BAD_ARRAYS, max_age_us)
    except Exception:  # noqa: BLE001 - a host may pass anything; what has no event time counts in the window of the call
        _log.debug("the event times of arrays cannot be read", exc_info=True)
    counted = sum(number for (_, cause), number in refusals.items() if cause != recorder.POSSIBLE_WINDOW)
    if count > counted:
        refusals.update(recorder.refuse_count(count - counted, at_ns, recorder.BAD_EVENT_TIME))
    return refusals


def clean_labels(labels: object) -> Labels:
    """Return labels of messages in the form of the wire; those that cannot be converted, or are too many, are left out.

    Names and values are texts, or what ``str`` makes texts of, such as the number of a partition.
    """
    if labels is None:
        return ()
    try:
        given = tuple(islice(dict(labels).items(), MAX_LABELS))  # type: ignore[call-overload]  # what a host may pass
        # Most messages have the same labels as another; only of these types equal values have equal texts.
        is_plain = all(type(part) in _PLAIN for pair in given for part in pair)
        return _clean_pairs_once(given) if is_plain else _clean_pairs(given)
    except Exception:  # noqa: BLE001 - a host's own class may raise anything, and the stamp counts without labels
        return ()


def check_labels(labels: object) -> None:
    """Check labels of messages, as a strict probe does.

    Raises:
        ProbeError: they are no mapping, or too many.
    """
    if labels is None:
        return
    if not isinstance(labels, Mapping) or len(labels) > MAX_LABELS:
        got = len(labels) if isinstance(labels, Mapping) else type(labels).__name__
        raise ProbeError(f"labels of a message are a mapping of at most {MAX_LABELS}, got {got}")


def label_schema(name: str) -> Labels:
    """Return the label of messages that a schema wrote; none without its name."""
    return ((SCHEMA_LABEL, _clean_label(name)),) if name else ()


def _clean_pairs(given: tuple[tuple[object, object], ...]) -> Labels:
    return tuple((_clean_label(name), _clean_label(value)) for name, value in given)


_PLAIN: Final = (str, int)
_clean_pairs_once: Final = lru_cache(maxsize=1_024)(_clean_pairs)


def _clean_label(text: object) -> str:
    return str(text)[:MAX_LABEL_CHARS].encode("utf-8", "replace").decode("utf-8")


def clean_reason(reason: object) -> str | None:
    """Return a reason in the form of the wire; None if it is empty or cannot be converted."""
    if reason is None:
        return None
    try:
        return str(reason)[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8") or None
    except Exception:  # noqa: BLE001 - a host's own class may raise anything, and the stamp counts without a reason
        return None
