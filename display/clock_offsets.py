"""Offsets of probes' clocks in words."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Final

from hopwatch.monitor.accounting.instances import InstanceClock
from hopwatch.monitor.kernel.books import ClockOffset

_TENTH_US: Final = 100
"""A tenth of a millisecond, to which offsets are shown."""


def format_offset(offset: ClockOffset) -> str:
    """Return how far a clock is ahead of the brokers' or behind it, with its error, or to what it is surely right.

    Errors are rounded up, so that what is shown covers the bounds.
    """
    if offset.low_us <= 0 <= offset.high_us:
        return f"right to {_round_up_ms(max(-offset.low_us, offset.high_us)):,} ms"
    middle_ms, error_us = (offset.low_us + offset.high_us) / 2_000, (offset.high_us - offset.low_us) / 2
    side = "ahead" if middle_ms > 0 else "behind"
    return f"{abs(middle_ms):,.1f} ± {_round_up_ms(error_us + _TENTH_US / 2):,} ms {side}"


def describe_clock(farthest: InstanceClock, others: int) -> str:
    """Return how wrong the clock of an instance is, the farthest off of its node, and that of so many others."""
    more = f", and those of {others:,} more of its instances are wrong" if others else ""
    wrong = "long" if farthest.offset.low_us > 0 else "short"
    told = f"the clock of {farthest.probe} at {farthest.node} is {format_offset(farthest.offset)}{more}"
    return f"{told}: lags that it stamps are too {wrong} by that"


def group_clocks(clocks: Iterable[InstanceClock]) -> tuple[tuple[InstanceClock, int], ...]:
    """Return for each node the clock that is farthest off, and the number of others; the farthest come first."""
    by_node: dict[tuple[str, str], list[InstanceClock]] = {}
    for clock in clocks:
        by_node.setdefault((clock.stream, clock.node), []).append(clock)
    return tuple((of_node[0], len(of_node) - 1) for of_node in by_node.values())


def _round_up_ms(time_us: float) -> float:
    return ceil(time_us / _TENTH_US) / 10
