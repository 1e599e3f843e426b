"""The tally: all that a window, or one shard of it, is reduced to before anything is judged.

A few distinct masks with counts, stamps by node, the lag digests, and the ids behind a loss. Tallies of shards merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.kernel import masks, naming, tdigest
from monitor.kernel.masks import Ids
from monitor.kernel.naming import Names, Said
from monitor.kernel.sets import Sets, classify
from monitor.pathway import Pathway
from probes.contract.batch import IdKind, Outcome
from probes.contract.limits import NOT_STAMPED

MAX_LOST_IDS: Final = 10_000
"""How many lost ids a node-window keeps, the first in byte order; beyond them they are counted."""

NEVER_US: Final = 2**63 - 1
"""A moment after all others: at it nothing is in flight any more."""
ALWAYS_US: Final = -(2**63)
"""The sighting of messages that were sighted by the end of their window: whoever judges it, they are settled."""
_HALF_WAY_US: Final = 2**62 - 1
_NO_TEXTS: Final = np.empty(0, np.uint8)
_NO_ENDS: Final = np.empty(0, np.uint32)


class Observed(NamedTuple):
    """The observations of one batch, as arrays over where they were read; empty arrays as on the wire.

    ``instance`` tells the probe instance that sent it from all others of its stream.
    ``rows`` are the places in the batch that these observations had, where they are not all of it.
    """

    node: int
    instance: str
    arrival_us: int
    message_ids: Ids
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    id_kind: int = IdKind.UNKNOWN
    id_texts: NDArray[np.uint8] = _NO_TEXTS
    id_text_ends: NDArray[np.uint32] = _NO_ENDS
    rows: NDArray[np.int64] | None = None


class Relation(NamedTuple):
    """Which messages of a probe instance no other node names: a sign that ids change from one node to the next.

    ``came`` counts the messages of its arrivals if no node before saw any of them, ``left`` those of its departures if
    none of them arrived there or was seen before, ``unfollowed`` those of its departures if no node behind saw any of
    them. Each is 0 as soon as one message is known there, and NONE where there is nothing to tell.
    """

    node: int
    instance: str
    came: int
    left: int
    unfollowed: int

    @property
    def probe(self) -> str:
        """The name of the probe."""
        return str(json.loads(self.instance)[1]) if self.instance else ""

    @property
    def strange(self) -> int:
        """How many messages it names as nobody before it does."""
        return max(self.came, 0) + max(self.left, 0)


NONE: Final = -1


@dataclass(frozen=True, slots=True)
class NodeLags:
    """The digests of one node: lag at arrival, lag at departure, time inside."""

    lag_in_us: tdigest.Digest
    lag_out_us: tdigest.Digest
    inside_us: tdigest.Digest


class LostIds(NamedTuple):
    """Ids of one node's loss: the first MAX_LOST_IDS in byte order, shape (ids, 2), first sightings, and names."""

    message_ids: Ids
    sighted_us: NDArray[np.int64]
    names: Names


@dataclass(frozen=True, slots=True)
class Tally:
    """What the observations of one window come to.

    ``masks`` has the shape (rows, words), ``counts`` and ``sighted_us`` the shape (rows,): how many messages have the
    row's mask and were first sighted then. Sightings by the end of the window are all ALWAYS_US, so that there are few
    rows. ``stamps`` counts in and out stamps, shape (nodes, 2); ``negative`` those of them with a negative lag, shape
    (nodes,). ``last_first_sighting_us`` is the latest moment after the end of the window at which a message was first
    sighted, 0 without any.
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

    def settled(self, before_us: int) -> NDArray[np.int64]:
        """Return the counts of the messages first sighted before a moment, shape (rows,); the others are in flight."""
        return np.where(self.sighted_us < before_us, self.counts, 0)

    def lost(self, node: int, before_us: int) -> Ids:
        """Return the ids of a node's loss that were first sighted before a moment."""
        lost = self.lost_ids[node]
        return lost.message_ids[lost.sighted_us < before_us]

    def named(self, node: int, before_us: int) -> Names:
        """Return what the messages of :meth:`lost` were called."""
        lost = self.lost_ids[node]
        return lost.names.taken(lost.sighted_us < before_us)


class _Alike(NamedTuple):
    """Batches of one node whose packed fields are given or empty alike, laid end to end."""

    node: int
    arrival_us: NDArray[np.int64]
    counts: NDArray[np.int64]
    instances: tuple[str, ...]
    message_ids: Ids
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    said: list[Said]


