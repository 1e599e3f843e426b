"""Recent stamps: throughput and lag of each node in the last seconds of arrival; SEMANTICS, "Recent figures".

Stamps are counted exactly, lags and messages are sampled: what a second of one node costs is bounded, whatever its
traffic. Nothing of it decides on a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.masks import fold
from hopwatch.monitor.kernel.recent_messages import (
    NO_SIGHTINGS,
    EdgeTimes,
    MessageSample,
    build_sightings,
    keep_smallest,
    order_by_place,
)
from hopwatch.monitor.results import RECENT_SPAN_S, RecentEdge, RecentLag
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
_NO_LAG: Final = np.array([NOT_STAMPED], "<i8").tobytes()
_PASSED: Final = bytes([Outcome.PASSED])
_SECOND_US: Final = 1_000_000
_PERCENTS: Final = (50, 95, 99)

STAMPS: Final = np.dtype([("node", "<u4"), ("side", "u1"), ("second", "<i8"), ("stamps", "<i8"), ("lags", "<i8")])
"""Stamps of a node on one side in a second of arrival, and how many lags are sampled of them."""

Packed = bytes | memoryview
"""A packed field of a record."""


class BatchStamps(NamedTuple):
    """Ids, lags in and out, and outcomes of the observations of a batch, packed as on the wire.

    All but the ids may be empty.
    """

    message_ids: Packed
    lag_in_us: Packed
    lag_out_us: Packed
    outcome: Packed


class RecentStamps(NamedTuple):
    """Stamps of some nodes by second of arrival, with samples of their lags.

    ``nodes`` are (stream, node). ``counts`` has the dtype STAMPS; ``lags_us`` has the lags of each of its rows, one
    after the other, and ``weights`` for how many stamps each stands, shape (lags,). ``sightings``, of dtype SIGHTINGS,
    are of the sampled messages. ``latest_us`` is the latest arrival of any record, 0 without one.
    """

    nodes: tuple[tuple[str, str], ...]
    counts: NDArray[np.void]
    lags_us: NDArray[np.int64]
    weights: NDArray[np.int64]
    sightings: NDArray[np.void] = NO_SIGHTINGS
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


@dataclass(slots=True)
class _Second:
    """Samples of one second: of each side of a node, and of its messages."""

    sides: dict[tuple[str, str, int], _SecondSample] = field(default_factory=dict)
    messages: dict[tuple[str, str], MessageSample] = field(default_factory=dict)


@dataclass(slots=True)
class _SmallBatches:
    """Small batches of a node that arrived in one second, one after the other, with nothing left out."""

    observations: int = 0
    stamps: list[BatchStamps] = field(default_factory=list)

    def add(self, stamps: BatchStamps, count: int) -> None:
        """Take a batch of so many observations."""
        self.observations += count
        # As bytes: a view would keep all of the record's segment.
        self.stamps.append(BatchStamps(*map(bytes, _fill_fields(stamps, count))))


class RecentSampler:
    """Gathers the stamps of batches of the last seconds, in whatever order they come."""

    def __init__(self) -> None:
        """Start empty."""
        self._seconds: dict[int, _Second] = {}
        self._small: dict[tuple[int, str, str, bool], _SmallBatches] = {}
        self._newest = 0
        self._latest_us = 0

    def note_arrival(self, arrival_us: int) -> None:
        """Note when a record arrived, whatever it says."""
        self._latest_us = max(self._latest_us, arrival_us)

    def add_batch(  # noqa: PLR0913 - a batch, and where it is from
        self, stream: str, node: str, arrival_us: int, stamps: BatchStamps, count: int, *, is_one_sided: bool
    ) -> None:
        """Take the stamps of a batch of so many observations; at a node that stamps one side, each stands for both."""
        second = arrival_us // _SECOND_US
        if count > MAX_BATCH_LAGS:
            whole = [_fill_fields(stamps, count)]
            self._add_stamps(stream, node, second, whole, -(-count // MAX_BATCH_LAGS), is_one_sided=is_one_sided)
            return
        # Arrays of a few numbers each cost more than the rest of the record: the bytes are joined first.
        key = second, stream, node, is_one_sided
        small = self._small.get(key)
        if small is None:
            small = self._small[key] = _SmallBatches()
        small.add(stamps, count)
        if small.observations > 2 * MAX_SECOND_LAGS:
            del self._small[key]
            self._add_stamps(stream, node, second, small.stamps, 1, is_one_sided=is_one_sided)

    def _add_stamps(  # noqa: PLR0913 - batches, and where they are from
        self, stream: str, node: str, second: int, stamps: Sequence[BatchStamps], step: int, *, is_one_sided: bool
    ) -> None:
        """Count the stamps of batches, take each lag of so many, and sample their messages."""
        *sides_us, is_stopped = _read_stamps(stamps, np.array(is_one_sided))
        of_second = self._open_second(second)
        if of_second is not None:
            of_second.messages.setdefault((stream, node), MessageSample()).add(_hash_ids(stamps), *sides_us)
        for side, lags_us in enumerate(sides_us):
            taken_us = lags_us[::step]
            taken_us = taken_us[taken_us != NOT_STAMPED]
            count = len(taken_us) if step == 1 else int(np.count_nonzero(lags_us != NOT_STAMPED))
            if count:
                self._add(stream, node, second, side, count, taken_us, np.full(len(taken_us), step, np.int64))
        if stopped := int(np.count_nonzero(is_stopped)):
            self._add(stream, node, second, _STOPPED, stopped, NO_STAMPS.lags_us, NO_STAMPS.weights)

    def add_packet(  # noqa: PLR0913, PLR0917 - a packet, and where it is from
        self, stream: str, node: str, arrival_us: int, stamp: MetricsStamp, count: int, lags: PackedLags
    ) -> None:
        """Take a packet of a node that counts: how many messages it stamped so, and the histogram of their lags."""
        side = _SIDES_OF_PACKETS.get(stamp)
        if side is None or not count:
            return
        of = parse_histogram(lags) if lags and side != _STOPPED else None
        lags_us, weights = (of.lags_us, of.counts) if of else (NO_STAMPS.lags_us, NO_STAMPS.weights)
        self._add(stream, node, arrival_us // _SECOND_US, side, count, lags_us, weights)

    def _add(  # noqa: PLR0913, PLR0917 - a batch, and where it is from
        self,
        stream: str,
        node: str,
        second: int,
        side: int,
        stamps: int,
        lags_us: NDArray[np.int64],
        weights: NDArray[np.int64],
    ) -> None:
        of_second = self._open_second(second)
        if of_second is not None:
            of_second.sides.setdefault((stream, node, side), _SecondSample()).add(stamps, lags_us, weights)

    def _open_second(self, second: int) -> _Second | None:
        """Return what is gathered of a second; None of one that is too old by now."""
        if second <= self._newest - MAX_SECONDS:
            return None
        of_second = self._seconds.get(second)
        if of_second is None:
            of_second = self._seconds[second] = _Second()
            self._newest = max(self._newest, second)
            for old in [one for one in self._seconds if one <= self._newest - MAX_SECONDS]:
                del self._seconds[old]
        return of_second

    def collect(self) -> RecentStamps:
        """Return what was gathered."""
        after = max([self._newest, *(second for second, *_ in self._small)]) - MAX_SECONDS
        small = {key: one for key, one in self._small.items() if key[0] > after}
        seconds = [(second, of_second) for second, of_second in self._seconds.items() if second > after]
        sampled = [(second, *of) for second, of_second in seconds for of in of_second.sides.items()]
        # A node with sampled messages has stamps.
        places = _number_nodes([*(key[:2] for _, key, _ in sampled), *(key[1:3] for key in small)])
        rows = [
            (places[stream, node], side, second, one.stamps, one.kept) for second, (stream, node, side), one in sampled
        ]
        counts, lags_us, sightings = _count_small(small, places)
        sightings = keep_smallest(np.concatenate([sightings, *_place_sightings(seconds, places)]))
        return RecentStamps(
            tuple(places),
            np.concatenate([np.array(rows, STAMPS), counts]),
            np.concatenate([*(part for *_, one in sampled for part in one.lags_us), lags_us]),
            np.concatenate([*(part for *_, one in sampled for part in one.weights), np.ones(len(lags_us), np.int64)]),
            sightings,
            self._latest_us,
        )


def _number_nodes(named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the place of each of some nodes, by first mention."""
    return {node: place for place, node in enumerate(dict.fromkeys(named))}


