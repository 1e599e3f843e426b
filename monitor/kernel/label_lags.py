"""Slow departures by label: how many of each value's are among the slowest of its node, and how evenly in time.

A departure is slow if its lag is at least the p95 of its node in its shard of the window. Departures are counted by
value and by the time at which they came to the monitor, which tells a value that is slow all the time from one that
shared a slow moment with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.labels import NO_VALUE, KeyKind, LabelKey, LabelledBatches, LabelNumbers, Labels
from hopwatch.monitor.kernel.tdigest import Digest
from hopwatch.monitor.results import LabelValueKind

SPAN_US: Final = 2_000_000
"""Time of arrival that is counted together: as long as probes wait before they send, by default."""
MAX_SPANS: Final = 64
"""Spans of a window; what arrives beyond them is in the last one."""
MIN_FREEDOM: Final = 10
"""Degrees of freedom from which on a dispersion is known."""
OWN_WEIGHT: Final = 0.25
"""Weight of the correlation of all values in that of one; the rest has that of all other values."""
DECIMALS: Final = 3
"""Decimals of a dispersion."""

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Value = tuple[LabelValueKind, str]
"""Kind and value of a row by label."""

_KINDS: Final = {KeyKind.VALUE: LabelValueKind.VALUE, KeyKind.OTHER: LabelValueKind.OTHER}


class BatchDepartures(NamedTuple):
    """Departures of each batch, those of them that are slow, and the span in which it arrived; shape (batches,)."""

    departures: Int64s
    slow: Int64s
    span: Int64s


class LabelLagTally(NamedTuple):
    """Departures and slow ones by key and span, sorted by both: arrays of shape (cells,).

    ``key`` is a place in ``keys``, which are sorted. That of kind ANY and no label has all departures of its node.
    """

    keys: tuple[LabelKey, ...]
    key: Int64s
    span: Int64s
    departures: Int64s
    slow: Int64s


class ValueLags(NamedTuple):
    """Departures of a value of a label from a node, slow ones of them, and the dispersion of the slow ones.

    The dispersion is the variance of their number as a multiple of what it would be if each were slow by itself, 1 at
    least; None where nothing departed, or in too few spans to know.
    """

    departures: int
    slow: int
    dispersion: float | None


def find_spans(arrivals_us: Int64s, window_start_us: int) -> Int64s:
    """Return the span of each arrival, from the start of a window on; what came before it is in the first."""
    return np.clip((arrivals_us - window_start_us) // SPAN_US, 0, MAX_SPANS - 1)


def count_departures(
    lags_us: Sequence[Int64s], digests: Sequence[Digest], has_departed: NDArray[Any], counts: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the departures of each batch, and how many of them have at least the p95 of their node.

    ``lags_us`` and ``digests`` have the lags of each node's departures, those of each node in the order of its
    observations; ``has_departed`` is of each observation, node after node, and ``counts`` of each batch.
    """
    ends, rows, begin = np.cumsum(counts), [np.empty(0, np.int64)], 0
    for of_node, digest in zip(lags_us, digests, strict=True):
        if len(of_node):
            rows.append(np.flatnonzero(of_node >= round(tdigest.quantile(digest, 0.95))) + begin)
            begin += len(of_node)
    slow, departures = np.concatenate(rows), counts
    if begin < len(has_departed):
        departed = np.flatnonzero(has_departed)
        departures, slow = np.diff(np.searchsorted(departed, ends), prepend=0), departed[slow]
    return departures, np.diff(np.searchsorted(slow, ends), prepend=0)


def count_label_lags(batches: LabelledBatches, of_batches: BatchDepartures) -> LabelLagTally | None:
    """Count the departures of each value of each label, at each node that says one; None if no batch has a label."""
    if not any(batches.labels):
        return None
    nodes = np.array(batches.nodes)
    keys: list[LabelKey] = []
    cells: list[tuple[Int64s, BatchDepartures]] = []
    for node in np.unique(nodes).tolist():
        first, last = np.searchsorted(nodes, (node, node + 1)).tolist()
        own = BatchDepartures(*(column[first:last] for column in of_batches))
        for of_label, value in _number_values(node, batches.labels[first:last]):
            cells.append((np.where(value == NO_VALUE, NO_VALUE, value + len(keys)), own))
            keys += of_label
    return _join_cells(keys, cells)


def merge_label_lags(tallies: Iterable[LabelLagTally | None], kept: Sequence[LabelKey]) -> LabelLagTally | None:
    """Merge what shards counted; ``kept`` are the keys of the labels that are counted, and values beyond them are one.

    None if no batch of any has a label.
    """
    parts = [tally for tally in tallies if tally is not None]
    if not parts:
        return None
    known, labels = set(kept), {key[:2] for key in kept}
    renamed: list[LabelKey] = []
    cells: list[tuple[Int64s, BatchDepartures]] = []
    for part in parts:
        place_of = np.full(len(part.keys), NO_VALUE)
        for place, key in enumerate(part.keys):
            if key.kind is KeyKind.ANY or key[:2] in labels:
                place_of[place] = len(renamed)
                is_own = key in known or key.kind is not KeyKind.VALUE
                renamed.append(key if is_own else LabelKey(key.node, key.label, KeyKind.OTHER, ""))
        cells.append((place_of[part.key], BatchDepartures(part.departures, part.slow, part.span)))
    return _join_cells(renamed, cells)


