"""Counts by label: which messages carried each value of a label at a node, and what became of them.

A message has a value of a label at a node if a batch with that label says that the node saw it. Messages are counted by
their masks, so that every set of SEMANTICS.md can be split by value when a window is judged: nothing is lost here that
is not lost there. Values are kept within bounds, and what is beyond them is counted together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.deferrals import ALWAYS_US
from hopwatch.monitor.kernel.masks import Groups

MAX_LABELS: Final = 8
"""Labels of a node in a window that are counted at most, the first by name; as many as a batch has."""
MAX_KEPT_VALUES: Final = 1_000
"""Values of a label at a node that a shard of a window keeps apart."""
MAX_CELLS: Final = 1 << 20
"""Pairs of value and cell that are counted in a table; more of them are sorted."""

Labels = tuple[tuple[str, str], ...]
"""Labels of a batch with their values, sorted."""
Int64s = NDArray[np.int64]

NO_VALUE: Final = -1
"""Place of the value of a label that is not there."""


class KeyKind(IntEnum):
    """Values that messages of a key have: one of the label, one of those beyond the bound, or any at all."""

    VALUE = 0
    OTHER = 1
    ANY = 2


class LabelKey(NamedTuple):
    """A label that a node says; ``value`` is empty but of the kind that has one.

    A message with several values is counted once under ANY, and once under each value.
    """

    node: int
    label: str
    kind: KeyKind
    value: str


class LabelTally(NamedTuple):
    """Counts of messages by key, mask and first sighting.

    ``masks`` has the shape (masks, words) and is sorted, as ``keys`` are; ``is_lost`` says of which a node lost them.
    ``key`` and ``mask`` are places in these, ``sighted_us`` is ALWAYS_US of all that no node lost, ``messages`` how
    many there are: all of shape (cells,).
    """

    keys: tuple[LabelKey, ...]
    masks: NDArray[np.uint64]
    is_lost: NDArray[np.bool_]
    key: Int64s
    mask: Int64s
    sighted_us: Int64s
    messages: Int64s


class LabelNumbers(NamedTuple):
    """Distinct labels of the batches of a node; ``number`` says which each batch has, shape (batches,)."""

    sets: list[dict[str, str]]
    number: Int64s

    @classmethod
    def find(cls, labels: Sequence[Labels]) -> LabelNumbers:
        """Number the distinct labels, in the order in which they come."""
        numbers: dict[Labels, int] = {}
        number = np.array([numbers.setdefault(of_batch, len(numbers)) for of_batch in labels], np.int64)
        return cls([dict(of_set) for of_set in numbers], number)

    def iter_labels(self) -> Iterator[tuple[str, list[str], Int64s]]:
        """Yield each label that is counted, its values, and the place among them of that of each set; or NO_VALUE."""
        for label in sorted({label for of_set in self.sets for label in of_set})[:MAX_LABELS]:
            values = sorted({of_set[label] for of_set in self.sets if label in of_set})
            places = {value: place for place, value in enumerate(values)}
            value_of = [places[of_set[label]] if label in of_set else NO_VALUE for of_set in self.sets]
            yield label, values, np.array(value_of, np.int64)


class LabelledBatches(NamedTuple):
    """Batches of a window, those of a node together and in the order of nodes.

    ``nodes`` and ``labels`` have the node and the labels of each, ``counts`` how many observations, shape (batches,).
    """

    nodes: Sequence[int]
    labels: Sequence[Labels]
    counts: Int64s


class WindowMessages(NamedTuple):
    """Messages of a window: their observations, masks, and first sightings.

    ``masks`` are distinct, shape (masks, words), ``is_lost`` says of which a node lost them, and ``is_seen``, shape
    (masks, nodes), which nodes saw them. ``place`` and ``moment`` have the mask and the sighting of each message, as
    places in ``masks`` and ``moments_us``; both of shape (messages,).
    """

    groups: Groups
    masks: NDArray[np.uint64]
    is_lost: NDArray[np.bool_]
    is_seen: NDArray[np.bool_]
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
    # A batch may have no message of this shard: what it says is of others.
    labels = [own if count else () for own, count in zip(batches.labels, batches.counts.tolist(), strict=True)]
    if not any(labels):
        return None
    usual, others = _part_messages(messages)
    moments_us = np.append(ALWAYS_US, messages.moments_us)
    # What no node lost needs no sighting: nobody asks since when it is settled.
    moment = np.where(messages.is_lost[messages.place[others]], messages.moment[others].astype(np.int64) + 1, 0)
    cell_of = messages.place[others] * len(moments_us) + moment
    other, at = masks.find_observations(messages.groups, others)
    order = np.argsort(at)
    other, batch = other[order], np.searchsorted(np.cumsum(batches.counts), at[order], "right")
    usual_counts = batches.counts - np.bincount(batch, minlength=len(batches.counts))
    nodes = np.array(batches.nodes)
    keys: list[LabelKey] = []
    parts: list[_Cells] = []
    for node in np.unique(nodes).tolist():
        first, last = np.searchsorted(nodes, (node, node + 1)).tolist()
        if any(labels[first:last]):
            numbers, own = LabelNumbers.find(labels[first:last]), slice(*np.searchsorted(batch, (first, last)))
            number = numbers.number[batch[own] - first]
            once, several = _pair_messages(other[own], number, len(numbers.sets), len(others))
            counted = _count_cells(
                np.concatenate((numbers.number, once[1])),
                np.concatenate((np.full(last - first, usual * len(moments_us)), cell_of[once[0]])),
                np.concatenate((usual_counts[first:last], np.ones_like(once[0]))),
            )
            for label, values, cells in _count_values(numbers, counted, several, cell_of):
                is_lost = messages.is_lost[cells.cell // len(moments_us)]
                of_label, kept = _keep_values(values, cells, is_lost)
                parts.append(kept._replace(number=kept.number + len(keys)))
                keys += [LabelKey(node, label, *one) for one in of_label]
    key, place, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    mask, at = np.divmod(place, len(moments_us))
    return _fold_values(LabelTally(tuple(keys), messages.masks, messages.is_lost, key, mask, moments_us[at], count))


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
    return _fold_values(_keep_labels(LabelTally(keys, words, is_lost, key, mask, sighted_us, count)))


def _part_messages(messages: WindowMessages) -> tuple[int, Int64s]:
    """Return the mask that most messages have of which no node lost any, and all messages but those that have it.

    Those that have it and are seen twice at a node are among the others: all but the others have one batch a node.
    """
    counts = np.where(messages.is_lost, -1, np.bincount(messages.place, minlength=len(messages.masks)))
    usual = int(counts.argmax())
    observations = np.diff(np.append(messages.groups.starts, len(messages.groups.order)))
    is_usual = (messages.place == usual) & (observations == np.count_nonzero(messages.is_seen[usual]))
    return usual, np.flatnonzero(~(is_usual & ~messages.is_lost[usual]))


def _count_values(
    numbers: LabelNumbers, counted: _Cells, several: tuple[Int64s, Int64s], cell_of: Int64s
) -> Iterator[tuple[str, list[str], _Cells]]:
    """Yield each label of a node, its values, and what is counted of them.

    ``counted`` has the messages by the number of their labels, but for those that have several, which are in pairs. The
    number that is yielded is the place of a value, or that behind the last one for messages with any value.
    """
    for label, values, value_of in numbers.iter_labels():
        has_value = value_of[counted.number] != NO_VALUE
        own, cell, count = (column[has_value] for column in counted)
        at, value = _select_values(several[0], value_of[several[1]], len(values))
        first = at[np.diff(at, prepend=-1) != 0]
        any_value = np.full(len(own) + len(first), len(values))
        yield (
            label,
            values,
            _count_cells(
                np.concatenate((value_of[own], value, any_value)),
                np.concatenate((cell, cell_of[at], cell, cell_of[first])),
                np.concatenate((count, np.ones_like(at), count, np.ones_like(first))),
            ),
        )


def _keep_values(
    values: Sequence[str], counted: _Cells, is_lost: NDArray[np.bool_]
) -> tuple[list[tuple[KeyKind, str]], _Cells]:
    """Return the keys of a label whose values are sorted, and what is counted of them: no more values than the bound.

    Those with the most lost messages are kept, then those with the most messages, then the first ones.
    """
    many = len(values)
    total = np.bincount(counted.number, counted.messages, many + 1)[:many]
    lost = np.bincount(counted.number, counted.messages * is_lost, many + 1)[:many]
    ranked = np.lexsort((np.arange(many), -total, -lost))
    # The first key is of messages with any value, the last one of those with a value beyond the bound.
    place = np.zeros(many + 1, np.int64)
    place[ranked] = np.minimum(np.arange(many), MAX_KEPT_VALUES) + 1
    keys = [(KeyKind.ANY, ""), *((KeyKind.VALUE, values[at]) for at in ranked[:MAX_KEPT_VALUES].tolist())]
    keys += [(KeyKind.OTHER, "")] * (many > MAX_KEPT_VALUES)
    return keys, counted._replace(number=place[counted.number])


def _pair_messages(
    message: Int64s, number: Int64s, numbers: int, messages: int
) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]:
    """Return messages with the number of their labels: those that have one number, and those that have several.

    Each pair stands once; of a message with several numbers all pairs are together.
    """
    if numbers == 1:
        own = np.unique(message) if np.bincount(message, minlength=messages).max(initial=0) > 1 else message
        return (own, np.zeros(len(own), np.int64)), (own[:0], own[:0])
    sightings = np.bincount(message, minlength=messages)
    if sightings.max(initial=0) <= 1:
        return (message, number), (message[:0], number[:0])
    is_again = sightings[message] > 1
    again, of_again = np.divmod(np.unique(message[is_again] * numbers + number[is_again]), numbers)
    is_alone = np.bincount(again, minlength=1)[again] == 1
    once = (
        np.concatenate((message[~is_again], again[is_alone])),
        np.concatenate((number[~is_again], of_again[is_alone])),
    )
    return once, (again[~is_alone], of_again[~is_alone])


def _select_values(message: Int64s, value: Int64s, values: int) -> tuple[Int64s, Int64s]:
    """Return the distinct values of each message, those of a message together; some messages may have none."""
    has_value = value != NO_VALUE
    at, found = np.divmod(np.unique(message[has_value] * values + value[has_value]), values)
    return at, found


def _count_cells(number: Int64s, cell: Int64s, count: Int64s | None = None) -> _Cells:
    """Count pairs of a number and a cell, sorted by both; those of which there is no message are left out."""
    cells = int(cell.max(initial=0)) + 1
    joined, span = number * cells + cell, (int(number.max(initial=0)) + 1) * cells
    if span <= MAX_CELLS:
        distinct, counted = np.arange(span), np.bincount(joined, count, span).astype(np.int64)
    else:
        distinct, which = np.unique(joined, return_inverse=True)
        counted = np.bincount(which, count).astype(np.int64)
    found = np.flatnonzero(counted)
    return _Cells(*np.divmod(distinct[found], cells), counted[found])


def _keep_labels(counted: LabelTally) -> LabelTally:
    """Return the counts of the first labels of each node, which are among the first of every shard that has them."""
    labels: dict[int, set[str]] = defaultdict(set)
    for key in counted.keys:
        labels[key.node].add(key.label)
    if max(map(len, labels.values())) <= MAX_LABELS:
        return counted
    kept = {(node, label) for node, of_node in labels.items() for label in sorted(of_node)[:MAX_LABELS]}
    is_kept = np.array([key[:2] in kept for key in counted.keys], bool)
    place, chosen = np.cumsum(is_kept) - 1, is_kept[counted.key]
    cells = (counted.mask[chosen], counted.sighted_us[chosen], counted.messages[chosen])
    keys = tuple(key for key in counted.keys if key[:2] in kept)
    return LabelTally(keys, counted.masks, counted.is_lost, place[counted.key[chosen]], *cells)


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
        if key.kind is KeyKind.VALUE:
            by_label[key.node, key.label].append(key)
    renamed: dict[LabelKey, LabelKey] = {}
    for (node, label), values in by_label.items():
        other = LabelKey(node, label, KeyKind.OTHER, "")
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
