"""Counts by second of event time: which of a window's messages are of each of its seconds, and what became of them.

Messages are counted by their masks, as those by label are: so the loss of every node can be split when a window is
judged. A window in which no message is missing at any node needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks, sets
from hopwatch.monitor.kernel.deferrals import ALWAYS_US
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import SECONDS, SecondCounts

SECOND_US: Final = 1_000_000
UNKNOWN_OFFSET_US: Final = 255 * SECOND_US
"""Event offset of an observation that tells none; no second of a window is so late."""

Int64s = NDArray[np.int64]


class SecondTally(NamedTuple):
    """Counts of messages by mask, second and first sighting.

    ``masks`` has the shape (rows, words), ``counts``, ``sighted_us`` and ``second`` the shape (rows,): how many
    messages have the row's mask and event times in the row's second of the window, 0 to 59, and were first sighted
    then. The sighting is ALWAYS_US of all that no node lost.
    """

    masks: NDArray[np.uint64]
    counts: Int64s
    sighted_us: Int64s
    second: Int64s


class WindowSeconds(NamedTuple):
    """Messages of a window: their seconds, masks, and first sightings.

    ``masks`` are distinct, shape (masks, words), and ``is_lost`` says of which a node lost them. ``second``, ``place``
    and ``moment`` have the second, the mask and the sighting of each message, the last two as places in ``masks`` and
    ``moments_us``; all of shape (messages,). A second of 60 or more is not known.
    """

    second: NDArray[np.uint8]
    masks: NDArray[np.uint64]
    is_lost: NDArray[np.bool_]
    place: Int64s
    moments_us: Int64s
    moment: NDArray[Any]


def count_seconds(window: WindowSeconds) -> SecondTally:
    """Count the messages of each second, those whose second is known; order and batching change nothing."""
    # What no node lost needs no sighting: nobody asks since when it is settled.
    numbers, cells = np.arange(len(window.masks), dtype=np.uint64)[:, None], np.arange(SECONDS + 1)
    number, counts, second = masks.count_rows(numbers, window.place, cells, np.minimum(window.second, SECONDS))
    kept = (second < SECONDS) & ~window.is_lost[number[:, 0].astype(np.int64)]
    words, whole = window.masks[number[kept, 0].astype(np.int64)], int(np.count_nonzero(kept))
    found = SecondTally(words, counts[kept], np.full(whole, ALWAYS_US), second[kept])
    at = np.flatnonzero(window.is_lost[window.place] & (window.second < SECONDS))
    cell = window.moment[at].astype(np.int64) * SECONDS + window.second[at]
    lost = _count_rows(window.masks, window.moments_us, window.place[at], cell)
    return SecondTally(*(np.concatenate(column) for column in zip(found, lost, strict=True)))


def merge_second_tallies(parts: Iterable[SecondTally | None]) -> SecondTally | None:
    """Merge what shards counted, whose messages are apart; None where one of them has not counted."""
    counted = []
    for part in parts:
        if part is None:
            return None
        counted.append(part)
    if not counted:
        return None
    words, counts, sighted_us, second = (np.concatenate(column) for column in zip(*counted, strict=True))
    distinct, place = masks.find_distinct(words)
    moments_us, moment = np.unique(sighted_us, return_inverse=True)
    return _count_rows(distinct, moments_us, place, moment * SECONDS + second, counts)


def tabulate_seconds(pathway: Pathway, tally: SecondTally | None, before_us: int) -> tuple[SecondCounts | None, ...]:
    """Return the counts by second of each node of a final window, in order.

    None where nothing is missing of which the second is known. A message that was first sighted at ``before_us`` or
    later is in flight: it is neither among the messages nor lost.
    """
    if tally is None:
        return (None,) * len(pathway.nodes)
    found = sets.classify(pathway, tally.masks)
    is_settled = (tally.sighted_us < before_us)[:, None]
    lost = found.loss & is_settled
    is_counted = (found.expected | found.seen) & (is_settled | ~found.loss)
    by_node = zip(_add_up(tally, is_counted), _add_up(tally, lost), strict=True)
    return tuple(SecondCounts(*map(tuple, counts)) if any(counts[1]) else None for counts in by_node)


def _add_up(tally: SecondTally, chosen: NDArray[np.bool_]) -> list[list[int]]:
    """Return the messages of the chosen rows by node and second; ``chosen`` has the shape (rows, nodes)."""
    summed = np.zeros((SECONDS, chosen.shape[1]), np.int64)
    np.add.at(summed, tally.second, chosen * tally.counts[:, None])
    columns: list[list[int]] = summed.T.tolist()
    return columns


def _count_rows(
    distinct: NDArray[np.uint64],
    moments_us: Int64s,
    place: Int64s,
    cell: NDArray[Any],
    counts: Int64s | None = None,
) -> SecondTally:
    """Count by mask and cell, which is the place of a moment times the seconds of a window, and the second."""
    cells = np.arange(len(moments_us) * SECONDS)
    words, found, filled = masks.count_rows(distinct, place, cells, cell, counts)
    return SecondTally(words, found, moments_us[filled // SECONDS], filled % SECONDS)
