"""Durations in a configuration: a whole number with its unit, parsed to microseconds."""

from __future__ import annotations

import re
from typing import Final

ALLOWED_FORMS: Final = 'a whole number with ms, s, m, h or d behind it, in quotes: "500ms", "150s", "10m", "1h", "7d"'
"""Allowed forms of a duration, for error messages."""

MAX_DURATION_US: Final = 3_650 * 86_400_000_000
"""Ten years: sums of spans and times stay far within 64 bits."""

_UNITS_US: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_FORM: Final = re.compile(r"([0-9]{1,18})(ms|s|m|h|d)")


def parse_duration_us(value: object) -> int:
    """Parse a duration to µs.

    Raises:
        ValueError: it is not of one of the allowed forms, or longer than 3650 days.
    """
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        msg = f"a duration is {ALLOWED_FORMS}; got {value!r:.80}"
        raise ValueError(msg)
    span_us = int(match[1]) * _UNITS_US[match[2]]
    if span_us > MAX_DURATION_US:
        msg = f"a duration is at most 3650d, got {value!r}"
        raise ValueError(msg)
    return span_us


def parse_positive_us(value: object) -> int:
    """Parse a duration over zero to µs.

    Raises:
        ValueError: it is not of one of the allowed forms, zero, or longer than 3650 days.
    """
    span_us = parse_duration_us(value)
    if span_us == 0:
        msg = f"this duration is longer than zero, got {value!r}"
        raise ValueError(msg)
    return span_us


def format_duration_us(span_us: int) -> str:
    """Return a duration as it is written in a configuration, in seconds or, rounded, in milliseconds."""
    milliseconds = round(span_us / 1_000)
    return f"{milliseconds}ms" if milliseconds % 1_000 else f"{milliseconds // 1_000}s"
