"""Finding of what saturates: the first point of the pathway behind which messages wait, and for what. Pure.

The lag at the points of a pathway, the way in and the way out of each node in order, only adds up. Where it begins to
grow at a rate that the stream does not hold, the stream takes less than it is offered: at the way in of a node the
queue before it grows, as the node is too slow; at its way out what waits is inside. Without a growth the point that
adds most to the lag is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.rate.growth import LagGrowth, find_growth
from hopwatch.rate.intervals import SLICES
from hopwatch.rate.processor_use import ProcessorUse

BUSY_PROCESS: Final = 0.85
"""Share of one processor from which a process is bound by it; an interpreter with one lock uses no more than one."""
MIN_MESSAGES: Final = SLICES * 2
RECEIVER: Final = "receiver"
"""The end of the stream, where the rating receives messages."""


class Side(StrEnum):
    """Side of a node."""

    IN = "in"
    OUT = "out"


class SaturationCause(StrEnum):
    """Cause for which a node takes no more."""

    PROCESSOR = "processor"
    MACHINE = "machine"
    """Its processes could compute, and have no processor: the machine is busy, with others too."""
    WAITING = "waiting"
    """Its processes are idle: they wait for an answer, a lock, or their source."""
    UNKNOWN = "unknown"


class PointLag(NamedTuple):
    """Lag at a point of the pathway, by messages in order of their event times."""

    node: str
    side: Side
    due_s: NDArray[np.float64]
    lags_s: NDArray[np.float64]


class PointFigures(NamedTuple):
    """Figures of a point: p95 of its lag and its growth; None without enough messages."""

    node: str
    side: Side
    messages: int
    p95_s: float | None
    growth: LagGrowth | None


class Saturation(NamedTuple):
    """Node that saturates; without a node it is not known. ``grows`` tells whether its lag grows."""

    node: str | None
    side: Side | None
    grows: bool
    cause: SaturationCause
    use: ProcessorUse | None
    """Processor use of the busiest process of the node; None if it is not known."""


def measure_point(point: PointLag) -> PointFigures:
    """Measure a point."""
    count = int(point.lags_s.size)
    if count < MIN_MESSAGES:
        return PointFigures(point.node, point.side, count, None, None)
    order = np.argsort(point.due_s, kind="stable")
    growth = find_growth(point.due_s[order], point.lags_s[order])
    return PointFigures(point.node, point.side, count, float(np.quantile(point.lags_s, 0.95)), growth)


def find_saturation(points: Sequence[PointFigures], uses: Mapping[str, ProcessorUse]) -> Saturation:
    """Find what saturates, by the points in order of the pathway and processor use by node."""
    known = [point for point in points if point.p95_s is not None and point.growth is not None]
    if not any(point.node != RECEIVER for point in known):
        return Saturation(None, None, False, SaturationCause.UNKNOWN, None)  # noqa: FBT003 - as named
    grown = next((point for point in known if point.growth is not None and point.growth.is_growing), None)
    worst = grown or _find_greatest_addition(known)
    use = uses.get(worst.node)
    return Saturation(worst.node, worst.side, grown is not None, _find_cause(use), use)


def _find_greatest_addition(points: Sequence[PointFigures]) -> PointFigures:
    before_s, found, most_s = 0.0, points[0], float("-inf")
    for point in points:
        p95_s = point.p95_s or 0.0
        if p95_s - before_s > most_s:
            found, most_s = point, p95_s - before_s
        before_s = max(before_s, p95_s)
    return found


def _find_cause(use: ProcessorUse | None) -> SaturationCause:
    if use is None:
        return SaturationCause.UNKNOWN
    if use.used >= BUSY_PROCESS:
        return SaturationCause.PROCESSOR
    return SaturationCause.MACHINE if use.used + use.waited >= BUSY_PROCESS else SaturationCause.WAITING
