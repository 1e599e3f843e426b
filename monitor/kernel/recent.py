"""Recent stamps: throughput and lag of each node in the last seconds of arrival; SEMANTICS, "Recent figures".

Stamps are counted exactly, lags are sampled: what a second of one node costs is bounded, whatever its traffic. Nothing
of it decides on a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.results import RECENT_SPAN_S, RecentLag
from hopwatch.probes.contract.batch import MetricsStamp, Outcome
from hopwatch.probes.contract.lag_histograms import PackedLags, parse_histogram
from hopwatch.probes.contract.limits import NOT_STAMPED

MAX_BATCH_LAGS: Final = 512
"""Lags that are taken of one batch at most."""
MAX_SECOND_LAGS: Final = 1_024
"""Lags that are kept of one side of a node in a second at least, where there are as many; twice as many at most."""
MAX_SECONDS: Final = 75
"""Seconds that are gathered at once, the last ones: those of the span, and by how much arrivals may be ahead of it."""
MAX_STAMPS: Final = 2**53
"""Stamps of a side of a node in a second at most: a packet may say anything, and sums are not to wrap."""
SIDES: Final = 3
"""What is counted apart: stamps in, stamps out of what passed, and messages that were stopped, filtered or rejected."""
_STOPPED: Final = 2
_SIDES_OF_PACKETS: Final = {
    MetricsStamp.IN: 0,
    MetricsStamp.OUT: 1,
    MetricsStamp.FILTERED: _STOPPED,
    MetricsStamp.REJECTED: _STOPPED,
}
_SECOND_US: Final = 1_000_000
_PERCENTS: Final = (50, 95, 99)

STAMPS: Final = np.dtype([("node", "<u4"), ("side", "u1"), ("second", "<i8"), ("stamps", "<i8"), ("lags", "<i8")])
"""Stamps of a node on one side in a second of arrival, and how many lags are sampled of them."""


class BatchStamps(NamedTuple):
    """Lags in and out of the observations of a batch, and their outcomes, as on the wire: empty or (observations,)."""

    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]


class RecentStamps(NamedTuple):
    """Stamps of some nodes by second of arrival, with samples of their lags.

    ``nodes`` are (stream, node). ``counts`` has the dtype STAMPS; ``lags_us`` has the lags of each of its rows, one
    after the other, and ``weights`` for how many stamps each stands, shape (lags,). ``latest_us`` is the latest arrival
    of any record, 0 without one.
    """

    nodes: tuple[tuple[str, str], ...]
    counts: NDArray[np.void]
    lags_us: NDArray[np.int64]
    weights: NDArray[np.int64]
    latest_us: int = 0


NO_STAMPS: Final = RecentStamps((), np.empty(0, STAMPS), np.empty(0, np.int64), np.empty(0, np.int64))
"""Stamps of nothing."""


class RecentTraffic(NamedTuple):
    """Stamps of a node on one side in the recent span, and their lag; None where no lag is known."""

    stamps: int = 0
    lag_us: RecentLag | None = None


NO_TRAFFIC: Final = (RecentTraffic(),) * SIDES
"""Traffic of a node that stamped nothing."""


@dataclass(slots=True)
class _SecondSample:
    """Stamps of one side of a node in one second, as they are gathered, and every ``stride``-th of their lags."""

    stamps: int = 0
    offered: int = 0
    kept: int = 0
    stride: int = 1
    lags_us: list[NDArray[np.int64]] = field(default_factory=list)
    weights: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, stamps: int, lags_us: NDArray[np.int64], weights: NDArray[np.int64]) -> None:
        """Take stamps and lags of theirs, with for how many stamps each stands."""
        first = -self.offered % self.stride
        self.stamps = min(self.stamps + stamps, MAX_STAMPS)
        self.offered += len(lags_us)
        self.lags_us.append(lags_us[first :: self.stride])
        self.weights.append(weights[first :: self.stride] * self.stride)
        self.kept += len(self.lags_us[-1])
        while self.kept > 2 * MAX_SECOND_LAGS:
            self.stride *= 2
            self.lags_us = [np.concatenate(self.lags_us)[::2]]
            self.weights = [np.concatenate(self.weights)[::2] * 2]
            self.kept = len(self.lags_us[0])


class RecentSampler:
    """Gathers the stamps of batches of the last seconds, in whatever order they come."""

    def __init__(self) -> None:
        """Start empty."""
        self._seconds: dict[int, dict[tuple[str, str, int], _SecondSample]] = {}
        self._newest = 0
        self._latest_us = 0

    def note_arrival(self, arrival_us: int) -> None:
        """Note when a record arrived, whatever it says."""
        self._latest_us = max(self._latest_us, arrival_us)

    def add_batch(self, stream: str, node: str, arrival_us: int, stamps: BatchStamps, *, is_one_sided: bool) -> None:
        """Take the stamps of a batch; at a node that stamps one side, each stands for both."""
        lag_in_us, lag_out_us, outcome = stamps
        place = stream, node, arrival_us
        if is_one_sided:
            lag_in_us = lag_out_us = _fill_missing(lag_in_us, lag_out_us)
        if len(outcome):
            stopped = int(np.count_nonzero((outcome == Outcome.FILTERED) | (outcome == Outcome.REJECTED)))
            lag_in_us = lag_in_us[outcome != Outcome.DEFERRED] if len(lag_in_us) else lag_in_us
            lag_out_us = lag_out_us[outcome == Outcome.PASSED] if len(lag_out_us) else lag_out_us
            if stopped:
                self._add(*place, _STOPPED, stopped, NO_STAMPS.lags_us, NO_STAMPS.weights)
        for side, lags_us in enumerate((lag_in_us, lag_out_us)):
            if not len(lags_us):
                continue
            step = -(-len(lags_us) // MAX_BATCH_LAGS)
            taken_us = lags_us[::step]
            taken_us = taken_us[taken_us != NOT_STAMPED]
            count = len(taken_us) if step == 1 else int(np.count_nonzero(lags_us != NOT_STAMPED))
            if count:
                self._add(*place, side, count, taken_us, np.full(len(taken_us), step, np.int64))

    def add_packet(  # noqa: PLR0913, PLR0917 - a packet, and where it is from
        self, stream: str, node: str, arrival_us: int, stamp: MetricsStamp, count: int, lags: PackedLags
    ) -> None:
        """Take a packet of a node that counts: how many messages it stamped so, and the histogram of their lags."""
        side = _SIDES_OF_PACKETS.get(stamp)
        if side is None or not count:
            return
        of = parse_histogram(lags) if lags and side != _STOPPED else None
        lags_us, weights = (of.lags_us, of.counts) if of else (NO_STAMPS.lags_us, NO_STAMPS.weights)
        self._add(stream, node, arrival_us, side, count, lags_us, weights)

    def _add(  # noqa: PLR0913, PLR0917 - a batch, and where it is from
        self,
        stream: str,
        node: str,
        arrival_us: int,
        side: int,
        stamps: int,
        lags_us: NDArray[np.int64],
        weights: NDArray[np.int64],
    ) -> None:
        second = arrival_us // _SECOND_US
        if second <= self._newest - MAX_SECONDS:
            return
        of_second = self._seconds.get(second)
        if of_second is None:
            of_second = self._seconds[second] = {}
            self._newest = max(self._newest, second)
            for old in [one for one in self._seconds if one <= self._newest - MAX_SECONDS]:
                del self._seconds[old]
        sample = of_second.get((stream, node, side))
        if sample is None:
            sample = of_second[stream, node, side] = _SecondSample()
        sample.add(stamps, lags_us, weights)

    def collect(self) -> RecentStamps:
        """Return what was gathered."""
        gathered = [(second, *of) for second, of_second in self._seconds.items() for of in of_second.items()]
        if not gathered:
            return NO_STAMPS._replace(latest_us=self._latest_us)
        nodes = tuple(dict.fromkeys((stream, node) for _, (stream, node, _), _ in gathered))
        places = {node: place for place, node in enumerate(nodes)}
        rows = [
            (places[stream, node], side, second, one.stamps, one.kept) for second, (stream, node, side), one in gathered
        ]
        return RecentStamps(
            nodes,
            np.array(rows, STAMPS),
            np.concatenate([lags_us for *_, one in gathered for lags_us in one.lags_us]),
            np.concatenate([weights for *_, one in gathered for weights in one.weights]),
            self._latest_us,
        )


def summarize_stamps(parts: Sequence[RecentStamps], through_s: int) -> dict[tuple[str, str], tuple[RecentTraffic, ...]]:
    """Return what each node stamped on each of SIDES in the span of RECENT_SPAN_S seconds up to a second.

    That second is not in it. A percentile is the least lag that is not exceeded by as great a share of the stamps.
    """
    nodes = tuple(dict.fromkeys(node for part in parts for node in part.nodes))
    places = {node: place for place, node in enumerate(nodes)}
    stamps = np.zeros(len(nodes) * SIDES, np.int64)
    chosen = [(np.empty(0, np.int64), NO_STAMPS.lags_us, NO_STAMPS.weights)]
    for part in parts:
        is_recent = (part.counts["second"] >= through_s - RECENT_SPAN_S) & (part.counts["second"] < through_s)
        own = np.array([places[node] for node in part.nodes], np.int64)
        key = own[part.counts["node"]] * SIDES + part.counts["side"]
        np.add.at(stamps, key[is_recent], part.counts["stamps"][is_recent])
        is_sampled = np.repeat(is_recent, part.counts["lags"])
        keys = np.repeat(key, part.counts["lags"])
        chosen.append((keys[is_sampled], part.lags_us[is_sampled], part.weights[is_sampled]))
    lags = _find_percentiles(len(stamps), *(np.concatenate(column) for column in zip(*chosen, strict=True)))
    traffic = [RecentTraffic(*of_side) for of_side in zip(stamps.tolist(), lags, strict=True)]
    return {node: tuple(traffic[place * SIDES : (place + 1) * SIDES]) for node, place in places.items()}


def _fill_missing(lags_us: NDArray[np.int64], others_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lags, and those of the other side where there are none."""
    if not len(lags_us) or not len(others_us):
        return lags_us if len(lags_us) else others_us
    return np.where(lags_us == NOT_STAMPED, others_us, lags_us)


def _find_percentiles(
    size: int, keys: NDArray[np.int64], lags_us: NDArray[np.int64], weights: NDArray[np.int64]
) -> list[RecentLag | None]:
    """Return the percentiles of the lags of each key, of 0 to ``size``; None of one that has none."""
    order = np.lexsort((lags_us, keys))
    lags_us, passed = lags_us[order], np.cumsum(weights[order])
    ends = np.searchsorted(keys[order], np.arange(size), "right")
    totals = np.append(0, passed)[ends]
    before = np.append(0, totals[:-1])
    ranks = before[:, None] + ((totals - before)[:, None] * np.array(_PERCENTS) + 99) // 100
    found = np.minimum(np.searchsorted(passed, ranks), ends[:, None] - 1)
    return [
        RecentLag(*lags_us[at].tolist()) if total else None
        for at, total in zip(found, (totals - before).tolist(), strict=True)
    ]
