"""Axes of charts: round ticks of values and moments, and the position of a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US
_STEPS_US: Final = (
    *(minutes * MINUTE_US for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR_US for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_US for days in (1, 2, 7, 14, 28, 91, 365)),
)
MAX_TICKS: Final = 9
VALUE_TICKS: Final = 4
_ROUND: Final = (1, 2, 2.5, 5, 10)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high`` in values, from ``start`` to ``end`` in the drawing."""

    low: float
    high: float
    start: float
    end: float

    def position(self, value: float) -> float:
        """Return where a value lies; those beyond the ends lie beyond them."""
        return self.start + (value - self.low) / (self.high - self.low or 1) * (self.end - self.start)


def build_value_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers from no more than ``low`` to no less than ``high``, about ``VALUES`` apart."""
    # Values that are all the same have an axis too, of steps that a float can tell apart.
    size = max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-9) / VALUE_TICKS
    whole = 10.0 ** math.floor(math.log10(size))
    step = next(whole * factor for factor in _ROUND if whole * factor >= size * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(place * step, 12) for place in range(first, max(last, first + 1) + 1))


def build_time_ticks(from_us: int, to_us: int, zone: tzinfo = UTC) -> tuple[int, ...]:
    """Return at most ``MOST_MOMENTS`` moments in ``[from_us, to_us]`` that are round by the clocks of a zone."""
    step_us = next((step for step in _STEPS_US if (to_us - from_us) // step < MAX_TICKS), 0)
    step_us = step_us or -(-(to_us - from_us) // (MAX_TICKS - 1))
    ahead_us = _utc_offset_us(from_us, zone)
    evenly = range(-(-(from_us + ahead_us) // step_us) * step_us - ahead_us, to_us + 1, step_us)
    if zone is UTC or step_us <= HOUR_US:
        return tuple(evenly)
    # Behind a day on which the clocks are moved the same time of the day comes an hour earlier or later.
    moved = (at_us + ahead_us - _utc_offset_us(at_us, zone) for at_us in evenly)
    return tuple(at_us for at_us in moved if from_us <= at_us <= to_us)


def format_tick(at_us: int, length_us: int, zone: tzinfo = UTC) -> str:
    """Return a moment as it stands at an axis of so long a range: the time, the day, or both."""
    ahead_us = _utc_offset_us(at_us, zone)
    at = _EPOCH + timedelta(microseconds=at_us + ahead_us)
    if length_us > MAX_TICKS * DAY_US:
        return f"{at:%b %d}"
    return f"{at:%b %d}" if (at_us + ahead_us) % DAY_US == 0 and length_us > HOUR_US else f"{at:%H:%M}"


def _utc_offset_us(at_us: int, zone: tzinfo) -> int:
    """Return how far the clocks of a zone are ahead of UTC at a moment."""
    if zone is UTC:
        return 0
    ahead = (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone).utcoffset()
    return 0 if ahead is None else ahead // timedelta(microseconds=1)
