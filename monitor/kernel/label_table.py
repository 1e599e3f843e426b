"""Rows by label of a judged window: the figures of each node, split by the values that messages carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import sets
from hopwatch.monitor.kernel.label_lags import Value, ValueLags, split_label_lags
from hopwatch.monitor.kernel.labels import KeyKind, LabelKey
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import LabelCounts, LabelValueKind, NodeResult
from hopwatch.monitor.texts import loss_bounds

MAX_SHOWN_VALUES: Final = 50
"""Values of a label at a node that a window shows."""

Int64s = NDArray[np.int64]

_FIGURES: Final = ("expected_or_seen", "filtered", "rejected", "loss", "in_flight")
"""Figures of a row, in the order of their fields."""
_LAG_FIGURES: Final = ("departures", "slow")
"""Further figures of a row of a value that the node itself says."""
_KINDS: Final = {
    KeyKind.VALUE: LabelValueKind.VALUE,
    KeyKind.OTHER: LabelValueKind.OTHER,
    KeyKind.ANY: LabelValueKind.NONE,
}
"""Kind of the row of a key: what is known of messages with any value shows how many have none."""


_NO_DEPARTURES: Final = ValueLags(0, 0, None)


class _Row(NamedTuple):
    """Row of a value, before its loss is judged; the last three are None where another node says the value."""

    kind: LabelValueKind
    value: str
    expected_or_seen: int
    filtered: int
    rejected: int
    loss: int
    in_flight: int
    departures: int | None
    slow: int | None
    slow_dispersion: float | None


def tabulate_labels(
    pathway: Pathway, tally: Tally, nodes: Sequence[NodeResult], before_us: int, *, is_final: bool
) -> tuple[tuple[LabelCounts, ...], ...]:
    """Return the rows of each node of a judged window: by label, by the node that says it, and by value.

    A message that was first sighted at ``before_us`` or later is in flight, and so is everything until the window is
    final. ``nodes`` are those of the window, whose loss is split.
    """
    counted = tally.labels
    if counted is None:
        return ((),) * len(nodes)
    settled = counted.messages * (is_final & (counted.sighted_us < before_us))
    found = _split_sets(pathway, counted.masks)
    # Of all messages that a node saw, less those with a value, the others have none.
    seen = sets.classify(pathway, tally.masks).seen
    all_settled = tally.settled(before_us) if is_final else 0 * tally.counts
    every = _weigh(_split_sets(pathway, tally.masks), tally.counts, all_settled)
    whole = np.stack([seen.T.astype(np.int64) @ cells for cells in every])
    saying: dict[str, list[int]] = defaultdict(list)
    groups = [(key, list(own)) for key, own in groupby(counted.keys, itemgetter(0, 1))]
    for (source, label), _ in groups:
        saying[label].append(source)
    sources = {
        label: [find_sources(pathway, node, said) for node in range(len(nodes))] for label, said in saying.items()
    }
    tables: dict[tuple[int, str, int], list[LabelCounts]] = {}
    lags = split_label_lags(tally.label_lags)
    first = 0
    # One label of one node at a time: all of them may be very many.
    for (source, label), keys in groups:
        start, end = np.searchsorted(counted.key, (first, first + len(keys))).tolist()
        of_cell = counted.mask[start:end]
        cells = _weigh([column[of_cell] for column in found], counted.messages[start:end], settled[start:end])
        figures = np.zeros((len(_FIGURES), len(keys), len(nodes)), np.int64)
        for figure, column in zip(figures, cells, strict=True):
            np.add.at(figure, counted.key[start:end] - first, column)
        for place, key in enumerate(keys):
            if key.kind is KeyKind.ANY:
                figures[:, place] = whole[:, source] - figures[:, place]
        for node, own in enumerate(nodes):
            if source in sources[label][node]:
                rows = _build_rows(keys, figures[:, :, node], lags.get((node, label)) if source == node else None)
                told = label, pathway.nodes[source]
                tables[node, label, source] = [_judge_row(own, *told, row) for row in _bound_rows(rows)]
        first += len(keys)
    ordered = sorted(tables)
    return tuple(
        tuple(row for place in ordered if place[0] == node for row in tables[place]) for node in range(len(nodes))
    )


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


def _split_sets(pathway: Pathway, words: NDArray[np.uint64]) -> list[NDArray[np.bool_]]:
    """Return the sets that are split, by mask and node; the last is what is lost."""
    found = sets.classify(pathway, words)
    return [found.expected | found.seen, found.filtered, found.rejected, found.loss]


def _weigh(found: Sequence[NDArray[np.bool_]], messages: Int64s, settled: Int64s) -> list[Int64s]:
    """Return the figures of each row, of so many messages, by node."""
    *whole, loss = found
    left = (messages - settled)[:, None]
    return [*(column * messages[:, None] for column in whole), loss * settled[:, None], loss * left]


def _build_rows(keys: Sequence[LabelKey], figures: Int64s, lags: Mapping[Value, ValueLags] | None) -> list[_Row]:
    """Return the rows of keys at a node, of those that have messages there; figures of shape (figures, keys).

    ``lags`` are what departed of each value; None where the node does not say the label itself.
    """
    rows = []
    for key, column in zip(keys, figures.T.tolist(), strict=True):
        kind = _KINDS[key.kind]
        own = (None, None, None) if lags is None else lags.get((kind, key.value), _NO_DEPARTURES)
        # The first of the figures is of all messages.
        if column[0]:
            rows.append(_Row(kind, key.value, *column, *own))
    return rows


def _bound_rows(rows: Iterable[_Row]) -> list[_Row]:
    """Return the first values, all others as one, and last what has no value."""
    ordered = sorted(rows, key=lambda row: (-row.loss, -row.in_flight, -row.expected_or_seen, row.value))
    values = [row for row in ordered if row.kind is LabelValueKind.VALUE]
    # Sorting is stable: of equally slow values those with the most messages come first.
    ranked = sorted(values, key=lambda row: (-row.loss, -row.in_flight, -(row.slow or 0)))
    chosen = {row.value for row in ranked[:MAX_SHOWN_VALUES]}
    shown = [row for row in values if row.value in chosen]
    others = [row for row in values if row.value not in chosen]
    others += [row for row in ordered if row.kind is LabelValueKind.OTHER]
    if others:
        names = _FIGURES if others[0].departures is None else (*_FIGURES, *_LAG_FIGURES)
        summed = {name: sum(getattr(row, name) for row in others) for name in names}
        shown.append(others[0]._replace(kind=LabelValueKind.OTHER, value="", slow_dispersion=None, **summed))
    return shown + [row for row in ordered if row.kind is LabelValueKind.NONE]


def _judge_row(node: NodeResult, label: str, said_at: str, row: _Row) -> LabelCounts:
    """Return a row with the bounds of its loss: any of what is not sure of the node's loss may be in it."""
    lower, upper = loss_bounds.bound_part(row.loss, node.loss, node.loss_lower, node.loss_upper)
    if row.kind is LabelValueKind.OTHER:
        # Of several values a message is counted with each: all that is not sure may be here several times.
        lower = row.loss if node.loss_lower == node.loss else 0
    return LabelCounts(
        label, said_at, row.kind, row.value,
        row.expected_or_seen, row.filtered, row.rejected, row.loss, row.in_flight, lower, upper,
        departures=row.departures, slow=row.slow, slow_dispersion=row.slow_dispersion,
    )  # fmt: skip
