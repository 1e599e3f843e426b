"""Unreported drops, counted by window and cause in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.limits import MAX_DROPS

MAX_COUNTED: Final = 10_000
"""Pairs of window and cause that are counted separately, about 2 MB: the windows of a week."""
MAX_DROPPED: Final = 2**53
"""Drops of one window and cause count at most this many: counts of messages may be as large as 64 bits hold."""
NO_ROOM: Final = "too many windows"
"""Cause of the drops beyond that, which are counted together."""


class DropCounts:
    """Unreported drops of one probe instance; not thread-safe."""

    def __init__(self, most: int | None = None) -> None:
        """Start empty, with room for ``most`` pairs of window and cause, by default ``MAX_COUNTED``."""
        self._max_entries = MAX_COUNTED if most is None else most
        self._counts: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        """Return the number of pairs of window and cause."""
        return len(self._counts)

    def add(self, drops: Mapping[tuple[int, str], int], instead_ms: int) -> bool:
        """Count drops by (window start in ms, cause); return whether all of them found room.

        Those without room are counted in the window ``instead_ms``: their number is kept, their own window is not.
        """
        counts, has_room = self._counts, True
        for drop, count in drops.items():
            if drop in counts or len(counts) < self._max_entries:
                counts[drop] = min(counts.get(drop, 0) + count, MAX_DROPPED)
            else:
                counts[instead_ms, NO_ROOM] = min(counts.get((instead_ms, NO_ROOM), 0) + count, MAX_DROPPED)
                has_room = False
        return has_room

    def next_drops(self) -> tuple[Drop, ...]:
        """Return as many drops as a record may carry."""
        counts = sorted(islice(self._counts.items(), MAX_DROPS))
        return tuple(Drop(window_start_ms, count, cause) for (window_start_ms, cause), count in counts)

    def remove(self, told: Iterable[Drop]) -> None:
        """Subtract drops that were reported."""
        for drop in told:
            key = drop.window_start_ms, drop.cause
            self._counts[key] -= drop.count
            if not self._counts[key]:
                del self._counts[key]
