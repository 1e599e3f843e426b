"""Tally: the summary of a window's observations, or of one shard of it, from which the window is judged.

A few distinct masks with counts, stamps by node, the lag digests, the ids behind a loss and those of the slowest
messages. Tallies of shards merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import deferrals, journeys, labels, masks, naming, relations, servers, slowest, tdigest
from hopwatch.monitor.kernel.deferrals import SeenObservations
from hopwatch.monitor.kernel.journeys import BatchSource, Journeys
from hopwatch.monitor.kernel.label_lags import (
    BatchDepartures,
    LabelLagTally,
    count_departures,
    count_label_lags,
    find_spans,
    merge_label_lags,
)
from hopwatch.monitor.kernel.labels import LabelledBatches, LabelTally, WindowMessages
from hopwatch.monitor.kernel.last_sightings import (
    NOTHING_MISSING,
    ArrivedObservations,
    LastSightings,
    MissingMessages,
    count_last_sightings,
    find_missing,
    merge_last_sightings,
)
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.naming import BatchIds, Names
from hopwatch.monitor.kernel.observed_batches import (
    LaidBatches,
    ObservedBatch,
    OffsetReader,
    UniformBatches,
    concatenate,
    join_batches,
)
from hopwatch.monitor.kernel.relations import Relation, WindowStamps
from hopwatch.monitor.kernel.seconds import (
    SECOND_US,
    UNKNOWN_OFFSET_US,
    SecondTally,
    WindowSeconds,
    count_seconds,
    merge_second_tallies,
)
from hopwatch.monitor.kernel.servers import ServerIds
from hopwatch.monitor.kernel.sets import classify
from hopwatch.monitor.kernel.slowest import Slowest
from hopwatch.monitor.kernel.stamp_sample import LaidStamps, NodeStamps, StampSample, merge_samples, sample_stamps
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_LOST_IDS
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.fingerprints import mix_ids
from hopwatch.probes.contract.limits import NOT_STAMPED, WINDOW_US

"""Lost ids that a node keeps in a window at most, the first in byte order; others are only counted."""

NEVER_US: Final = deferrals.NEVER_US
ALWAYS_US: Final = deferrals.ALWAYS_US
_HALF_WAY_US: Final = 2**62 - 1


@dataclass(frozen=True, slots=True)
class NodeLags:
    """The digests of one node: lag at arrival, lag at departure, time inside, and displacement on the way to it.

    The last is in messages, and empty where order is not counted.
    """

    lag_in_us: tdigest.Digest
    lag_out_us: tdigest.Digest
    inside_us: tdigest.Digest
    displacement: tdigest.Digest = tdigest.EMPTY


class LostIds(NamedTuple):
    """A node's loss: the first ids in byte order, shape (ids, 2), first sightings, names, journeys, last sightings.

    ``last_us`` is NEVER_US of a message that a node keeps for a later try, and where nobody asks what is overdue.
    """

    message_ids: Ids
    sighted_us: NDArray[np.int64]
    names: Names
    journeys: Journeys
    last_us: NDArray[np.int64]

    def before(self, moment_us: int) -> LostIds:
        """Return those that were first sighted before a moment."""
        chosen = self.sighted_us < moment_us
        return self if chosen.all() else self.taken(chosen)

    def taken(self, chosen: NDArray[Any]) -> LostIds:
        """Return the chosen ones, given as a mask or as places."""
        names, ways = self.names.taken(chosen), self.journeys.taken(chosen)
        return LostIds(self.message_ids[chosen], self.sighted_us[chosen], names, ways, self.last_us[chosen])

    @classmethod
    def from_ids(cls, message_ids: Ids) -> LostIds:
        """Return ids that were settled by the end of their window, and of which no more is known."""
        count = len(message_ids)
        never_us = np.full(count, NEVER_US)
        return cls(message_ids, np.full(count, ALWAYS_US), naming.unknown_names(count), Journeys(), never_us)


@dataclass(frozen=True, slots=True)
class Tally:
    """Summary of the observations of one window.

    ``masks`` has the shape (rows, words), ``counts`` and ``sighted_us`` the shape (rows,): how many messages have the
    row's mask and were first sighted then. Sightings by the end of the window are all ALWAYS_US, so that there are few
    rows. ``stamps`` counts in and out stamps, shape (nodes, 2); ``negative`` those of them with a negative lag, shape
    (nodes,). ``last_first_sighting_us`` is the latest moment after the end of the window at which a message was first
    sighted, 0 without any; what deferrals moved is in ``sighted_us`` alone. ``slowest`` is None where a version took
    the tally that kept no slowest messages. ``deferred`` counts the messages of each node's ``deferred(N)`` and, last,
    those of any node's, shape (nodes + 1,); None for none at all. ``inversions`` are those on the way to each node,
    shape (nodes,); None where order is not counted, as in all shards but one. ``prints`` is the fingerprint of the
    messages of each row, their XOR and their sum, shape (rows, 2); None where no node of the pathway counts.
    ``labels`` and ``label_lags`` are None where no batch has a label; ``servers`` are messages beside nodes that count,
    by names of probes.
    ``missing`` is None where nobody asks what is overdue, ``seconds`` where no node misses a message of the window,
    ``stamp_sample`` where nobody asks for times, or the pathway has one node.
    """

    masks: NDArray[np.uint64]
    counts: NDArray[np.int64]
    sighted_us: NDArray[np.int64]
    stamps: NDArray[np.int64]
    negative: NDArray[np.int64]
    lags: tuple[NodeLags, ...]
    lost_ids: tuple[LostIds, ...]
    last_first_sighting_us: int
    observations: int
    relations: tuple[Relation, ...] = ()
    slowest: tuple[Slowest, ...] | None = None
    deferred: NDArray[np.int64] | None = None
    inversions: NDArray[np.int64] | None = None
    prints: NDArray[np.uint64] | None = None
    labels: LabelTally | None = None
    servers: tuple[ServerIds, ...] = ()
    missing: LastSightings | None = None
    seconds: SecondTally | None = None
    label_lags: LabelLagTally | None = None
    stamp_sample: StampSample | None = None

    @property
    def last_wait_us(self) -> int:
        """The latest sighting that deferrals moved, of those that settle; 0 without any."""
        moved_us = self.sighted_us[(self.sighted_us > self.last_first_sighting_us) & (self.sighted_us < NEVER_US)]
        return int(moved_us.max(initial=0))

    def settled(self, before_us: int) -> NDArray[np.int64]:
        """Return the counts of the messages first sighted before a moment, shape (rows,); the others are in flight."""
        return np.where(self.sighted_us < before_us, self.counts, 0)

    def lost(self, node: int, before_us: int) -> LostIds:
        """Return the ids of a node's loss that were first sighted before a moment."""
        return self.lost_ids[node].before(before_us)


