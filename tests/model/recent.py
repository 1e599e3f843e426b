"""Recent figures, one observation after the other, as SEMANTICS.md defines them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

SPAN_S = 10
EDGE_S = 60
FARTHEST_US = 2**43


class Seen(NamedTuple):
    """An observation that a node stamped, in a batch that arrived then; ``outcome`` is as on the wire, 3 deferred."""

    node: str
    arrival_us: int
    lag_in_us: int | None
    lag_out_us: int | None
    outcome: int
    message: int = 0


def end_of_span(read_through_us: int) -> int:
    """Give the last whole second that is half a second or more before a moment, in s."""
    return (read_through_us - 500_000) // 1_000_000


def figures(seen: Iterable[Seen], node: str, end_s: int, *, one_side: bool) -> dict[str, Any]:
    """Give the figures of a node in the span that ends at a second."""
    came: list[int] = []
    left: list[int] = []
    stopped = 0
    for one in seen:
        if one.node != node or not (end_s - SPAN_S) * 1_000_000 <= one.arrival_us < end_s * 1_000_000:
            continue
        lag_in_us, lag_out_us = one.lag_in_us, one.lag_out_us
        if one_side:
            lag_in_us = one.lag_out_us if one.lag_in_us is None else one.lag_in_us
            lag_out_us = one.lag_in_us if one.lag_out_us is None else one.lag_out_us
        if lag_in_us is not None and one.outcome != 3:
            came.append(lag_in_us)
        if lag_out_us is not None and one.outcome == 0:
            left.append(lag_out_us)
        stopped += one.outcome in {1, 2}
    return {
        "arrived": len(came),
        "departed": len(left),
        "stopped": stopped,
        "lag_in_us": percentiles(came),
        "lag_out_us": percentiles(left),
    }


def edge_figures(
    seen: Iterable[Seen], edge: tuple[str, str], end_s: int, *, one_sided: Collection[str]
) -> tuple[int, tuple[int, ...]] | None:
    """Give how many messages arrived over an edge in the span, and the percentiles of their times on it."""
    left: dict[int, int] = {}
    came: dict[int, int] = {}
    for one in seen:
        lag_in_us, lag_out_us = one.lag_in_us, one.lag_out_us
        if one.node in one_sided:
            lag_in_us = one.lag_out_us if one.lag_in_us is None else one.lag_in_us
            lag_out_us = one.lag_in_us if one.lag_out_us is None else one.lag_out_us
        for node, kept_s, lag_us, is_stamp, least in (
            (edge[0], EDGE_S, lag_out_us, one.outcome == 0, left),
            (edge[1], SPAN_S, lag_in_us, one.outcome != 3, came),
        ):
            is_kept = (end_s - kept_s) * 1_000_000 <= one.arrival_us < end_s * 1_000_000
            if one.node == node and is_kept and is_stamp and lag_us is not None and abs(lag_us) <= FARTHEST_US:
                least[one.message] = min(lag_us, least.get(one.message, lag_us))
    times_us = [came[message] - left[message] for message in came.keys() & left.keys()]
    told = percentiles(times_us)
    return (len(times_us), told) if told else None


def percentiles(lags_us: list[int]) -> tuple[int, ...] | None:
    """Give the least lag such that half, 95 % and 99 % of all are not greater; nothing of none."""
    ordered = sorted(lags_us)
    shares = (Fraction(1, 2), Fraction(95, 100), Fraction(99, 100))
    return tuple(ordered[ceil(share * len(ordered)) - 1] for share in shares) if ordered else None
