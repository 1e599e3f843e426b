"""Earlier results of windows, read inside the transaction that will change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.payloads import unpack_tally
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.store import reader
from hopwatch.monitor.stream_config import StreamConfig

PackedTallies = dict[tuple[str, int], dict[int, bytes]]
"""Packed tallies by window, that is stream and start in µs, and by shard."""


@dataclass(frozen=True, slots=True)
class StoredPast:
    """A :class:`monitor.accounting.ledger.PriorResults` over one transaction.

    ``packed`` are tallies that it has written itself.
    """

    connection: Connection
    rules: Mapping[str, StreamConfig]
    packed: PackedTallies = field(default_factory=dict)

    def tallies(self, stream: str, start_us: int) -> list[Tally]:
        """Return the tallies of a window's shards, the newest of each."""
        known = self.packed.get((stream, start_us), {})
        if len(known) == self.rules[stream].at(start_us).shards:
            return [unpack_tally(known[shard]) for shard in sorted(known)]
        return reader.read_tallies(self.connection, stream, start_us)

    def result(self, stream: str, start_us: int) -> WindowResult | None:
        """Return the last result of the window."""
        return reader.read_window(self.connection, stream, start_us)

    def lost_ids(self, stream: str, start_us: int) -> set[bytes]:
        """Return the ids that are stored as lost at any node of the window."""
        return set().union(*reader.read_window_lost_ids(self.connection, stream, start_us).values())
