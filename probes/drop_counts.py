"""Drops that no record has told yet: counted by window and cause, in a bounded room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.limits import MAX_DROPS

MAX_COUNTED: Final = 10_000
"""So many windows and causes are counted each by itself, some 2 MB: the minutes of a week."""
NO_ROOM: Final = "too many windows"
"""The cause of what is counted together, once there are more."""


class DropCounts:
    """The drops of one probe instance; not safe for threads by itself."""

    def __init__(self, most: int | None = None) -> None:
        """Start empty, with room for so many windows and causes; for ``MOST_COUNTED`` if it is not said."""
        self._max_entries = MAX_COUNTED if most is None else most
        self._counts: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        """Return how many windows and causes are counted."""
        return len(self._counts)

    def add(self, drops: Mapping[tuple[int, str], int], instead_ms: int) -> bool:
        """Count drops by (window start in ms, cause); whether each of them found room.

        What found none is counted under the window ``instead_ms``: its number is kept, its own window is not.
        """
        counts, has_room = self._counts, True
        for drop, count in drops.items():
            if drop in counts or len(counts) < self._max_entries:
                counts[drop] = counts.get(drop, 0) + count
            else:
                counts[instead_ms, NO_ROOM] = counts.get((instead_ms, NO_ROOM), 0) + count
                has_room = False
        return has_room

    def next_drops(self) -> tuple[Drop, ...]:
        """Return as many as a record may carry."""
        counts = sorted(islice(self._counts.items(), MAX_DROPS))
        return tuple(Drop(window_start_ms, count, cause) for (window_start_ms, cause), count in counts)

    def remove(self, told: Iterable[Drop]) -> None:
        """Take off what was told."""
        for drop in told:
            key = drop.window_start_ms, drop.cause
            self._counts[key] -= drop.count
            if not self._counts[key]:
                del self._counts[key]