def split_label_lags(tally: LabelLagTally | None) -> dict[tuple[int, str], dict[Value, ValueLags]]:
    """Return what departed by node and label, with what departed without any value of it."""
    if tally is None:
        return {}
    cells = np.zeros((2, len(tally.keys), MAX_SPANS), np.int64)
    cells[:, tally.key, tally.span] = tally.departures, tally.slow
    every = {key.node: place for place, key in enumerate(tally.keys) if key.kind is KeyKind.ANY}
    found: dict[tuple[int, str], dict[Value, ValueLags]] = {}
    places = [place for place, key in enumerate(tally.keys) if key.kind is not KeyKind.ANY]
    for (node, label), own in groupby(places, lambda place: tally.keys[place][:2]):
        chosen = list(own)
        with_value = cells[:, chosen]
        # What departed with no value of the label is the rest.
        without = cells[:, every[node]] - with_value.sum(1)
        values = [(_KINDS[tally.keys[place].kind], tally.keys[place].value) for place in chosen]
        lags = _sum_values(np.concatenate((with_value, without[:, None]), axis=1))
        found[node, label] = dict(zip([*values, (LabelValueKind.NONE, "")], lags, strict=True))
    return found


def _number_values(node: int, labels: Sequence[Labels]) -> Iterator[tuple[list[LabelKey], Int64s]]:
    """Yield the keys of each label of a node, and the place among them of the value of each batch; first of no label.

    Nothing is yielded of a node that says no label.
    """
    if any(labels):
        yield [LabelKey(node, "", KeyKind.ANY, "")], np.zeros(len(labels), np.int64)
        numbers = LabelNumbers.find(labels)
        for label, values, value_of in numbers.iter_labels():
            yield [LabelKey(node, label, KeyKind.VALUE, value) for value in values], value_of[numbers.number]


def _join_cells(keys: Sequence[LabelKey], cells: Sequence[tuple[Int64s, BatchDepartures]]) -> LabelLagTally:
    """Return cells sorted by key and span, equal ones added, those without a key or a departure left out.

    The key of a cell is a place in ``keys``.
    """
    own = sorted(set(keys))
    places = {one: place for place, one in enumerate(own)}
    key, departures, slow, span = (
        np.concatenate(column) for column in zip(*((number, *of_cells) for number, of_cells in cells), strict=True)
    )
    chosen = (key != NO_VALUE) & (departures > 0)
    place = np.array([places[one] for one in keys], np.int64)[key[chosen]]
    cell, which = np.unique(place * MAX_SPANS + span[chosen], return_inverse=True)
    counted = (np.bincount(which, column[chosen], len(cell)).astype(np.int64) for column in (departures, slow))
    return LabelLagTally(tuple(own), *np.divmod(cell, MAX_SPANS), *counted)


def _sum_values(cells: Int64s) -> list[ValueLags]:
    """Return what departed of each value; cells have the shape (2, values, spans): departures, and slow ones."""
    dispersions = _estimate_dispersions(*cells)
    return [ValueLags(*of_value) for of_value in zip(*cells.sum(2).tolist(), dispersions, strict=True)]


def _estimate_dispersions(departures: Int64s, slow: Int64s) -> list[float | None]:
    """Return the dispersion of each value, for counts of shape (values, spans).

    Departures of one value and span are alike to some degree: the correlation within a class, by the method of moments.
    That of a value is mostly what it is for all others, as its own may be what a cause makes. What it makes of the
    variance goes by how many depart together.
    """
    spans, whole = np.count_nonzero(departures, axis=1), departures.sum(1)
    if int(np.maximum(spans - 1, 0).sum()) < MIN_FREEDOM:
        return [None] * len(departures)
    share = (slow.sum(1) / np.maximum(whole, 1))[:, None]
    # A share that is estimated from few spans is nearer to them than the true one.
    squares = (slow - departures * share) ** 2 * (spans / np.maximum(spans - 1, 1))[:, None]
    chance = departures * share * (1 - share)
    alike, more = (chance * (departures - 1)).sum(1), (squares - chance).sum(1)
    of_all, of_others = _divide(more.sum(), alike.sum()), _divide(_sum_others(more), _sum_others(alike))
    correlation = OWN_WEIGHT * of_all + (1 - OWN_WEIGHT) * of_others
    together = (departures**2).sum(1) / np.maximum(whole, 1)
    found: list[float] = (1 + correlation * np.maximum(together - 1, 0)).tolist()
    return [round(one, DECIMALS) if count else None for one, count in zip(found, whole.tolist(), strict=True)]


def _divide(more: Floats, alike: Floats) -> Floats:
    """Return correlations, 0 at least; 0 where nothing is alike."""
    found = np.where(alike > 0, more / np.where(alike > 0, alike, 1.0), 0.0)
    return np.maximum(found, 0.0)


def _sum_others(values: Floats) -> Floats:
    """Return for each value the sum of all others; no difference is taken, so that the sum of zeros is zero."""
    before, behind = np.cumsum(values[:-1]), np.cumsum(values[:0:-1])[::-1]
    others: Floats = np.append(0.0, before) + np.append(behind, 0.0)
    return others
