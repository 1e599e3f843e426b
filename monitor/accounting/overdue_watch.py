"""Watch of a window that is not final: what is overdue in it, and whether that has to be counted again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from hopwatch.monitor.kernel.overdue import EarlyBooks, Overdue, count_overdue
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.results import Status, WindowResult
from hopwatch.monitor.stream_config import StreamConfig


class OverdueWatch(NamedTuple):
    """Count of what is overdue in a window, as it was made last, and what it was made from.

    ``tallied`` are the shards whose tallies have all that came of the window; ``moments_us`` the last sightings of what
    is missing, ascending, of which ``due`` were due by each deadline, empty where a shard was tallied since. ``books``
    is a print of the books that counted, empty where nothing was due; ``overdue`` None where the store alone knows it.
    """

    tallied: frozenset[int] = frozenset()
    moments_us: tuple[int, ...] = ()
    due: tuple[int, ...] = ()
    books: bytes = b""
    overdue: Overdue | None = None

    def is_complete(self, config: StreamConfig) -> bool:
        """Return whether the tallies of all shards have all that came: only then books and tallies are of one time."""
        return len(self.tallied) == config.shards

    def has_due(self, config: StreamConfig, through_us: int) -> bool:
        """Return whether anything is due by now, or was when it was counted last, or was tallied since."""
        return not self.due or any(self.due) or any(_count_due(config, self.moments_us, through_us))

    def is_stale(self, config: StreamConfig, through_us: int, books: bytes) -> bool:
        """Return whether other messages are due by now, or other books count, than when it was counted last."""
        due = _count_due(config, self.moments_us, through_us)
        return (due, books if any(due) else b"") != (self.due, self.books)

    def recount(self, config: StreamConfig, tally: Tally, early: EarlyBooks, books: bytes) -> Self:
        """Return the watch with what is overdue by a tally; ``books`` is a print of the early ones."""
        moments_us = () if tally.missing is None else tuple(np.unique(tally.missing.last_us).tolist())
        due = _count_due(config, moments_us, early.through_us)
        overdue = count_overdue(config.pathway, tally, early, config.deadlines_us)
        return self._replace(moments_us=moments_us, due=due, books=books if any(due) else b"", overdue=overdue)


NOT_WATCHED: Final = OverdueWatch()
"""Watch of a window of which nothing is known: new, final, or known to the store alone."""


def _count_due(config: StreamConfig, moments_us: Sequence[int], through_us: int) -> tuple[int, ...]:
    """Return how many last sightings, ascending, are due by each of the deadlines."""
    deadlines_us = dict.fromkeys(deadline_us for _, deadline_us in config.deadlines)
    return tuple(bisect_right(moments_us, through_us - deadline_us) for deadline_us in deadlines_us)


def is_watched(config: StreamConfig, status: Status) -> bool:
    """Return whether anything may be overdue in a window: its stream has a deadline, and it is not final."""
    return bool(config.deadlines) and not status.is_final


def read_overdue(result: WindowResult | None) -> Overdue | None:
    """Return what a window said is overdue; None of none."""
    if result is None:
        return None
    nodes = result.nodes
    return Overdue(tuple(one.overdue for one in nodes), result.overdue, tuple(one.overdue_ids for one in nodes))
