"""Probes and holes of the transport that keep windows from being judged, or from having an upper bound of loss. Pure.

They are the causes behind what :mod:`monitor.kernel.completeness` finds of windows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from hopwatch.monitor.accounting.holes import Hole, find_touched_windows
from hopwatch.monitor.kernel.books import Book, judge_books
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.probes.contract.limits import WINDOW_US

MAX_NAMED: Final = 20
"""Most probes, and most holes, that are named."""


class SightedWindow(NamedTuple):
    """Window by its start, and when one of its messages was last sighted for the first time; both in µs."""

    start_us: int
    last_sighting_us: int


class MissingAccount(NamedTuple):
    """Probe instance whose account of some windows is not told, or that dropped observations of them.

    ``since_us`` is up to when it has reported everything; ``missing_batches`` are numbers that never came, ``windows``
    how many of the windows asked for it leaves open.
    """

    node: str
    probe: str
    epoch_us: int
    since_us: int
    missing_batches: int
    dropped: int
    windows: int


def find_missing_accounts(
    books: Iterable[Book], terms: WindowPolicy, windows: Sequence[SightedWindow]
) -> list[MissingAccount]:
    """Return the instances with a say in one of the windows whose account of it is not complete; the worst first."""
    if not windows:
        return []
    starts = np.array([one.start_us for one in windows], np.int64)
    horizons = np.array([terms.horizon_us(*one) for one in windows], np.int64)
    found = []
    for piece, judged in judge_books(tuple(books), starts, starts + WINDOW_US, horizons):
        is_open = judged.has_a_say & ~judged.complete
        for place in np.flatnonzero(is_open.any(axis=1)).tolist():
            book, here = piece[place], is_open[place]
            since_us = max(book.alive_from_us, book.complete_through_us)
            dropped = int(judged.dropped[place][here].sum())
            found.append(MissingAccount(*book.key[1:], since_us, book.missing_batches, dropped, int(here.sum())))
    return sorted(found, key=lambda one: (-one.windows, one.since_us, one.node, one.probe))


def find_blocking_holes(holes: Iterable[Hole], terms: WindowPolicy, windows: Sequence[SightedWindow]) -> list[Hole]:
    """Return the holes in which a record of one of the windows may have been."""
    if not windows:
        return []
    starts = np.array([one.start_us for one in windows], np.int64)
    settled_at = np.array([terms.settled_at_us(*one) for one in windows], np.int64)
    return [one for one in holes if find_touched_windows([one], starts, settled_at).any()]
