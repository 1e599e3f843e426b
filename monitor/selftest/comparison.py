"""Comparison of a window of the self-test as it was measured with the minute as it was injected. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hopwatch.monitor.results import NodeResult, Quantiles, WindowResult
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.texts import loss_bounds

MAX_LATE_US: Final = 10_000_000
"""How late stamps may be before the monitor counts as paused."""
LAG_TOLERANCE_US: Final = 20_000
"""Difference of a lag that no clock is blamed for."""


class ProblemKind(StrEnum):
    """Kind of difference between what was injected and what was measured."""

    MISSED_LOSS = "missed loss"
    FALSE_LOSS = "false loss"
    OPEN_BOUNDS = "open bounds"
    WRONG_COUNT = "wrong count"
    WRONG_LAG = "wrong lag"
    NOT_JUDGED = "not judged"
    PAUSED = "paused"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class SelftestProblem:
    """A difference, in words."""

    kind: ProblemKind
    text: str


@dataclass(frozen=True, slots=True)
class SelftestOutcome:
    """Outcome of a minute: how many messages were lost, found as missing, and surely lost by mistake; the problems."""

    lost: int
    found: int
    false: int
    problems: tuple[SelftestProblem, ...]


def compare_minute(
    injected: InjectedMinute, result: WindowResult | None, listed: Mapping[str, frozenset[bytes]]
) -> SelftestOutcome:
    """Compare a minute with its window; ``listed`` are the ids that are stored as missing at each node.

    The window is None if it is not there, or not final.
    """
    lost = injected.lost_ids
    disturbed = tuple(_find_disturbances(injected))
    if not injected.known:
        return SelftestOutcome(0, 0, 0, disturbed)
    if result is None:
        told = SelftestProblem(ProblemKind.NOT_JUDGED, "the window is not judged")
        return SelftestOutcome(len(lost), 0, 0, (*disturbed, told))
    found = lost & frozenset().union(*listed.values())
    false = sum(_count_false(node, injected, listed) for node in result.nodes)
    problems = [
        *disturbed,
        *_find_missed(injected, listed),
        *_find_false(injected, result, false),
    ]
    if injected.is_exact:
        problems += _find_open_bounds(injected, result)
        problems += _find_wrong_counts(injected, result)
        problems += _find_wrong_lags(injected, result)
    return SelftestOutcome(len(lost), len(found), false, tuple(problems))


def _find_disturbances(injected: InjectedMinute) -> Iterator[SelftestProblem]:
    if injected.late_us > MAX_LATE_US:
        told = f"the monitor stood still for {injected.late_us / 1e6:,.1f} s"
        yield SelftestProblem(ProblemKind.PAUSED, told)
    if injected.dropped:
        told = f"its probes could not send, and dropped stamps: {injected.dropped:,}"
        yield SelftestProblem(ProblemKind.DROPPED, told)


def _find_missed(injected: InjectedMinute, listed: Mapping[str, frozenset[bytes]]) -> Iterator[SelftestProblem]:
    """Yield the losses that are not listed: at their node or, where a probe died, at any."""
    everywhere = frozenset().union(*listed.values())
    for node, ids in injected.lost.items():
        missed = set(ids) - (listed.get(node, frozenset()) if injected.is_exact else everywhere)
        if missed:
            example = min(missed).hex()
            told = f"{len(missed):,} of {len(ids):,} messages lost at {node} are not missing there, such as {example}"
            yield SelftestProblem(ProblemKind.MISSED_LOSS, told)


def _count_false(node: NodeResult, injected: InjectedMinute, listed: Mapping[str, frozenset[bytes]]) -> int:
    """Return how many messages are surely lost at a node by the monitor alone."""
    truly = listed.get(node.node, frozenset()) & injected.lost_ids
    return max(0, node.loss_lower - len(truly))


def _find_false(injected: InjectedMinute, result: WindowResult, false: int) -> Iterator[SelftestProblem]:
    if false:
        told = f"called surely lost at a node, though not lost there: {false:,}"
        yield SelftestProblem(ProblemKind.FALSE_LOSS, told)
    lost = len(injected.lost_ids)
    if result.lost_lower > lost:
        told = f"called surely lost end to end: {result.lost_lower:,}, lost: {lost:,}"
        yield SelftestProblem(ProblemKind.FALSE_LOSS, told)


def _find_open_bounds(injected: InjectedMinute, result: WindowResult) -> Iterator[SelftestProblem]:
    """Yield the bounds that are open, or exclude what was lost."""
    places = [("end to end", (result.lost_lower, result.lost_upper), result.lost, len(injected.lost_ids))]
    for node in result.nodes:
        bounds = node.loss_lower, node.loss_upper
        places.append((f"at {node.node}", bounds, node.loss, len(injected.lost.get(node.node, ()))))
    for place, (lower, upper), loss, lost in places:
        if upper is None or lower != upper or upper < lost:
            told = f"the loss {place} is {loss_bounds.format_bounds(loss, lower, upper)}, and lost were {lost:,}"
            reasons = f" ({'; '.join(result.reasons)})" if result.reasons else ""
            yield SelftestProblem(ProblemKind.OPEN_BOUNDS, told + reasons)


def _find_wrong_counts(injected: InjectedMinute, result: WindowResult) -> Iterator[SelftestProblem]:
    names = ("known", "delivered", "filtered", "rejected")
    counts = [(name, getattr(injected, name), getattr(result, name)) for name in names]
    counts += [("lost", len(injected.lost_ids), result.lost)]
    for node in result.nodes:
        counts.append((f"lost at {node.node}", len(injected.lost.get(node.node, ())), node.loss))
        counts.append((f"duplicates at {node.node}", injected.duplicates.get(node.node, 0), node.duplicates_in))
    for name, expected, measured in counts:
        if expected != measured:
            told = f"{name}: injected were {expected:,}, measured {measured:,}"
            yield SelftestProblem(ProblemKind.WRONG_COUNT, told)


def _find_wrong_lags(injected: InjectedMinute, result: WindowResult) -> Iterator[SelftestProblem]:
    for node in result.nodes:
        for side, lag in (("in", node.lag_in_us), ("out", node.lag_out_us)):
            figures = injected.lags.get(f"{node.node}.{side}", {})
            for name, (low_us, high_us) in figures.items():
                measured_us = _read_figure(lag, name)
                if not low_us - LAG_TOLERANCE_US <= measured_us <= high_us + LAG_TOLERANCE_US:
                    told = f"the {name} of the lag {side} at {node.node} is {measured_us / 1e3:,.1f} ms, and was "
                    yield SelftestProblem(
                        ProblemKind.WRONG_LAG, f"{told}{low_us / 1e3:,.1f} to {high_us / 1e3:,.1f} ms"
                    )


def _read_figure(lag: Quantiles | None, name: str) -> int:
    return 0 if lag is None else int(getattr(lag, name))