def _place_sightings(
    seconds: Iterable[tuple[int, _Second]], places: Mapping[tuple[str, str], int]
) -> Iterator[NDArray[np.void]]:
    """Yield the sightings of samples, with their nodes and seconds."""
    for second, of_second in seconds:
        for node, sample in of_second.messages.items():
            if sample.kept:
                sightings = np.concatenate(sample.parts)
                sightings["second"], sightings["node"] = second, places[node]
                yield sightings


def _count_small(
    small: Mapping[tuple[int, str, str, bool], _SmallBatches], places: Mapping[tuple[str, str], int]
) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.void]]:
    """Return the stamps of small batches, of dtype STAMPS, all their lags, and their sightings."""
    key = np.repeat(np.arange(len(small)), [one.observations for one in small.values()])
    is_one_sided = np.array([key[-1] for key in small], bool)[key]
    stamps = [one for of in small.values() for one in of.stamps]
    lag_in_us, lag_out_us, is_stopped = _read_stamps(stamps, is_one_sided)
    chosen = lag_in_us != NOT_STAMPED, lag_out_us != NOT_STAMPED, is_stopped
    counts = np.zeros((SIDES, len(small)), STAMPS)
    node = np.array([places[stream, node] for _, stream, node, _ in small], np.int64)
    second = np.array([second for second, *_ in small], np.int64)
    counts["node"], counts["second"] = node, second
    counts["side"] = np.arange(SIDES)[:, None]
    counts["stamps"] = [np.bincount(key[is_chosen], minlength=len(small)) for is_chosen in chosen]
    counts["lags"][:_STOPPED] = counts["stamps"][:_STOPPED]
    seen = np.flatnonzero(chosen[0] | chosen[1])
    sightings = build_sightings(_hash_ids(stamps)[seen], lag_in_us[seen], lag_out_us[seen])
    sightings["node"], sightings["second"] = node[key[seen]], second[key[seen]]
    return counts[counts["stamps"] > 0], np.concatenate([lag_in_us[chosen[0]], lag_out_us[chosen[1]]]), sightings


