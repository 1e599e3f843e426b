"""Field types that several tables share: durations, ratios, counts and names, with their error messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

from hopwatch.monitor.settings.durations import parse_duration_us, parse_positive_us

NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Allowed names of rules, channels and installations."""


def _parse_ratio(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    msg = f"a ratio is a number from 0 to 1, got {value!r:.80}"
    raise ValueError(msg)


def _parse_positive_int(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    msg = f"this is a whole number over 0, got {value!r:.80}"
    raise ValueError(msg)


def _parse_names(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value):
        return tuple(value)
    msg = f'this is a list of names, such as ["orders"]; got {value!r:.80}'
    raise ValueError(msg)


def name_validator(what: str) -> Callable[[str], str]:
    """Return a validator of names; ``what`` is the subject of its error message."""

    def named(name: str) -> str:
        if not NAME_PATTERN.fullmatch(name):
            msg = f"{what} is 1 to 64 of the characters a-z0-9_-, got {name!r:.80}"
            raise ValueError(msg)
        return name

    return named


def as_tuple(value: object) -> object:
    """Convert a list to a tuple, and return anything else unchanged."""
    return tuple(value) if isinstance(value, list) else value


Duration = Annotated[int, BeforeValidator(parse_duration_us)]
PositiveDuration = Annotated[int, BeforeValidator(parse_positive_us)]
Ratio = Annotated[float, BeforeValidator(_parse_ratio)]
PositiveInt = Annotated[int, BeforeValidator(_parse_positive_int)]
Names = Annotated[tuple[str, ...], BeforeValidator(_parse_names)]
Severity = Literal["page", "ticket"]
