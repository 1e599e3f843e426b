"""Formatting of numbers, durations and moments; an unknown value is shown as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from hopwatch.monitor.texts import time_spans

NONE: Final = "\u2013"
"""There is no value."""
UNKNOWN: Final = "?"
"""A value exists and is unknown."""

CLOCK: Final = "%H:%M:%S"
"""Form of a moment whose day is known."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PERCENT_FIGURES: Final = ((0.1, 1), (0.001, 2), (0.00001, 4))


def format_count(number: int | None) -> str:
    """Return a count with thousands separators, or UNKNOWN."""
    return UNKNOWN if number is None else f"{number:,}"


def format_ppm(part: int, whole: int) -> str:
    """Return a part of a whole in millionths; of nothing there is no part."""
    if not whole:
        return NONE
    millionths = part / whole * 1e6
    return f"{millionths:,.0f} ppm" if millionths >= 1 or not part else f"{millionths:.2g} ppm"


def format_percent(part: int, whole: int) -> str:
    """Return a part of a whole in per cent, with as many figures as tell it from none."""
    return format_ratio(part / whole) if whole else NONE


def format_share(part: int, whole: int) -> str:
    """Return a part of some messages as a percentage of their number."""
    return f"{format_percent(part, whole)} of {whole:,}"


def format_ratio(fraction: float | None) -> str:
    """Return a fraction in per cent; small ones with more figures, so that some is never shown as none."""
    if fraction is None:
        return NONE
    if fraction in (0, 1):
        return f"{fraction:.0%}"
    figures = next((figures for least, figures in _PERCENT_FIGURES if abs(fraction) >= least), None)
    if figures is None:
        return f"{fraction * 100:.2g}%"
    # What is not all is not rounded up to all.
    shown = f"{fraction * 100:.{figures}f}"
    return f"{'99.99' if fraction < 1 and float(shown) == 100 else shown}%"  # noqa: PLR2004 - per cent


def format_lag(lag_us: float | None) -> str:
    """Return a lag in the unit that a person would choose."""
    return NONE if lag_us is None else time_spans.format_duration(lag_us)


def format_minutes(minutes: float) -> str:
    """Return a whole number of minutes, as alerts count them: never in another unit."""
    return f"{minutes:,.0f} min"


def format_burn_rate(rate: float) -> str:
    """Return how fast an error budget burns: 1 uses it up exactly by the end of its period."""
    return f"{rate:,.1f} times the budget"


def format_age(for_us: int) -> str:
    """Return how long ago something was, in the two greatest units that it has."""
    return time_spans.format_age(for_us)


def join_words(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part) if words else ""


def format_second(at_us: int, zone: tzinfo = UTC) -> str:
    """Return a moment to the second: day, time and zone."""
    return format_moment(at_us, zone, "%Y-%m-%d %H:%M:%S")


def format_moment(at_us: int, zone: tzinfo = UTC, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a moment of a minute, or in another form: day, time and zone."""
    try:
        there = (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone)
    except OverflowError:
        # Which only a broken clock tells.
        return f"{at_us} µs since 1970"
    return f"{there.strftime(form)} {there.tzname()}"