def build_tally(  # noqa: PLR0913, PLR0915 - a window, and what is asked of it
    pathway: Pathway,
    batches: Iterable[ObservedBatch | LaidBatches],
    window_end_us: int,
    terms: WindowPolicy | None = None,
    max_lost_ids: int = MAX_LOST_IDS,
    *,
    keeps_last: bool = False,
    keeps_seconds: bool = False,
    keeps_stamps: bool = True,
) -> Tally:
    """Reduce the observations of the window that ends at ``window_end_us`` to a tally.

    Order and batching change nothing. Without ``terms`` it does not matter until when messages are deferred. The ids of
    each node's loss are kept up to ``max_lost_ids``, and last sightings of what is missing and first stamps if they are
    asked for. By second messages are counted where one is missing, and where others of the window are tallied
    elsewhere, if asked to.
    """
    nodes = len(pathway.nodes)
    alike = join_batches(batches)
    stamps, negative = np.zeros((nodes, 2), np.int64), np.zeros(nodes, np.int64)
    values: list[tuple[list[NDArray[np.int64]], ...]] = [([], [], []) for _ in range(nodes)]
    codes = [_stamp(pathway, part, stamps, values[part.node]) for part in alike]
    lags = tuple(_build_digests(lists, negative, node) for node, lists in enumerate(values))
    ids = _concatenate([part.message_ids for part in alike], (0, 2), np.uint64)
    groups = masks.group_by_id(ids)
    node_of = np.repeat(
        np.array([part.node for part in alike], np.uint8), np.array([len(part.message_ids) for part in alike], np.int64)
    )
    code = _concatenate(codes, (0,), np.uint8)
    words = masks.build_masks(groups, code, node_of, nodes)
    distinct, place = masks.find_distinct(words)
    moments_us, moment = _find_first_sightings(alike, groups, window_end_us)
    sighted_us = moments_us[moment]
    last_first_sighting_us = int(sighted_us.max(initial=0))
    sets = classify(pathway, distinct)
    keys = [(part.node, instance) for part in alike for instance in part.instances]
    counts = _concatenate([part.counts for part in alike], (0,), np.int64)
    said = [said for part in alike for said in part.said]
    sources = [
        BatchSource(pathway.nodes[part.node], *source)
        for part in alike
        for source in zip(part.records, part.rows, strict=True)
    ]
    of = _WindowObservations(ids, groups, counts, said, sources)
    is_deferred, kept = _find_deferred(alike), None
    if is_deferred is not None:
        arrival_us = np.repeat(_concatenate([part.arrival_us for part in alike], (0,), np.int64), counts)
        seen = SeenObservations(node_of, code, arrival_us, groups)
        waiting = deferrals.read_deferrals(is_deferred, counts, sources)
        stamps[:, 0] += deferrals.count_deferred_arrivals(waiting, seen, nodes)
        kept = deferrals.count_deferred(waiting, seen, place, sets.lost_inside)
        if terms is not None:
            sighted_us = deferrals.move_sightings(sighted_us, waiting, seen, window_end_us, terms)
            moments_us, moment = np.unique(sighted_us, return_inverse=True)
    missing = NOTHING_MISSING
    if keeps_last:
        arrivals_us = _concatenate([part.arrival_us for part in alike], (0,), np.int64)
        arrived = ArrivedObservations(arrivals_us, counts, is_deferred, groups)
        missing = find_missing(sets.lost[place], arrived)
    lost = _find_lost_ids(sets.loss, place, (sighted_us, missing), of, max_lost_ids)
    departure_lags_us = [_concatenate(lag_out_us, (0,), np.int64) for _, lag_out_us, _ in values]
    late = _find_slowest(departure_lags_us, node_of, code, of)
    stamped = WindowStamps(keys, counts, code)
    related = relations.find_relations(pathway, stamped, sets, place, groups)
    rows = masks.count_rows(distinct, place, moments_us, moment)
    prints = None
    by_server: tuple[ServerIds, ...] = ()
    if pathway.counting:
        # Only beside nodes that count is there anything to compare with.
        mixed = mix_ids(ids[groups.order[groups.starts]])
        prints = _add_prints(np.stack((mixed, mixed), axis=1), place * len(moments_us) + moment)
        by_server = servers.find_servers(pathway, stamped, groups, mixed)
    labelled = LabelledBatches([node for node, _ in keys], [one for part in alike for one in part.labels], counts)
    by_label = labels.count_labels(
        labelled, WindowMessages(groups, distinct, sets.lost, sets.seen, place, moments_us, moment)
    )
    by_label_lag = None
    if by_label is not None:
        digests = [of_node.lag_out_us for of_node in lags]
        counted = count_departures(departure_lags_us, digests, code & masks.OUT, counts)
        arrivals_us = _concatenate([part.arrival_us for part in alike], (0,), np.int64)
        spans = find_spans(arrivals_us, window_end_us - WINDOW_US)
        by_label_lag = merge_label_lags([count_label_lags(labelled, BatchDepartures(*counted, spans))], by_label.keys)
    by_second = None
    if keeps_seconds or sets.lost.any():
        second = _find_seconds(alike, groups, counts)
        by_second = count_seconds(WindowSeconds(second, distinct, sets.lost, place, moments_us, moment))
    sampled = None
    if keeps_stamps:
        laid = [NodeStamps(part.node, len(part.message_ids), part.lag_in_us, part.lag_out_us) for part in alike]
        sampled = sample_stamps(pathway, LaidStamps(laid, node_of, code), groups)
    return Tally(
        *rows, stamps, negative, lags, lost, last_first_sighting_us, len(ids), related, late, kept,
        prints=prints, labels=by_label, servers=by_server,
        missing=count_last_sightings(distinct, place, missing) if keeps_last else None,
        seconds=by_second, label_lags=by_label_lag,
        stamp_sample=sampled,
    )  # fmt: skip


