"""Event times from hosts: conversion to µs since 1970, and checks of plausibility."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import Final, SupportsIndex

import numpy as np
from numpy.typing import NDArray

MAX_EVENT_US: Final = 2**53
"""First event time (in the year 2255) that is refused."""
MAX_AHEAD_US: Final = 300_000_000
"""Maximum of an event time ahead of the clock."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_PRINTED_US: Final = 10**30
_SECONDS_BELOW, _MILLISECONDS_BELOW, _MICROSECONDS_BELOW = 10**11, 10**14, 10**17
"""Bounds that tell the unit of a present-day time by its size; they lie in 1973 and in the year 5138."""

EventTime = datetime | SupportsIndex
"""Creation time of a message: an aware datetime, or whole µs since 1970."""


def event_time_us(event_time: object) -> int:
    """Return an event time as µs since 1970.

    Raises:
        ValueError: it is a naive datetime, neither a datetime nor a whole number, before 1970 or after 2255.
    """
    if isinstance(event_time, datetime):
        if event_time.utcoffset() is None:
            got = f"the naive {event_time.isoformat()}"
            raise ValueError(f"an event time has a zone, got {got}: use datetime.now(timezone.utc)")
        event_us = (event_time - _EPOCH) // _MICROSECOND
    elif isinstance(event_time, SupportsIndex) and not isinstance(event_time, bool):
        event_us = operator.index(event_time)
    else:
        got = type(event_time).__name__
        raise ValueError(  # noqa: TRY004 - whatever is wrong with an event time, it is one error
            f"an event time is an aware datetime or whole µs since 1970, got {got}"
        )
    if not 0 <= event_us < MAX_EVENT_US:
        got = f"{event_us} µs since 1970" if abs(event_us) < _MAX_PRINTED_US else f"one of {event_us.bit_length()} bits"
        raise ValueError(f"an event time lies between 1970 and 2255, got {got}{_unit_hint(event_us)}")
    return event_us


def is_representable(events_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the event times that a window can hold."""
    return (events_us >= 0) & (events_us < MAX_EVENT_US)


def is_plausible(events_us: NDArray[np.int64], at_us: NDArray[np.int64], max_age_us: int | None) -> NDArray[np.bool_]:
    """Return a mask of the event times that are neither too old nor too far ahead at the moments of their stamps.

    All are plausible if ``max_age_us`` is None.
    """
    if max_age_us is None:
        return np.ones(len(events_us), bool)
    return (events_us >= at_us - max_age_us) & (events_us <= at_us + MAX_AHEAD_US)


def guess_moments_us(events_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Guess the unit of event times by their size, and return them in µs since 1970."""
    units = (events_us < _SECONDS_BELOW, events_us < _MILLISECONDS_BELOW, events_us < _MICROSECONDS_BELOW)
    # Values of other units may overflow here; they are not selected.
    return np.select(units, (events_us * 1_000_000, events_us * 1_000, events_us), events_us // 1_000)


def guess_moment_us(event_us: int) -> int:
    """Guess the unit of one event time, as :func:`guess_moments_us` does for many."""
    if event_us < _SECONDS_BELOW:
        return event_us * 1_000_000
    if event_us < _MILLISECONDS_BELOW:
        return event_us * 1_000
    return event_us if event_us < _MICROSECONDS_BELOW else event_us // 1_000


def describe_fault(event_us: int, at_us: int, max_age_us: int | None, *, is_number: bool = True) -> str | None:
    """Describe the fault of an event time, and how to fix it; None if it is plausible."""
    if is_number and _guess_unit(event_us) is not None:
        return f"an event time as an int is µs since 1970, got {event_us}{_unit_hint(event_us)}"
    if max_age_us is None or -MAX_AHEAD_US <= at_us - event_us <= max_age_us:
        return None
    away_us = at_us - event_us
    how = f"{away_us / 3.6e9:,.1f} h before now" if away_us > 0 else f"{-away_us / 6e7:,.1f} min ahead of this clock"
    bounds = f"{max_age_us / 3.6e9:g} h old and 5 min ahead"
    return f"an event time is at most {bounds}, got {event_us}, {how}: see max_age_s"


def _guess_unit(event_us: int) -> tuple[str, str] | None:
    """Guess the unit of a present-day time, with advice to convert it; None if it is in µs, or in no known unit."""
    if 0 < event_us < _SECONDS_BELOW:
        return "seconds", "multiply it by 1,000,000"
    if _SECONDS_BELOW <= event_us < _MILLISECONDS_BELOW:
        return "milliseconds", "multiply it by 1,000"
    if _MICROSECONDS_BELOW <= event_us < _MICROSECONDS_BELOW * 1_000:
        return "nanoseconds", "divide it by 1,000"
    return None


def _unit_hint(event_us: int) -> str:
    unit = _guess_unit(event_us)
    return "" if unit is None else f", which looks like {unit[0]}: {unit[1]}"
