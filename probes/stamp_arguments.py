"""Arguments of a stamp: checked, counted where they are refused, and reasons brought into the form of the wire."""

from __future__ import annotations

import logging
from typing import Final

from hopwatch.probes import event_times, recorder
from hopwatch.probes.arrays import EventTimes, MessageIds, estimate_length, parse_event_times
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import MAX_REASON_CHARS
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import EventTime
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


def clean_reason(reason: object) -> str | None:
    """Return a reason in the form of the wire; None if it is empty or cannot be converted."""
    if reason is None:
        return None
    try:
        return str(reason)[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8") or None
    except Exception:  # noqa: BLE001 - a host's own class may raise anything, and the stamp counts without a reason
        return None