def instance_name(node: str, probe: str, epoch_us: int) -> str:
    """Return what tells a probe instance from all others of its stream, whatever the probe calls itself."""
    return json.dumps([node, probe, epoch_us])


def _add_prints(prints: NDArray[np.uint64], cell: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Join fingerprints of one cell of :func:`masks.count_rows`, in the order of its rows."""
    filled, which = np.unique(cell, return_inverse=True)
    joined = np.zeros((len(filled), 2), np.uint64)
    np.bitwise_xor.at(joined[:, 0], which, prints[:, 0])
    np.add.at(joined[:, 1], which, prints[:, 1])
    return joined


def merge_tallies(tallies: Sequence[Tally], max_lost_ids: int = MAX_LOST_IDS) -> Tally:
    """Merge the tallies of a window's shards, whose messages are apart; ids of losses are kept up to a limit."""
    if len(tallies) == 1:
        return tallies[0]
    words, place = masks.find_distinct(np.concatenate([tally.masks for tally in tallies]))
    counts, sighted_us = (np.concatenate([getattr(t, name) for t in tallies]) for name in ("counts", "sighted_us"))
    moments_us, moment = np.unique(sighted_us, return_inverse=True)
    prints = [tally.prints for tally in tallies if tally.prints is not None]
    by_label = labels.merge_label_tallies(tally.labels for tally in tallies)
    return Tally(
        *masks.count_rows(words, place, moments_us, moment, counts),
        np.sum([tally.stamps for tally in tallies], axis=0),
        np.sum([tally.negative for tally in tallies], axis=0),
        tuple(_merge_lags(parts) for parts in zip(*(tally.lags for tally in tallies), strict=True)),
        tuple(_merge_lost(parts, max_lost_ids) for parts in zip(*(tally.lost_ids for tally in tallies), strict=True)),
        max(tally.last_first_sighting_us for tally in tallies),
        sum(tally.observations for tally in tallies),
        relations.merge_relations(one for tally in tallies for one in tally.relations),
        _merge_slowest([tally.slowest for tally in tallies]),
        _add_kept([tally.deferred for tally in tallies]),
        _add_kept([tally.inversions for tally in tallies]),
        _add_prints(np.concatenate(prints), place * len(moments_us) + moment) if prints else None,
        by_label,
        servers.merge_servers(one for tally in tallies for one in tally.servers),
        merge_last_sightings(tally.missing for tally in tallies),
        merge_second_tallies(tally.seconds for tally in tallies if tally.observations),
        merge_label_lags((tally.label_lags for tally in tallies), () if by_label is None else by_label.keys),
        merge_samples(tally.stamp_sample for tally in tallies),
    )


@lru_cache(maxsize=1_024)
def empty_tally(pathway: Pathway) -> Tally:
    """Return the tally of a window in which nothing was observed."""
    return build_tally(pathway, (), NEVER_US)


def _stamp(
    pathway: Pathway, part: UniformBatches, stamps: NDArray[np.int64], values: tuple[list[NDArray[np.int64]], ...]
) -> NDArray[np.uint8]:
    """Return the code of each observation, and add its stamps and lags to those of its node."""
    count = len(part.message_ids)
    lag_in, lag_out = part.lag_in_us, part.lag_out_us
    has_in, has_out = _is_stamped(lag_in, count), _is_stamped(lag_out, count)
    inside = has_in & has_out
    if pathway.stamps[part.node] != "both":
        # One stamp stands for both sides; the side that is missing takes the lag of the one that is there.
        lag_in, lag_out = _fill_missing(lag_in, lag_out, has_in), _fill_missing(lag_out, lag_in, has_out)
        has_in = has_out = has_in | has_out
        inside = np.zeros(count, bool)
    passed = part.outcome == Outcome.PASSED if len(part.outcome) else np.ones(count, bool)
    departs, inside = has_out & passed, inside & passed
    code: NDArray[np.uint8] = has_in * np.uint8(masks.IN) + departs * np.uint8(masks.OUT)
    if len(part.outcome):
        # What is deferred is here, and will be stamped again: it counts for sets, and not for lags.
        code |= np.array([0, masks.FILTERED, masks.REJECTED, masks.IN], np.uint8)[part.outcome]
        has_in = has_in & (part.outcome != Outcome.DEFERRED)
    stamps[part.node] += (np.count_nonzero(has_in), np.count_nonzero(departs))
    for lags, chosen, into in ((lag_in, has_in, values[0]), (lag_out, departs, values[1])):
        if len(lags):
            into.append(lags if chosen.all() else lags[chosen])
    if len(lag_in) and len(lag_out):
        values[2].append(_between(*((lag_in, lag_out) if inside.all() else (lag_in[inside], lag_out[inside]))))
    return code


def _find_deferred(alike: list[UniformBatches]) -> NDArray[np.bool_] | None:
    """Return which observations of a window are deferred; None if none is."""
    parts = [part.outcome == Outcome.DEFERRED for part in alike if len(part.outcome)]
    if not any(part.any() for part in parts):
        return None
    return np.concatenate(
        [
            part.outcome == Outcome.DEFERRED if len(part.outcome) else np.zeros(len(part.message_ids), bool)
            for part in alike
        ]
    )


def _between(earlier_us: NDArray[np.int64], later_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time from one to the other; what is beyond 64 bits is the farthest they hold, and never wraps."""
    lags_us = (earlier_us, later_us)
    if earlier_us.size and max(max(-int(us.min()), int(us.max())) for us in lags_us) > _HALF_WAY_US:
        latest_us, soonest_us = np.minimum(earlier_us, 0) + NEVER_US, np.maximum(earlier_us, 0) + ALWAYS_US
        later_us = np.clip(later_us, soonest_us, latest_us)
    return later_us - earlier_us


def _is_stamped(lags: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    return lags != NOT_STAMPED if len(lags) else np.zeros(count, bool)


def _fill_missing(lags: NDArray[np.int64], instead: NDArray[np.int64], given: NDArray[np.bool_]) -> NDArray[np.int64]:
    if not len(lags) or not len(instead):
        return lags if len(lags) else instead
    return np.where(given, lags, instead)


def _build_digests(lists: tuple[list[NDArray[np.int64]], ...], negative: NDArray[np.int64], node: int) -> NodeLags:
    joined = [_concatenate(parts, (0,), np.int64) for parts in lists]
    negative[node] = sum(int(np.count_nonzero(values < 0)) for values in joined[:2])
    return NodeLags(*(tdigest.build(values) for values in joined))


def _find_first_sightings(
    alike: list[UniformBatches], groups: masks.Groups, window_end_us: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return moments, ascending, and for each message the place among them of the earliest arrival of it.

    Shapes (moments,) and (messages,). All arrivals by the end of the window are one moment, ALWAYS_US.
    """
    arrivals_us = _concatenate([part.arrival_us for part in alike], (0,), np.int64)
    moments_us, moment = np.unique(np.where(arrivals_us > window_end_us, arrivals_us, ALWAYS_US), return_inverse=True)
    if len(moments_us) <= 1:
        return moments_us, np.zeros(len(groups.starts), np.uint8)
    # The gather's cost goes with its width.
    narrow = moment.astype(np.min_scalar_type(len(moments_us)))
    of_observation = np.repeat(narrow, np.concatenate([part.counts for part in alike]))
    return moments_us, np.minimum.reduceat(of_observation[groups.order], groups.starts)


def _find_seconds(alike: list[UniformBatches], groups: masks.Groups, counts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the earliest second of the window that an observation of each message tells; shape (messages,).

    It is beyond those of the window where none tells one.
    """
    if not len(groups.starts):
        return np.empty(0, np.uint8)
    readers = [reader for part in alike for reader in zip(part.offset_readers, part.rows, strict=True)]
    offsets_us = [_read_offsets(*reader, count) for reader, count in zip(readers, counts.tolist(), strict=True)]
    second = (_concatenate(offsets_us, (0,), np.uint32) // SECOND_US).astype(np.uint8)
    ordered = second[groups.order]
    is_alike = ordered[1:] == ordered[:-1]
    is_alike[groups.starts[1:] - 1] = True
    # Mostly all observations of a message tell the same: to see that costs a fifth of the least of each.
    return ordered[groups.starts] if is_alike.all() else np.minimum.reduceat(ordered, groups.starts)


def _read_offsets(read: OffsetReader | None, rows: NDArray[np.uint16] | None, count: int) -> NDArray[np.uint32]:
    told = None if read is None else read()
    if told is None or not len(told):
        return np.full(count, UNKNOWN_OFFSET_US, np.uint32)
    return told if rows is None else told[rows]


class _WindowObservations(NamedTuple):
    """All observations of a window, grouped by message, and the ids of each batch."""

    ids: Ids
    groups: masks.Groups
    counts: NDArray[np.int64]
    said: list[BatchIds]
    sources: list[BatchSource]

    def observations(
        self, messages: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return of each observation of some messages which of them it is of, its batch, and its row there."""
        begins = np.cumsum(self.counts) - self.counts
        message, at = masks.find_observations(self.groups, messages)
        batch = np.searchsorted(begins, at, "right") - 1
        return message, batch, at - begins[batch]


def _find_lost_ids(
    loss: NDArray[np.bool_],
    place: NDArray[np.int64],
    sightings: tuple[NDArray[np.int64], MissingMessages],
    of: _WindowObservations,
    max_lost_ids: int,
) -> tuple[LostIds, ...]:
    """Return the ids of each node's loss; ``sightings`` are the first of each message, and the last of missing ones."""
    if not loss.any():
        return tuple(LostIds.from_ids(np.empty((0, 2), np.uint64)) for _ in loss.T)
    sighted_us, missing = sightings
    listed = []
    for of_node in loss.T:
        lost = np.flatnonzero(of_node[place]) if of_node.any() else np.empty(0, np.int64)
        ids = of.ids[of.groups.order[of.groups.starts[lost]]]
        listed.append(lost[masks.byte_order(ids)[:max_lost_ids]])
    every = np.concatenate(listed)
    ids = of.ids[of.groups.order[of.groups.starts[every]]]
    seen = of.observations(every)
    names = naming.resolve_names(ids, *seen, of.said)
    ways = journeys.build_journeys([len(lost) for lost in listed], *seen, of.sources)
    found, end = [], 0
    for lost, way in zip(listed, ways, strict=True):
        start, end = end, end + len(lost)
        own = names.taken(np.arange(start, end))
        found.append(LostIds(ids[start:end], sighted_us[lost], own, way, missing.find_last_us(lost)))
    return tuple(found)


def _find_slowest(
    lags_out_us: Sequence[NDArray[np.int64]],
    node_of: NDArray[np.uint8],
    code: NDArray[np.uint8],
    of: _WindowObservations,
) -> tuple[Slowest, ...]:
    """Return the slowest messages of each node; its departures are in the order of their lags, node after node."""
    starts = np.searchsorted(node_of, np.arange(len(lags_out_us) + 1)).tolist()
    rows, lags_us = [], []
    for lag_us, start, end in zip(lags_out_us, starts, starts[1:], strict=False):
        departed = None if len(lag_us) == end - start else np.flatnonzero(code[start:end] & masks.OUT)
        row, slow_us = slowest.find_slowest(lag_us, of.ids[start:end], departed)
        rows.append(row + start)
        lags_us.append(slow_us)
    every = np.concatenate(rows)
    messages, place = np.unique(masks.find_messages(of.groups, every), return_inverse=True)
    ids = of.ids[of.groups.order[of.groups.starts[messages]]]
    names = naming.resolve_names(ids, *of.observations(messages), of.said).taken(place)
    found, end = [], 0
    for row, slow_us in zip(rows, lags_us, strict=True):
        start, end = end, end + len(row)
        found.append(Slowest(of.ids[row], slow_us, names.taken(np.arange(start, end))))
    return tuple(found)


def _merge_slowest(parts: Sequence[tuple[Slowest, ...] | None]) -> tuple[Slowest, ...] | None:
    kept = [part for part in parts if part is not None]
    if len(kept) < len(parts):
        return None
    return tuple(slowest.merge_slowest(of_node) for of_node in zip(*kept, strict=True))


def _add_kept(parts: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64] | None:
    kept = [part for part in parts if part is not None]
    return np.sum(kept, axis=0) if kept else None


def _merge_lost(parts: Sequence[LostIds], max_lost_ids: int) -> LostIds:
    ids, sighted_us, last_us = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("message_ids", "sighted_us", "last_us")
    )
    names = naming.join_names([part.names for part in parts])
    ways = journeys.join_journeys([(len(part.message_ids), part.journeys) for part in parts])
    return LostIds(ids, sighted_us, names, ways, last_us).taken(masks.byte_order(ids)[:max_lost_ids])


def _merge_lags(parts: Sequence[NodeLags]) -> NodeLags:
    return NodeLags(
        tdigest.merge([part.lag_in_us for part in parts]),
        tdigest.merge([part.lag_out_us for part in parts]),
        tdigest.merge([part.inside_us for part in parts]),
        tdigest.merge([part.displacement for part in parts]),
    )


def _concatenate(parts: list, shape: tuple[int, ...], dtype: type) -> NDArray:  # type: ignore[type-arg]
    return concatenate(parts) if parts else np.empty(shape, dtype)
