"""Overdue messages of a window that is not final: missing at a node for longer than its deadline; SEMANTICS, "Overdue".

The window is judged as it is once it is final, with the moment that probes have reported up to in place of its horizon,
and by those messages alone of which nothing was heard since their deadline. So the promise is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import sets
from hopwatch.monitor.kernel.bounds import NodeBooks, bound_from_below, count_all_silent, find_doubts
from hopwatch.monitor.kernel.counts import CountedBooks
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.pathway import Pathway


class EarlyBooks(NamedTuple):
    """Books of a window up to a moment within it or behind it: of nodes with ids, and of nodes that count."""

    through_us: int
    books: NodeBooks
    counted: Sequence[CountedBooks]


class Overdue(NamedTuple):
    """Messages that are overdue at each node of the pathway, in order, and end to end."""

    nodes: tuple[int, ...]
    end_to_end: int

    def __bool__(self) -> bool:
        """Return whether anything is overdue."""
        return self.end_to_end > 0 or any(self.nodes)


def count_overdue(pathway: Pathway, tally: Tally, early: EarlyBooks, deadlines_us: NDArray[np.int64]) -> Overdue:
    """Return how many messages are overdue for sure, as the books stand; ``deadlines_us`` has the shape (nodes,)."""
    missing = tally.missing
    nothing = Overdue((0,) * len(pathway.nodes), 0)
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
    return Overdue(tuple(lower.nodes.tolist()), lower.end_to_end)
