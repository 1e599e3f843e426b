"""Query of the recent figures of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import Connection

from hopwatch.monitor.results import RecentFigures
from hopwatch.monitor.store import recent_figures


@dataclass(frozen=True, slots=True)
class RecentFiguresQuery:
    """Query of throughput, lag and backlog of each node in the last seconds; None where there never were any."""

    fresh_for_us: ClassVar = 2_000_000
    """They change with each trigger."""

    stream: str

    def run(self, connection: Connection) -> RecentFigures | None:
        """Return them."""
        return recent_figures.read_recent(connection, self.stream)
