"""The slowest messages of a node: those with the greatest lag at departure, the greatest first, equal ones by their id.

A message that departs several times counts with its greatest lag. Order and batching change nothing, and shards merge.

Method: the least key of each block bounds what is looked at any further, so that a pass is left of what a sort would
cost. The ids decide only where more messages are equally slow than are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.naming import Names

MAX_SLOWEST_IDS: Final = 5
"""Slowest messages that a node keeps in a window at most."""

_AT_FIRST: Final = 4 * MAX_SLOWEST_IDS
"""Number of departures, or a few more, that are examined first: few messages depart more than four times."""
_MORE: Final = 8
_FEW: Final = 4
"""Candidates up to so many times the wanted number are few: all of them are examined."""
_BLOCK: Final = 64

Rows = NDArray[np.int64]


class Slowest(NamedTuple):
    """A node's slowest messages, the slowest first: ids, shape (ids, 2), lags at departure in µs, and names."""

    message_ids: Ids
    lag_us: NDArray[np.int64]
    names: Names


def find_slowest(lag_us: NDArray[np.int64], ids: Ids, rows: Rows | None = None) -> tuple[Rows, NDArray[np.int64]]:
    """Return the slowest departures, one a message, MAX_SLOWEST_IDS at most: their rows of ``ids``, and their lags.

    ``lag_us`` has the shape (departures,); ``rows`` says in which row of ``ids`` the message of each stands, in its own
    by default.
    """
    wanted = _AT_FIRST
    while True:
        is_all = len(lag_us) <= wanted * _FEW
        # The complement turns the order of all 64-bit numbers about; the negative of one of them is none.
        near = np.arange(len(lag_us)) if is_all else _foremost(~lag_us, (ids[:, 0], ids[:, 1]), rows, wanted)
        at = near if rows is None else rows[near]
        chosen = _order(lag_us[near], ids[at])
        if is_all or len(chosen) == MAX_SLOWEST_IDS:
            return at[chosen], lag_us[near[chosen]]
        wanted *= _MORE


def merge_slowest(parts: Sequence[Slowest]) -> Slowest:
    """Return the slowest of several shards, whose messages are apart."""
    ids, lag_us = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    chosen = _order(lag_us, ids)
    return Slowest(ids[chosen], lag_us[chosen], naming.join_names([part.names for part in parts]).taken(chosen))


def _order(lag_us: NDArray[np.int64], ids: Ids) -> Rows:
    """Return the first places, one of each id, by lag and id."""
    big_endian = ids.byteswap()
    by_id = np.lexsort((~lag_us, big_endian[:, 1], big_endian[:, 0]))
    ordered = ids[by_id]
    is_first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ids)]
    once: Rows = by_id[is_first]
    return once[np.argsort(~lag_us[once], kind="stable")][:MAX_SLOWEST_IDS]


def _foremost(values: NDArray[Any], halves: Sequence[NDArray[np.uint64]], rows: Rows | None, wanted: int) -> Rows:
    """Return the places of the least values, as many as are wanted or a few more; ids decide between equal ones.

    No other one is before any of them. Of those that are equal in value and id there is one. ``halves`` of the ids are
    left to be compared; ``rows`` is as in :func:`find_slowest`.
    """
    is_long = len(values) > wanted * _BLOCK
    least = np.minimum.reduceat(values, np.arange(0, len(values), _BLOCK)) if is_long else values
    bound = np.partition(least, wanted - 1)[wanted - 1]
    is_tied = values == bound
    if halves and is_tied.all():
        return _foremost(_half(halves[0], rows), halves[1:], rows, wanted)
    before, tied = np.flatnonzero(values < bound), np.flatnonzero(is_tied)
    if len(tied) > wanted * _FEW:
        of = tied if rows is None else rows[tied]
        tied = tied[_foremost(_half(halves[0], of), halves[1:], of, wanted)] if halves else tied[:1]
    return np.concatenate((before, tied))


def _half(half: NDArray[np.uint64], rows: Rows | None) -> NDArray[np.uint64]:
    """Return one half of each id as a number: these are in the order of their bytes."""
    return (half if rows is None else half[rows]).byteswap()
