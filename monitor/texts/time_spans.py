"""Formats of time spans, in the unit that suits their size."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (
    *(("µs", 1, 1_000), ("ms", 1_000, 1_000_000), ("s", 1_000_000, 120_000_000)),
    *(("min", 60_000_000, 7_200_000_000), ("h", 3_600_000_000, 172_800_000_000), ("d", 86_400_000_000, 0)),
)
"""Each unit, its size in µs, and the span from which the next one is chosen."""


def choose_unit(span_us: float) -> tuple[str, int]:
    """Return the unit that suits a span, as it is rounded in it, and its size in µs."""
    return next(
        (unit, size_us)
        for unit, size_us, most_us in _UNITS
        if not most_us or abs(round(span_us / size_us, _digits(size_us))) < most_us / size_us
    )


def format_duration(span_us: float) -> str:
    """Return a span in its unit; a negative one too."""
    unit, size_us = choose_unit(span_us)
    return f"{span_us / size_us:,.{_digits(size_us)}f} {unit}"


def format_age(for_us: int) -> str:
    """Return how long ago something was, in the two greatest units that it has; what is yet to come is 0 s ago."""
    seconds = max(0, for_us) // 1_000_000
    minutes, hours, days = seconds // 60, seconds // 3_600, seconds // 86_400
    if days:
        return f"{days:,} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _digits(size_us: int) -> int:
    return 0 if size_us == 1 else 1
