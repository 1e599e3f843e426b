"""Table of times on the path: a line a part of it, in the pathway's order, and which part of the lag it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hopwatch.display import texts
from hopwatch.monitor.results import SpanTime, SpanTimes, times_from_json

TIME_COLUMNS: Final = ("part of the path", "timed", "p50", "p95", "p99", "mean", "share")
"""Heads of the columns; the first one is words."""
MAX_LINES: Final = 24
"""Parts of a path that are shown at once; ``report --json`` has all of a window."""


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A line in the order of TIME_COLUMNS, and its mean and its share of the lag at the end.

    Both are None where no whole path is known, and the share where the lags add up to nothing or less.
    """

    cells: tuple[str, ...]
    mean_us: float | None
    share: float | None


def build_time_lines(nodes: Sequence[str], span: SpanTimes) -> list[TimeLine]:
    """Return the lines of a span: of each node those before it, on each edge to it, and inside it."""
    rank = {node: place for place, node in enumerate(nodes)}

    def place(one: SpanTime) -> tuple[int, bool, int]:
        return rank.get(one.node, len(rank)), one.source == one.node, rank.get(one.source, -1)

    whole_us = sum(one.total_us for one in span.times)
    return [_build_line(one, span, whole_us) for one in sorted(span.times, key=place)]


def select_lines(lines: Sequence[TimeLine]) -> list[TimeLine]:
    """Select the lines with the greatest shares, MAX_LINES at most, in their order."""

    def rank(at: int) -> tuple[bool, float]:
        mean_us = lines[at].mean_us
        return mean_us is None, -(mean_us or 0.0)

    return [lines[at] for at in sorted(sorted(range(len(lines)), key=rank)[:MAX_LINES])]


def describe_left_out(lines: Sequence[TimeLine]) -> str:
    """Return how many parts are not shown; empty where all are."""
    return f"{len(lines):,} parts; the {MAX_LINES} with the greatest share are shown" if len(lines) > MAX_LINES else ""


def describe_mean(span: SpanTimes) -> str:
    """Return the mean lag at the end of the path in words, and of how many messages it is."""
    if not span.path_messages:
        return "no message's whole path is known: a stamp is missing of each"
    mean_us = sum(one.total_us for one in span.times) / span.path_messages
    about = "" if span.samples == span.messages else "about "
    told = f"mean lag at the end of the path {texts.format_lag(mean_us)}, of {about}{span.path_messages:,} messages"
    return f"{told}, by a sample of {span.samples:,} of {span.messages:,}" if about else told


def read_window_times(window: Mapping[str, Any]) -> SpanTimes | None:
    """Return the times of a window as ``report --json`` shows it; None where it has none."""
    found = [(node["node"], one) for node in window["nodes"] for one in times_from_json(node["times"])]
    if not found:
        return None
    times = tuple(
        SpanTime(
            *(node, one.source, one.time_us.count),
            *(one.time_us.p50, one.time_us.p95, one.time_us.p99, one.total_us),
        )
        for node, one in found
    )
    first = found[0][1]
    return SpanTimes(0, 1, first.samples, first.messages, first.path_messages, times)


def name_part(one: SpanTime) -> str:
    """Return the name of a part of the path."""
    match one.source:
        case "":
            return f"before {one.node}"
        case one.node:
            return f"inside {one.node}"
    return f"{one.source} → {one.node}"


def format_percentiles(one: SpanTime, windows: int) -> tuple[str, str]:
    """Return p50 and p95 of a part of the path in words."""
    return f"p50 {format_percentile(one.p50_us, windows)}", f"p95 {format_percentile(one.p95_us, windows)}"


def format_percentile(lag_us: int, windows: int) -> str:
    """Return a percentile: of several windows it is the greatest of any, and so a bound."""
    return texts.format_lag(lag_us) if windows == 1 else f"≤ {texts.format_lag(lag_us)}"


def _build_line(one: SpanTime, span: SpanTimes, whole_us: int) -> TimeLine:
    mean_us = one.total_us / span.path_messages if span.path_messages else None
    share = one.total_us / whole_us if whole_us > 0 else None
    percentiles = (format_percentile(lag_us, span.windows) for lag_us in (one.p50_us, one.p95_us, one.p99_us))
    figures = texts.format_lag(mean_us), texts.format_ratio(share)
    return TimeLine((name_part(one), texts.format_count(one.timed), *percentiles, *figures), mean_us, share)