def take(pathway: Pathway, batches: Iterable[Observed], window_end_us: int) -> Tally:
    """Reduce the observations of the window that ends at ``window_end_us`` to a tally.

    Order and batching change nothing.
    """
    nodes = len(pathway.nodes)
    alike = _lay_out(batches)
    stamps, negative = np.zeros((nodes, 2), np.int64), np.zeros(nodes, np.int64)
    values: list[tuple[list[NDArray[np.int64]], ...]] = [([], [], []) for _ in range(nodes)]
    codes = [_stamp(pathway, part, stamps, values[part.node]) for part in alike]
    lags = tuple(_digests(lists, negative, node) for node, lists in enumerate(values))
    ids = _joined([part.message_ids for part in alike], (0, 2), np.uint64)
    groups = masks.group(ids)
    node_of = np.repeat(
        np.array([part.node for part in alike], np.uint8), np.array([len(part.message_ids) for part in alike], np.int64)
    )
    words = masks.masks(groups, _joined(codes, (0,), np.uint8), node_of, nodes)
    distinct, place = masks.distinct(words)
    moments_us, moment = _first_sightings(alike, groups, window_end_us)
    sighted_us = moments_us[moment]
    sets = classify(pathway, distinct)
    lost = _lost_ids(sets.loss, place, sighted_us, _Of(ids, groups, alike))
    code = _joined(codes, (0,), np.uint8)
    relations = _relations(pathway, alike, sets, place, groups, code)
    rows = _rows(distinct, place, moments_us, moment)
    return Tally(*rows, stamps, negative, lags, lost, int(sighted_us.max(initial=0)), len(ids), relations)


def instance_name(node: str, probe: str, epoch_us: int) -> str:
    """Return what tells a probe instance from all others of its stream, whatever the probe calls itself."""
    return json.dumps([node, probe, epoch_us])


def _relations(  # noqa: PLR0913, PLR0917 - the steps before it
    pathway: Pathway,
    alike: list[_Alike],
    sets: Sets,
    place: NDArray[np.int64],
    groups: masks.Groups,
    code: NDArray[np.uint8],
) -> tuple[Relation, ...]:
    """Return how each instance relates to the nodes around its own.

    An instance is odd in a way if all its observations are; so the few odd messages are looked into, and all others are
    only counted.
    """
    keys = [(part.node, name) for part in alike for name in part.instances]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    number = np.array([numbers[key] for key in keys], np.int64)
    starts = _starts_of([part.counts for part in alike])
    came, left = (code & ~np.uint8(masks.OUT)).astype(bool), (code & np.uint8(masks.OUT)).astype(bool)
    sides = came, left, left
    totals = np.stack([_counted(side, starts, number, len(numbers)) for side in sides])
    odd = np.stack(_odd(pathway, sets))
    odds = np.zeros((len(sides), len(numbers)), np.int64)
    messages = np.zeros_like(odds)
    is_looked_into: NDArray[np.bool_] = np.any(odd, axis=(0, 2))
    chosen = np.flatnonzero(is_looked_into[place])
    if len(chosen):
        message, at = _observations(groups, chosen)
        instance = number[np.searchsorted(starts, at, side="right") - 1]
        node = np.array([key[0] for key in numbers], np.int64)[instance]
        for kind, side in enumerate(sides):
            is_odd = side[at] & odd[kind, place[message], node]
            odds[kind] = np.bincount(instance[is_odd], minlength=len(numbers))
            # Sorted as numbers: what is in flight may be all of a window, and to find pairs takes ten times as long.
            pairs = np.sort(instance[is_odd] * len(groups.starts) + message[is_odd])
            pairs = pairs[np.diff(pairs, prepend=-1) > 0]
            messages[kind] = np.bincount(pairs // len(groups.starts), minlength=len(numbers))
    told = np.where(totals == 0, NONE, np.where(odds == totals, messages, 0))
    return tuple(Relation(*key, *told[:, at].tolist()) for key, at in numbers.items())


def _counted(
    side: NDArray[np.bool_], starts: NDArray[np.int64], number: NDArray[np.int64], numbers: int
) -> NDArray[np.int64]:
    """Return how many observations of the numbered instances are of a side, shape (numbers,)."""
    # One place more than there are observations, because the last batches may have none.
    of_batches = np.add.reduceat(np.concatenate((side, np.zeros(1, bool))), starts[:-1], dtype=np.int64)
    return np.bincount(number, of_batches * (np.diff(starts) > 0), numbers).astype(np.int64)


def _odd(pathway: Pathway, sets: Sets) -> tuple[NDArray[np.bool_], ...]:
    """Return which messages are odd at each node: came, left, and unfollowed; each of shape (masks, nodes)."""
    before, after = sets.seen @ pathway.downstream, sets.seen @ pathway.downstream.T
    came = sets.seen & ~before & ~pathway.origins
    return came, sets.departed & ~before & ~sets.arrived, sets.departed & ~after & ~pathway.terminals


def _starts_of(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return where each batch begins among all observations, and last where they end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(_joined(list(counts), (0,), np.int64))))


