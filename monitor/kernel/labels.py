"""Counts by label: which messages carried each value of a label at a node, and what became of them.

A message has a value of a label at a node if a batch with that label says that the node saw it. Messages are counted by
their masks, so that every set of SEMANTICS.md can be split by value when a window is judged: nothing is lost here that
is not lost there. Values are kept within bounds, and what is beyond them is counted together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks, sets
from hopwatch.monitor.kernel.deferrals import ALWAYS_US
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import LabelCounts, LabelValueKind, NodeResult

MAX_LABELS: Final = 8
"""Labels of a node in a window that are counted at most, those that most observations carry; as many as a batch has."""
MAX_KEPT_VALUES: Final = 1_000
"""Values of a label at a node that a shard of a window keeps apart."""
MAX_SHOWN_VALUES: Final = 50
"""Values of a label at a node that a window shows."""
MAX_CELLS: Final = 1 << 20
"""Pairs of value and cell that are counted in a table; more of them are sorted."""

Labels = tuple[tuple[str, str], ...]
"""Labels of a batch with their values, sorted."""
Int64s = NDArray[np.int64]

_FIGURES: Final = ("expected_or_seen", "filtered", "rejected", "loss", "in_flight")


class LabelKey(NamedTuple):
    """A value of a label that a node says; ``value`` is empty but of a kind that has one."""

    node: int
    label: str
    kind: LabelValueKind
    value: str


class LabelTally(NamedTuple):
    """How many messages of each key have a mask, and were first sighted then.

    ``masks`` has the shape (masks, words) and is sorted, as ``keys`` are; ``is_lost`` says of which a node lost them.
    ``key`` and ``mask`` are places in these, ``sighted_us`` is ALWAYS_US of all that no node lost, ``messages`` the number
    of messages: all of shape (cells,).
    """

    keys: tuple[LabelKey, ...]
    masks: NDArray[np.uint64]
    is_lost: NDArray[np.bool_]
    key: Int64s
    mask: Int64s
    sighted_us: Int64s
    messages: Int64s


class LabelledBatches(NamedTuple):
    """Batches of a window, those of a node together and in the order of nodes.

    ``nodes`` and ``labels`` have the node and the labels of each, ``counts`` how many observations, shape (batches,).
    """

    nodes: Sequence[int]
    labels: Sequence[Labels]
    counts: Int64s


class WindowMessages(NamedTuple):
    """Messages of a window: their observations, masks, and first sightings.

    ``masks`` are distinct, shape (masks, words), and ``is_lost`` says of which a node lost them. ``place`` and
    ``moment`` have the mask and the sighting of each message, as places in ``masks`` and ``moments_us``; both of shape
    (messages,).
    """

    groups: Groups
    masks: NDArray[np.uint64]
    is_lost: NDArray[np.bool_]
    place: Int64s
    moments_us: Int64s
    moment: NDArray[Any]


class _Cells(NamedTuple):
    """Distinct pairs of a number, such as that of a value, and a cell, with the number of messages of each."""

    number: Int64s
    cell: Int64s
    messages: Int64s


def count_labels(batches: LabelledBatches, messages: WindowMessages) -> LabelTally | None:
    """Count the messages of each value of each label at each node; None if no batch has a label.

    Order and batching change nothing.
    """
    if not any(batches.labels):
        return None
    groups, cell_of, moments_us = messages.groups, messages.place, np.array([ALWAYS_US])
    sizes = np.diff(np.append(groups.starts, len(groups.order)))
    message_of = np.empty(len(groups.order), np.int64)
    message_of[groups.order] = np.repeat(np.arange(len(groups.starts)), sizes)
    if messages.is_lost.any():
        # What no node lost needs no sighting: nobody asks since when it is settled.
        moments_us = np.append(ALWAYS_US, messages.moments_us)
        moment = np.where(messages.is_lost[messages.place], messages.moment.astype(np.int64) + 1, 0)
        cell_of = messages.place * len(moments_us) + moment
    ends = np.append(0, np.cumsum(batches.counts)).tolist()
    nodes = np.array(batches.nodes)
    parts: list[tuple[LabelKey, _Cells]] = []
    for node in np.unique(nodes).tolist():
        first, last = np.searchsorted(nodes, (node, node + 1)).tolist()
        if any(batches.labels[first:last]):
            own, counts = batches.labels[first:last], batches.counts[first:last]
            parts += _count_at_node(node, own, counts, message_of[ends[first] : ends[last]], cell_of)
    of_key = np.repeat(np.arange(len(parts)), [len(cells.cell) for _, cells in parts])
    mask, at = np.divmod(np.concatenate([cells.cell for _, cells in parts]), len(moments_us))
    count = np.concatenate([cells.messages for _, cells in parts])
    keys = tuple(key for key, _ in parts)
    return _fold_values(LabelTally(keys, messages.masks, messages.is_lost, of_key, mask, moments_us[at], count))


def merge_label_tallies(tallies: Iterable[LabelTally | None]) -> LabelTally | None:
    """Merge what shards counted, whose messages are apart; None if no batch of any has a label."""
    parts = [tally for tally in tallies if tally is not None]
    if not parts:
        return None
    words, mask_of = masks.find_distinct(np.concatenate([part.masks for part in parts]))
    is_lost = np.empty(len(words), bool)
    is_lost[mask_of] = np.concatenate([part.is_lost for part in parts])
    keys = tuple(key for part in parts for key in part.keys)
    keys_before = np.cumsum([0, *(len(part.keys) for part in parts)])
    masks_before = np.cumsum([0, *(len(part.masks) for part in parts)])
    key = np.concatenate([part.key + before for part, before in zip(parts, keys_before, strict=False)])
    mask = np.concatenate([mask_of[part.mask + before] for part, before in zip(parts, masks_before, strict=False)])
    sighted_us, count = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sighted_us", "messages"))
    return _fold_values(LabelTally(keys, words, is_lost, key, mask, sighted_us, count))


def _count_at_node(
    node: int, labels: Sequence[Labels], counts: Int64s, message: Int64s, cell_of: Int64s
) -> Iterator[tuple[LabelKey, _Cells]]:
    """Yield the keys of a node with what is counted of each; ``message`` is of each of its observations."""
    numbers: dict[Labels, int] = {}
    number = np.array([numbers.setdefault(of_batch, len(numbers)) for of_batch in labels], np.int64)
    dicts = [dict(of_set) for of_set in numbers]
    once, several = _pair_messages(message, np.repeat(number, counts), len(dicts), len(cell_of))
    of_sets = _count_cells(once[1], cell_of[once[0]])
    for label in _choose_labels(dicts, np.bincount(number, counts)):
        values = sorted({of_set[label] for of_set in dicts if label in of_set})
        places = {value: place for place, value in enumerate(values, 1)}
        # 0 stands for no value.
        value_of = np.array([places[of_set[label]] if label in of_set else 0 for of_set in dicts], np.int64)
        at, value = _select_values(several[0], value_of[several[1]], len(places) + 1)
        counted = _count_cells(
            np.concatenate((value_of[of_sets.number], value)),
            np.concatenate((of_sets.cell, cell_of[at])),
            np.concatenate((of_sets.messages, np.ones(len(at), np.int64))),
        )
        starts = np.searchsorted(counted.number, np.arange(len(values) + 2))
        for place in np.unique(counted.number).tolist():
            own = slice(starts[place], starts[place + 1])
            kind = LabelValueKind.VALUE if place else LabelValueKind.NONE
            key = LabelKey(node, label, kind, values[place - 1] if place else "")
            yield key, _Cells(*(column[own] for column in counted))


def _pair_messages(
    message: Int64s, number: Int64s, numbers: int, messages: int
) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]:
    """Return messages with the number of their labels: those that have one number, and those that have several.

    Each pair stands once; of a message with several numbers all pairs are together.
    """
    if numbers == 1:
        own = np.unique(message) if np.bincount(message, minlength=messages).max() > 1 else message
        return (own, np.zeros(len(own), np.int64)), (own[:0], own[:0])
    is_again = np.bincount(message, minlength=messages)[message] > 1
    if not is_again.any():
        return (message, number), (message[:0], number[:0])
    again, of_again = np.divmod(np.unique(message[is_again] * numbers + number[is_again]), numbers)
    is_alone = np.bincount(again, minlength=1)[again] == 1
    once = (
        np.concatenate((message[~is_again], again[is_alone])),
        np.concatenate((number[~is_again], of_again[is_alone])),
    )
    return once, (again[~is_alone], of_again[~is_alone])


def _select_values(message: Int64s, value: Int64s, values: int) -> tuple[Int64s, Int64s]:
    """Return the distinct values of each message; none, which is 0, only of those that have no other."""
    at, found = np.divmod(np.unique(message * values + value), values)
    is_more = np.diff(at, append=-1) == 0
    keep = (found > 0) | ~is_more
    return at[keep], found[keep]


def _count_cells(number: Int64s, cell: Int64s, count: Int64s | None = None) -> _Cells:
    """Count pairs of a number and a cell, sorted by both."""
    cells = int(cell.max(initial=0)) + 1
    joined, span = number * cells + cell, (int(number.max(initial=0)) + 1) * cells
    if span <= MAX_CELLS:
        counted = np.bincount(joined, count, span).astype(np.int64)
        found = np.flatnonzero(counted)
        counted = counted[found]
    else:
        found, which = np.unique(joined, return_inverse=True)
        counted = np.bincount(which, count).astype(np.int64)
    return _Cells(*np.divmod(found, cells), counted)


def _choose_labels(dicts: Sequence[Mapping[str, str]], counts: NDArray[Any]) -> list[str]:
    """Return the labels that most observations carry, by name; ``counts`` has how many there are of each set."""
    carried: Counter[str] = Counter()
    for of_set, count in zip(dicts, counts.tolist(), strict=True):
        carried.update(dict.fromkeys(of_set, int(count)))
    ranked = sorted(carried, key=lambda label: (-carried[label], label))
    return sorted(ranked[:MAX_LABELS])


def _fold_values(counted: LabelTally) -> LabelTally:
    """Return what is counted with equal keys joined, and the values beyond the bound of each label as one.

    Those with the most lost messages are kept, then those with the most messages, then the first ones.
    """
    many = len(counted.keys)
    total = np.bincount(counted.key, counted.messages, many).tolist()
    lost = np.bincount(counted.key, counted.messages * counted.is_lost[counted.mask], many).tolist()
    ranks: dict[LabelKey, tuple[float, float]] = {}
    for key, of_key, lost_of_key in zip(counted.keys, total, lost, strict=True):
        lost_so_far, so_far = ranks.get(key, (0, 0))
        ranks[key] = lost_so_far + lost_of_key, so_far + of_key
    by_label: dict[tuple[int, str], list[LabelKey]] = defaultdict(list)
    for key in ranks:
        if key.kind is LabelValueKind.VALUE:
            by_label[key.node, key.label].append(key)
    renamed: dict[LabelKey, LabelKey] = {}
    for (node, label), values in by_label.items():
        other = LabelKey(node, label, LabelValueKind.OTHER, "")
        values.sort(key=lambda key: (-ranks[key][0], -ranks[key][1], key.value))
        renamed |= dict.fromkeys(values[MAX_KEPT_VALUES:], other)
    keys = tuple(sorted({renamed.get(key, key) for key in counted.keys}))
    places = {key: place for place, key in enumerate(keys)}
    place_of = np.array([places[renamed.get(key, key)] for key in counted.keys], np.int64)
    return _join_cells(counted._replace(keys=keys, key=place_of[counted.key]))


def _join_cells(counted: LabelTally) -> LabelTally:
    """Return cells sorted, equal ones added, with the masks that they use."""
    used, of_cell = np.unique(counted.mask, return_inverse=True)
    order = np.lexsort((counted.sighted_us, of_cell, counted.key))
    columns = [column[order] for column in (counted.key, of_cell, counted.sighted_us)]
    is_first = np.ones(len(order), bool)
    is_first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    starts = np.flatnonzero(is_first)
    count = np.add.reduceat(counted.messages[order], starts) if len(starts) else counted.messages
    key, mask, sighted_us = (column[starts] for column in columns)
    return LabelTally(counted.keys, counted.masks[used], counted.is_lost[used], key, mask, sighted_us, count)


def tabulate_labels(
    pathway: Pathway, counted: LabelTally | None, nodes: Sequence[NodeResult], before_us: int, *, is_final: bool
) -> tuple[tuple[LabelCounts, ...], ...]:
    """Return the rows of each node of a judged window: by label, by the node that says it, and by value.

    A message that was first sighted at ``before_us`` or later is in flight, and so is everything until the window is
    final. ``nodes`` are those of the window, whose loss is split.
    """
    if counted is None:
        return ((),) * len(nodes)
    found = sets.classify(pathway, counted.masks)
    settled = counted.messages * (counted.sighted_us < before_us) if is_final else np.zeros_like(counted.messages)
    asked = {
        "expected_or_seen": (found.expected | found.seen, counted.messages),
        "filtered": (found.filtered, counted.messages),
        "rejected": (found.rejected, counted.messages),
        "loss": (found.loss, settled),
        "in_flight": (found.loss, counted.messages - settled),
    }
    # Shape (keys, nodes) each.
    figures = {name: _sum_by_key(counted, of_mask, weight) for name, (of_mask, weight) in asked.items()}
    saying: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, key in enumerate(counted.keys):
        saying[key.label][key.node].append(place)
    tables: list[list[LabelCounts]] = [[] for _ in nodes]
    for label in sorted(saying):
        for node, own in enumerate(nodes):
            for source in find_sources(pathway, node, saying[label]):
                places = [(place, node) for place in saying[label][source]]
                tables[node] += _bound_rows(own, _build_rows(pathway.nodes[source], counted.keys, figures, places))
    return tuple(tuple(rows) for rows in tables)


def find_sources(pathway: Pathway, node: int, saying: Iterable[int]) -> list[int]:
    """Return the nodes whose values of a label split a node: itself, and the nearest before it, of those that say it.

    Nearest is a node from which some way leads here on which no other node says the label.
    """
    own = set(saying)
    found, passed, left = {node} & own, {node}, [node]
    while left:
        for before in np.flatnonzero(pathway.edges[:, left.pop()]).tolist():
            if before in own:
                found.add(before)
            elif before not in passed:
                passed.add(before)
                left.append(before)
    return sorted(found)


def _sum_by_key(counted: LabelTally, of_mask: NDArray[np.bool_], weight: Int64s) -> Int64s:
    cells = of_mask[counted.mask] * weight[:, None]
    summed = np.zeros((len(counted.keys), of_mask.shape[1]), np.int64)
    np.add.at(summed, counted.key, cells)
    return summed


def _build_rows(
    said_at: str, keys: Sequence[LabelKey], figures: Mapping[str, Int64s], places: Iterable[tuple[int, int]]
) -> list[LabelCounts]:
    """Return the rows of keys at a node, given by their places, of those that have messages there."""
    rows = []
    for place in places:
        told = {name: int(column[place]) for name, column in figures.items()}
        if told["expected_or_seen"]:
            key = keys[place[0]]
            rows.append(LabelCounts(key.label, said_at, key.kind, key.value, **told))
    return rows


def _judge_row(node: NodeResult, row: LabelCounts) -> LabelCounts:
    """Return a row with the bounds of its loss: any of what is not sure of the node's loss may be in it."""
    unsure = node.loss - node.loss_lower
    if row.kind is LabelValueKind.OTHER:
        # Of several values a message is counted with each: so many more may be unsure.
        unsure = row.loss if unsure else 0
    upper = None if node.loss_upper is None else row.loss + node.loss_upper - node.loss
    return replace(row, loss_lower=max(0, row.loss - unsure), loss_upper=upper)


def _bound_rows(node: NodeResult, rows: Iterable[LabelCounts]) -> list[LabelCounts]:
    """Return the first values, all others as one, and last what has no value; with the bounds of their loss."""
    ordered = sorted(rows, key=lambda row: (-row.loss, -row.in_flight, -row.expected_or_seen, row.value))
    values = [row for row in ordered if row.kind is LabelValueKind.VALUE]
    others = [*values[MAX_SHOWN_VALUES:], *(row for row in ordered if row.kind is LabelValueKind.OTHER)]
    shown = values[:MAX_SHOWN_VALUES]
    if others:
        summed = {name: sum(getattr(row, name) for row in others) for name in _FIGURES}
        shown.append(replace(others[0], kind=LabelValueKind.OTHER, value="", **summed))
    shown += [row for row in ordered if row.kind is LabelValueKind.NONE]
    return [_judge_row(node, row) for row in shown]
