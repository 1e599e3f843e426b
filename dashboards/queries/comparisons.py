"""Query of the nodes of a stream with several versions: the newest of each is compared with the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from sqlalchemy import Connection

from hopwatch.monitor.lookup.comparison import MAX_SPAN_US, ComparisonQuery, VersionComparison, read_comparison
from hopwatch.monitor.store.label_counts import VERSION_LABEL, read_side_by_side

MAX_COMPARISONS: Final = 5
"""Nodes that are shown, those with the newest version first."""


@dataclass(frozen=True, slots=True)
class ComparisonsQuery:
    """Query of the newest version of each node that has several in ``[from_us, to_us)``, compared with all others.

    The last day of the range counts, at most. Versions that have too few windows with messages of others are left out.
    """

    fresh_for_us: ClassVar = 60_000_000
    """A comparison is made of each minute of its node, and changes once a minute."""

    stream: str
    from_us: int
    to_us: int

    def run(self, connection: Connection) -> tuple[VersionComparison, ...]:
        """Return them."""
        span_us = self.from_us, self.to_us
        newest = read_side_by_side(connection, self.stream, VERSION_LABEL, span_us, MAX_COMPARISONS)
        from_us = max(self.from_us, self.to_us - MAX_SPAN_US)
        found = [
            read_comparison(
                connection,
                ComparisonQuery(self.stream, one.node, candidate=one.value, from_us=from_us, to_us=self.to_us),
            )
            for one in newest
        ]
        return tuple(one for one in found if one.loss.difference or (one.slow and one.slow.difference))