def _observations(groups: masks.Groups, messages: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each observation of some messages which one it is of, and its index."""
    ends = np.append(groups.starts[1:], len(groups.order))
    sizes = ends[messages] - groups.starts[messages]
    first = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
    return np.repeat(messages, sizes), groups.order[np.repeat(groups.starts[messages], sizes) + within]


def _rows(
    distinct: NDArray[np.uint64],
    place: NDArray[np.int64],
    moments_us: NDArray[np.int64],
    moment: NDArray[Any],
    counts: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Count by mask and sighting: return the masks, counts and sightings of the rows, in one order for all inputs."""
    cells = np.bincount(place * len(moments_us) + moment, counts, len(distinct) * len(moments_us)).astype(np.int64)
    filled = np.flatnonzero(cells)
    mask, sighting = np.divmod(filled, max(1, len(moments_us)))
    return distinct[mask], cells[filled], moments_us[sighting]


def merge(tallies: Sequence[Tally]) -> Tally:
    """Merge the tallies of a window's shards, whose messages are apart."""
    if len(tallies) == 1:
        return tallies[0]
    words, place = masks.distinct(np.concatenate([tally.masks for tally in tallies]))
    counts, sighted_us = (np.concatenate([getattr(t, name) for t in tallies]) for name in ("counts", "sighted_us"))
    moments_us, moment = np.unique(sighted_us, return_inverse=True)
    return Tally(
        *_rows(words, place, moments_us, moment, counts),
        np.sum([tally.stamps for tally in tallies], axis=0),
        np.sum([tally.negative for tally in tallies], axis=0),
        tuple(_merge_lags(parts) for parts in zip(*(tally.lags for tally in tallies), strict=True)),
        tuple(_merge_lost(parts) for parts in zip(*(tally.lost_ids for tally in tallies), strict=True)),
        max(tally.last_first_sighting_us for tally in tallies),
        sum(tally.observations for tally in tallies),
        _merge_relations(tallies),
    )


@lru_cache(maxsize=1_024)
def empty(pathway: Pathway) -> Tally:
    """Return the tally of a window in which nothing was observed."""
    return take(pathway, (), NEVER_US)


def _lay_out(batches: Iterable[Observed]) -> list[_Alike]:
    """Lay batches of one kind end to end: what is left to Python is a step a batch, whatever it holds."""
    kinds: dict[tuple[int, int, int, int], list[Observed]] = {}
    for batch in batches:
        kind = (batch.node, len(batch.lag_in_us) > 0, len(batch.lag_out_us) > 0, len(batch.outcome) > 0)
        kinds.setdefault(kind, []).append(batch)
    return [_alike(*kinds[kind]) for kind in sorted(kinds)]


def _alike(*batches: Observed) -> _Alike:
    ids, lag_in, lag_out, outcome = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("message_ids", "lag_in_us", "lag_out_us", "outcome")
    )
    arrivals_us = np.array([batch.arrival_us for batch in batches], np.int64)
    instances = tuple(batch.instance for batch in batches)
    counts = np.array([len(batch.message_ids) for batch in batches], np.int64)
    said = [Said(batch.node, batch.id_kind, batch.id_texts, batch.id_text_ends, batch.rows) for batch in batches]
    return _Alike(batches[0].node, arrivals_us, counts, instances, ids, lag_in, lag_out, outcome, said)


def _stamp(
    pathway: Pathway, part: _Alike, stamps: NDArray[np.int64], values: tuple[list[NDArray[np.int64]], ...]
) -> NDArray[np.uint8]:
    """Return the code of each observation, and add its stamps and lags to those of its node."""
    count = len(part.message_ids)
    lag_in, lag_out = part.lag_in_us, part.lag_out_us
    has_in, has_out = _given(lag_in, count), _given(lag_out, count)
    inside = has_in & has_out
    if pathway.stamps[part.node] != "both":
        # One stamp stands for both sides; the side that is missing takes the lag of the one that is there.
        lag_in, lag_out = _either(lag_in, lag_out, has_in), _either(lag_out, lag_in, has_out)
        has_in = has_out = has_in | has_out
        inside = np.zeros(count, bool)
    passed = part.outcome == Outcome.PASSED if len(part.outcome) else np.ones(count, bool)
    departs, inside = has_out & passed, inside & passed
    code: NDArray[np.uint8] = has_in * np.uint8(masks.IN) + departs * np.uint8(masks.OUT)
    if len(part.outcome):
        code |= np.array([0, masks.FILTERED, masks.REJECTED], np.uint8)[part.outcome]
    stamps[part.node] += (np.count_nonzero(has_in), np.count_nonzero(departs))
    for lags, chosen, into in ((lag_in, has_in, values[0]), (lag_out, departs, values[1])):
        if len(lags):
            into.append(lags if chosen.all() else lags[chosen])
    if len(lag_in) and len(lag_out):
        values[2].append(_between(*((lag_in, lag_out) if inside.all() else (lag_in[inside], lag_out[inside]))))
    return code


