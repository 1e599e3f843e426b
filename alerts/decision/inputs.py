"""What alerts are decided from: a final window with what goes with it, and what was before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import WindowResult


class ObjectiveCounts(NamedTuple):
    """How many messages an objective counted, and how many of them were bad."""

    total: int
    bad: int


@dataclass(frozen=True, slots=True)
class SeriesOutlier:
    """What a detector says of one value of a series: that it is none of what was expected.

    ``score`` is how rare it is, as -log10 of its chance; ``low`` and ``high`` bound what was expected, in the unit of
    the quantity, and are null where that is not known. It is said of every window of an episode, for as long as that
    lasts, with the figures of the window in which the episode became an outlier.
    """

    quantity: str
    observed: float
    low: float | None
    high: float | None
    score: float


@dataclass(frozen=True, slots=True)
class WindowInput:
    """One window as it was judged: its figures, the digests of its nodes in order, and some lost ids of each node.

    ``outliers`` are by node; at a node that is not named nobody has looked, which says nothing.
    """

    result: WindowResult
    lags: tuple[NodeLags, ...] = ()
    lost_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outliers: Mapping[str, tuple[SeriesOutlier, ...]] = field(default_factory=dict)


class PastWindows(Protocol):
    """What the store knows of other windows; what this batch has written is in it."""

    def counts(self, stream: str, objective: str, from_us: int, to_us: int) -> ObjectiveCounts:
        """Return the sums over the windows that start in ``[from_us, to_us)``."""

    def last_bad_us(self, stream: str, objective: str) -> int | None:
        """Return the start of the newest window in which a message was bad; none where there is none."""

    def set_aside(self, from_us: int, to_us: int) -> int:
        """Return how many records set aside arrived in ``[from_us, to_us)``."""

    def last_window_us(self, stream: str) -> int | None:
        """Return the start of the newest window in which a batch of the stream fell; none before the first."""
