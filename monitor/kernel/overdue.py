"""Overdue messages of a window that is not final: missing at a node for longer than its deadline; SEMANTICS, "Overdue".

The window is judged as it is once it is final, with the moment that probes have reported up to in place of its horizon,
and by those messages alone of which nothing was heard since their deadline. So the promise is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import naming, sets
from hopwatch.monitor.kernel.bounds import NodeBooks, bound_from_below, count_all_silent, find_doubts
from hopwatch.monitor.kernel.counts import CountedBooks
from hopwatch.monitor.kernel.tally import LostIds, Tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_OVERDUE_IDS


class EarlyBooks(NamedTuple):
    """Books of a window up to a moment within it or behind it: of nodes with ids, and of nodes that count."""

    through_us: int
    books: NodeBooks
    counted: Sequence[CountedBooks]


class Overdue(NamedTuple):
    """Messages that are overdue at each node of the pathway, in order, and end to end; and ids of those of each node.

    ``ids`` are the first in byte order of the messages that are due there, where any is overdue for sure.
    """

    nodes: tuple[int, ...]
    end_to_end: int
    ids: tuple[tuple[str, ...], ...]

    def __bool__(self) -> bool:
        """Return whether anything is overdue."""
        return self.end_to_end > 0 or any(self.nodes)


def count_overdue(pathway: Pathway, tally: Tally, early: EarlyBooks, deadlines_us: NDArray[np.int64]) -> Overdue:
    """Return how many messages are overdue for sure, as the books stand; ``deadlines_us`` has the shape (nodes,)."""
    missing = tally.missing
    nothing = Overdue((0,) * len(pathway.nodes), 0, ((),) * len(pathway.nodes))
    if missing is None:
        return nothing
    # A node without a deadline has the longest there is: no sum may wrap.
    due = missing.last_us[:, None] <= early.through_us - deadlines_us
    if not due.any():
        return nothing
    doubts = find_doubts(pathway, sets.classify(pathway, tally.masks), tally)
    silent = count_all_silent(pathway, tally, early.counted)
    found = sets.classify(pathway, missing.masks)
    lower = bound_from_below(pathway, found, missing.counts, early.books, doubts, early.counted, silent, due)
    due_us = (early.through_us - deadlines_us).tolist()
    ids = (
        _name_due(lost, before_us) if count else ()
        for lost, before_us, count in zip(tally.lost_ids, due_us, lower.nodes.tolist(), strict=True)
    )
    return Overdue(tuple(lower.nodes.tolist()), lower.end_to_end, tuple(ids))


def _name_due(lost: LostIds, due_us: int) -> tuple[str, ...]:
    """Return the first ids of a node's loss of which nothing was heard since a moment."""
    due = np.flatnonzero(lost.last_us <= due_us)[:MAX_OVERDUE_IDS]
    return naming.format_ids(lost.message_ids[due], lost.names.taken(due))