def summarize_stamps(parts: Sequence[RecentStamps], through_s: int) -> dict[tuple[str, str], tuple[RecentTraffic, ...]]:
    """Return what each node stamped on each of SIDES in the span of RECENT_SPAN_S seconds up to a second.

    That second is not in it. A percentile is the least lag that is not exceeded by as great a share of the stamps.
    """
    places = _number_nodes(node for part in parts for node in part.nodes)
    stamps = np.zeros(len(places) * SIDES, np.int64)
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


def summarize_edges(times: EdgeTimes) -> dict[str, list[RecentEdge]]:
    """Return the recent times on the edges of each stream, in their order; an edge without a message is left out."""
    lags_us = _find_percentiles(len(times.edges), times.edge, times.times_us, np.ones_like(times.times_us))
    messages = np.bincount(times.edge, minlength=len(times.edges)).tolist()
    found: dict[str, list[RecentEdge]] = {}
    for (stream, source, node), count, time_us in zip(times.edges, messages, lags_us, strict=True):
        if time_us is not None:
            found.setdefault(stream, []).append(RecentEdge(source, node, count, time_us))
    return found


def _fill_fields(stamps: BatchStamps, count: int) -> BatchStamps:
    """Return the stamps of a batch of so many observations with no field empty."""
    ids, lag_in_us, lag_out_us, outcome = stamps
    return BatchStamps(ids, lag_in_us or _NO_LAG * count, lag_out_us or _NO_LAG * count, outcome or _PASSED * count)


def _hash_ids(stamps: Sequence[BatchStamps]) -> NDArray[np.uint64]:
    """Return the hash of the id of each observation, shape (observations,)."""
    return fold(np.frombuffer(_join_packed([one.message_ids for one in stamps]), "<u8").reshape(-1, 2))


def _join_packed(parts: Sequence[Packed]) -> Packed:
    """Return a field of several batches; that of one is not copied."""
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_stamps(
    stamps: Sequence[BatchStamps], is_one_sided: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return lag in and lag out of each observation, NOT_STAMPED where it has none, and whether it was stopped.

    What is deferred has no lag in, and what did not pass no lag out; at a node that stamps one side, each lag stands
    for both. Shape (observations,).
    """
    lag_in_us, lag_out_us = (
        np.frombuffer(_join_packed(column), "<i8")
        for column in ([one.lag_in_us for one in stamps], [one.lag_out_us for one in stamps])
    )
    outcome = np.frombuffer(_join_packed([one.outcome for one in stamps]), np.uint8)
    if np.any(is_one_sided):
        sides_us = lag_in_us, lag_out_us
        lag_in_us = np.where(is_one_sided & (lag_in_us == NOT_STAMPED), sides_us[1], sides_us[0])
        lag_out_us = np.where(is_one_sided & (lag_out_us == NOT_STAMPED), sides_us[0], sides_us[1])
    is_stopped = np.zeros(len(outcome), bool)
    if outcome.any():
        is_stopped = (outcome == Outcome.FILTERED) | (outcome == Outcome.REJECTED)
        lag_in_us = np.where(outcome == Outcome.DEFERRED, NOT_STAMPED, lag_in_us)
        lag_out_us = np.where(outcome == Outcome.PASSED, lag_out_us, NOT_STAMPED)
    return lag_in_us, lag_out_us, is_stopped


def _find_percentiles(
    size: int, keys: NDArray[np.int64], lags_us: NDArray[np.int64], weights: NDArray[np.int64]
) -> list[RecentLag | None]:
    """Return the percentiles of the lags of each key, of 0 to ``size``; None of one that has none."""
    order = order_by_place(keys, lags_us)
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
