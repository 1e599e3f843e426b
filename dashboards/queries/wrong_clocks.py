"""Query of the clocks of a stream's probes that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import Connection

from hopwatch.monitor.accounting.instances import InstanceClock
from hopwatch.monitor.store import instances


@dataclass(frozen=True, slots=True)
class WrongClocksQuery:
    """Query of the clocks of a stream's reporting instances that are surely wrong, those farthest off first."""

    fresh_for_us: ClassVar = 10_000_000
    """A clock is measured every ten seconds."""

    stream: str

    def run(self, connection: Connection) -> tuple[InstanceClock, ...]:
        """Return them."""
        return instances.read_wrong_clocks(connection, self.stream)
