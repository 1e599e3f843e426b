"""Deadlines of nodes, learnt from the times that messages took in windows that are final; SEMANTICS, "Overdue"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.pathway import Pathway

SHARE: Final = 0.999
"""Share of the messages whose times a learnt deadline covers."""
MIN_MESSAGES: Final = 1_000
"""Fewer messages say nothing of one in a thousand."""
QUANTILE_SHARES: Final = (0.5, 0.95, 0.99, 1.0)
"""Shares of a window's messages that took at most each of the times of :class:`WindowTimes`."""
_SECOND_US: Final = 1_000_000


class WindowTimes(NamedTuple):
    """Times of messages on an edge or inside a node, window by window.

    ``messages`` are estimated numbers, shape (windows,); ``times_us`` are p50, p95, p99 and maximum of each window,
    shape (windows, 4).
    """

    messages: NDArray[np.float64]
    times_us: NDArray[np.int64]


class SlowestPart(NamedTuple):
    """Part of a path that decides a deadline: from ``source`` to ``target``, which are equal for the time inside."""

    source: str
    target: str
    messages: int
    time_us: int


class LearntDeadline(NamedTuple):
    """Deadline of a node, and the part of the path that decides it; or both None, and the obstacle."""

    node: str
    deadline_us: int | None
    slowest: SlowestPart | None
    obstacle: str = ""


def bound_time_us(times: WindowTimes, share: float = SHARE) -> int:
    """Return a time that at least ``share`` of the messages took at most: the shortest that the figures prove.

    Of each window no more is known than its p50, p95, p99 and maximum. So the time is at least the quantile of all
    messages together, and at most their maximum.
    """
    known = np.diff(QUANTILE_SHARES, prepend=0.0) * times.messages[:, None]
    order = np.argsort(times.times_us, axis=None, kind="stable")
    covered = np.cumsum(known.ravel()[order])
    place = np.searchsorted(covered, share * covered[-1])
    return int(times.times_us.ravel()[order][place])


def learn_deadlines(
    pathway: Pathway, times: Mapping[tuple[str, str], WindowTimes], floor_us: int, transit_us: int
) -> Iterator[LearntDeadline]:
    """Yield the deadline of each node at which a message can be missing, in the order of the path.

    ``times`` are by source and target. A deadline covers the way to the node, its inside, and from a branch the way
    onward: of each of these 99.9 % of the messages took no longer. It is in whole seconds, at least ``floor_us``, and
    at most ``transit_us``.
    """
    for place, node in enumerate(pathway.nodes):
        parts = list(_list_parts(pathway, place))
        if parts:
            yield _learn_deadline(pathway, node, parts, times, (floor_us, transit_us))


def _list_parts(pathway: Pathway, place: int) -> Iterator[tuple[int, int]]:
    yield from ((source, place) for source in np.flatnonzero(pathway.edges[:, place]).tolist())
    if pathway.stamps[place] == "both":
        yield place, place
    yield from ((place, target) for group in pathway.branches if group.source == place for target in group.targets)


def _learn_deadline(
    pathway: Pathway,
    node: str,
    parts: list[tuple[int, int]],
    times: Mapping[tuple[str, str], WindowTimes],
    limits_us: tuple[int, int],
) -> LearntDeadline:
    floor_us, transit_us = limits_us
    found = []
    for source, target in parts:
        names = pathway.nodes[source], pathway.nodes[target]
        if source != target and (pathway.stamps[source] == "in" or pathway.stamps[target] == "out"):
            return LearntDeadline(node, None, None, f"the time from {names[0]} to {names[1]} is not stamped")
        if names in times:
            timed = times[names]
            found.append(SlowestPart(*names, round(timed.messages.sum()), bound_time_us(timed)))
    most = max((one.messages for one in found), default=0)
    if most < MIN_MESSAGES:
        return LearntDeadline(node, None, None, f"{most:,} messages were timed, {MIN_MESSAGES:,} are needed")
    slowest = max(found, key=lambda one: one.time_us)
    deadline_us = max(floor_us, -(-slowest.time_us // _SECOND_US) * _SECOND_US)
    if deadline_us > transit_us:
        return LearntDeadline(node, None, slowest, "it would be longer than transit")
    return LearntDeadline(node, deadline_us, slowest)
