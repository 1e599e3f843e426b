"""Markers shortly before a window, or in it, in words: what may have to do with what it shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hopwatch.monitor.markers import Marker
from hopwatch.monitor.texts.time_spans import format_age
from hopwatch.probes.contract.limits import WINDOW_US

BEFORE_US: Final = 600_000_000
"""Time before a window whose markers are named with it."""
MAX_NAMED: Final = 5
"""Markers that are named, the latest ones."""


def describe_markers(markers: Iterable[Marker], stream: str, start_us: int) -> list[str]:
    """Return a sentence for each of the latest markers of a stream, and of all, from before a window or in it."""
    first_us, end_us = start_us - BEFORE_US, start_us + WINDOW_US
    near = [one for one in select_markers(markers, stream) if first_us <= one.at_us < end_us]
    near.sort(key=lambda one: (one.at_us, one.number))
    return [f"{_describe_distance(one.at_us - start_us)}: {one.describe()}, by {one.by}" for one in near[-MAX_NAMED:]]


def select_markers(markers: Iterable[Marker], stream: str) -> list[Marker]:
    """Return the markers of a stream, and those of all."""
    return [one for one in markers if one.stream in {stream, ""}]


def _describe_distance(after_us: int) -> str:
    where = "into" if after_us >= 0 else "before"
    return f"marked {format_age(abs(after_us))} {where} this minute"
