"""Query plan of a time range: whole days, hours beside them, and windows for the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hopwatch.monitor.store.rollups import DAY_US, HOUR_US

Ranges = tuple[tuple[int, int], ...]
"""Ranges ``[from, to)`` in µs, in order, none of which touches the next."""


@dataclass(frozen=True, slots=True)
class RangePlan:
    """Parts of a range that are read from windows, hours and days; they cover each moment exactly once."""

    windows: Ranges
    hours: Ranges
    days: Ranges


def plan_range(from_us: int, to_us: int, step_us: int, live_us: Collection[int]) -> RangePlan:
    """Plan the range ``[from_us, to_us)``; hours that start in ``live_us`` are not rolled up yet.

    With steps of an hour or longer, an hour belongs to the range if it starts in it.
    """
    first_us = _round_up(from_us, HOUR_US)
    last_us = to_us // HOUR_US * HOUR_US if step_us < HOUR_US else _round_up(to_us, HOUR_US)
    if step_us < HOUR_US and first_us >= last_us:
        return RangePlan(_join_ranges([(from_us, to_us)]), (), ())
    live = {at for at in live_us if first_us <= at < last_us}
    windows = [(at, at + HOUR_US) for at in live]
    if step_us < HOUR_US:
        windows += [(from_us, first_us), (last_us, to_us)]
    busy = {at // DAY_US * DAY_US for at in live}
    days = [at for at in range(_round_up(first_us, DAY_US), last_us // DAY_US * DAY_US, DAY_US) if at not in busy]
    done = set(days)
    hours = [at for at in range(first_us, last_us, HOUR_US) if at not in live and at // DAY_US * DAY_US not in done]
    return RangePlan(
        _join_ranges(windows),
        _join_ranges((at, at + HOUR_US) for at in hours),
        _join_ranges((at, at + DAY_US) for at in days),
    )


def _round_up(at_us: int, step_us: int) -> int:
    return -(-at_us // step_us) * step_us


def _join_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges, join those that touch, and drop empty ones."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(one for one in ranges if one[0] < one[1]):
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    return tuple(joined)
