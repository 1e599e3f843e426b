"""Inputs of alert rules: a final window with its digests, and queries about earlier windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hopwatch.monitor.kernel.count_lags import CountLags
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import WindowResult


class ObjectiveCounts(NamedTuple):
    """Messages that an objective counted, and how many of them were bad."""

    total: int
    bad: int


class DeferredMessages(NamedTuple):
    """Messages that wait for a later try, and the start of the oldest window that has some; None without any."""

    messages: int = 0
    oldest_us: int | None = None


class LagPoint(NamedTuple):
    """p95 of the lags of a node in a window, µs; None where none is known.

    ``stamps`` are those of the side that has more.
    """

    start_us: int
    lag_in_us: float | None
    lag_out_us: float | None
    stamps: int = 0


@dataclass(frozen=True, slots=True)
class SeriesOutlier:
    """Value of a series that the outlier detector did not expect.

    ``score`` is its rarity, as -log10 of its probability; ``low`` and ``high`` bound the expected values, in the unit
    of the quantity, and are null if they are not known. Every window of an outlier episode has it, with the figures of
    the window in which the episode became an outlier.
    """

    quantity: str
    observed: float
    low: float | None
    high: float | None
    score: float


@dataclass(frozen=True, slots=True)
class WindowInput:
    """A window for the rules, final, overdue or late: its result, its nodes' digests, and some of its ids.

    ``lags`` are the digests of its nodes in order, ``lost_ids`` some lost ids of each node. ``outliers`` are by node; a
    node that is missing there was not scored. ``count_lags`` are the digests of the nodes that only count, in order.
    ``explanations`` are the burst and the likely cause of what is missing at a node, in words, ``lag_explanations`` the
    likely cause of its greatest lags.
    """

    result: WindowResult
    lags: tuple[NodeLags, ...] = ()
    lost_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outliers: Mapping[str, tuple[SeriesOutlier, ...]] = field(default_factory=dict)
    count_lags: tuple[CountLags, ...] = ()
    explanations: Mapping[str, str] = field(default_factory=dict)
    lag_explanations: Mapping[str, str] = field(default_factory=dict)


class PastWindows(Protocol):
    """Queries about other windows, those that this batch has written included."""

    def sum_counts(self, stream: str, objective: str, from_us: int, to_us: int) -> ObjectiveCounts:
        """Return the sums over the windows that start in ``[from_us, to_us)``."""

    def find_last_bad_us(self, stream: str, objective: str) -> int | None:
        """Return the start of the newest window in which a message was bad; none where there is none."""

    def sum_deferred(self, stream: str, from_us: int, to_us: int) -> DeferredMessages:
        """Return the messages that wait for a later try in the windows that start in ``[from_us, to_us)``."""

    def read_lags(self, stream: str, from_us: int, to_us: int) -> Mapping[str, Sequence[LagPoint]]:
        """Return the lags of each node in the windows that start in ``[from_us, to_us)``, in order of time."""

    def count_set_aside(self, from_us: int, to_us: int) -> int:
        """Return how many records set aside arrived in ``[from_us, to_us)``."""

    def find_selftest_failures(self, from_us: int, to_us: int) -> Sequence[str]:
        """Return a problem of each minute of the self-test that failed in ``[from_us, to_us)``, the newest first."""

    def find_last_window_us(self, stream: str) -> int | None:
        """Return the start of the newest window in which a batch of the stream fell; none before the first."""
