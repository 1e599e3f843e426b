"""What was concluded before, read from the store inside the transaction that is about to change it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from monitor.kernel.tally import Tally
from monitor.results import WindowResult
from monitor.store import reader


@dataclass(frozen=True, slots=True)
class StoredPast:
    """The :class:`monitor.ledger.Past` of one transaction."""

    connection: Connection

    def tallies(self, stream: str, start_us: int) -> list[Tally]:
        """Return the tallies of a window's shards, the newest of each."""
        return reader.tallies(self.connection, stream, start_us)

    def result(self, stream: str, start_us: int) -> WindowResult | None:
        """Return the window as it was last concluded."""
        return reader.window(self.connection, stream, start_us)

    def lost_ids(self, stream: str, start_us: int) -> set[bytes]:
        """Return the ids that are kept as lost at any node of the window."""
        return reader.window_lost_ids(self.connection, stream, start_us)