def _between(earlier_us: NDArray[np.int64], later_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time from one to the other; what is beyond 64 bits is the farthest they hold, and never wraps."""
    lags_us = (earlier_us, later_us)
    if earlier_us.size and max(max(-int(us.min()), int(us.max())) for us in lags_us) > _HALF_WAY_US:
        latest_us, soonest_us = np.minimum(earlier_us, 0) + NEVER_US, np.maximum(earlier_us, 0) + ALWAYS_US
        later_us = np.clip(later_us, soonest_us, latest_us)
    return later_us - earlier_us


def _given(lags: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    return lags != NOT_STAMPED if len(lags) else np.zeros(count, bool)


def _either(lags: NDArray[np.int64], instead: NDArray[np.int64], given: NDArray[np.bool_]) -> NDArray[np.int64]:
    if not len(lags) or not len(instead):
        return lags if len(lags) else instead
    return np.where(given, lags, instead)


def _digests(lists: tuple[list[NDArray[np.int64]], ...], negative: NDArray[np.int64], node: int) -> NodeLags:
    joined = [_joined(parts, (0,), np.int64) for parts in lists]
    negative[node] = sum(int(np.count_nonzero(values < 0)) for values in joined[:2])
    return NodeLags(*(tdigest.build(values) for values in joined))


def _first_sightings(
    alike: list[_Alike], groups: masks.Groups, window_end_us: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return moments, ascending, and for each message the place among them of the earliest arrival of it.

    Shapes (moments,) and (messages,). All arrivals by the end of the window are one moment, ALWAYS_US.
    """
    arrivals_us = _joined([part.arrival_us for part in alike], (0,), np.int64)
    moments_us, moment = np.unique(np.where(arrivals_us > window_end_us, arrivals_us, ALWAYS_US), return_inverse=True)
    if len(moments_us) <= 1:
        return moments_us, np.zeros(len(groups.starts), np.uint8)
    # The gather's cost goes with its width.
    narrow = moment.astype(np.min_scalar_type(len(moments_us)))
    of_observation = np.repeat(narrow, np.concatenate([part.counts for part in alike]))
    return moments_us, np.minimum.reduceat(of_observation[groups.order], groups.starts)


class _Of(NamedTuple):
    """What lost ids are taken from: all observations, brought together by message."""

    ids: Ids
    groups: masks.Groups
    alike: list[_Alike]


def _lost_ids(
    loss: NDArray[np.bool_], place: NDArray[np.int64], sighted_us: NDArray[np.int64], of: _Of
) -> tuple[LostIds, ...]:
    none = LostIds(np.empty((0, 2), np.uint64), np.empty(0, np.int64), naming.unknown(0))
    said = [said for part in of.alike for said in part.said]
    counts = _joined([part.counts for part in of.alike], (0,), np.int64)
    found = []
    for of_node in loss.T:
        if not of_node.any():
            found.append(none)
            continue
        lost = np.flatnonzero(of_node[place])
        ids = of.ids[of.groups.order[of.groups.starts[lost]]]
        first = masks.byte_order(ids)[:MAX_LOST_IDS]
        names = naming.of(lost[first], ids[first], of.groups, said, counts)
        found.append(LostIds(ids[first], sighted_us[lost[first]], names))
    return tuple(found)


def _merge_relations(tallies: Sequence[Tally]) -> tuple[Relation, ...]:
    """Add what the shards tell of each instance; one message that is known in any of them is enough."""
    found: dict[tuple[int, str], list[Relation]] = {}
    for one in (one for tally in tallies for one in tally.relations):
        found.setdefault((one.node, one.instance), []).append(one)
    return tuple(Relation(*key, *map(_added, *(one[2:] for one in parts))) for key, parts in sorted(found.items()))


def _added(*parts: int) -> int:
    told = [part for part in parts if part != NONE]
    return NONE if not told else sum(told) if all(told) else 0


def _merge_lost(parts: Sequence[LostIds]) -> LostIds:
    ids, sighted_us = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    first = masks.byte_order(ids)[:MAX_LOST_IDS]
    return LostIds(ids[first], sighted_us[first], naming.joined([part.names for part in parts]).taken(first))


def _merge_lags(parts: Sequence[NodeLags]) -> NodeLags:
    return NodeLags(
        tdigest.merge([part.lag_in_us for part in parts]),
        tdigest.merge([part.lag_out_us for part in parts]),
        tdigest.merge([part.inside_us for part in parts]),
    )


def _joined(parts: list, shape: tuple[int, ...], dtype: type) -> NDArray:  # type: ignore[type-arg]
    return np.concatenate(parts) if parts else np.empty(shape, dtype)
