"""Bad readings by their windows: a mapping that holds them by field.

An hour of them at thousands of places would be hundreds of thousands of objects; so they are a few tuples a place, and
readings are made of those that are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from alerts.reading import Reading

MOST_WITH_IDS: Final = 5
"""Of how many bad windows a place keeps lost ids: the newest ones that have any."""

_IDS: Final = Reading._fields.index("lost_ids")


@dataclass(frozen=True, slots=True)
class Bads(Mapping[int, Reading]):
    """Readings by the starts of their windows, the oldest first; ``columns`` has a value of each for each field."""

    starts: tuple[int, ...] = ()
    columns: tuple[tuple[Any, ...], ...] = ()

    @staticmethod
    def of(readings: Mapping[int, Reading]) -> Bads:
        """Return these readings in the order of their windows."""
        starts = tuple(sorted(readings))
        return Bads(starts, tuple(zip(*(readings[start] for start in starts), strict=True)))

    def __getitem__(self, start_us: int) -> Reading:
        """Return the reading of a window."""
        try:
            place = self.starts.index(start_us)
        except ValueError:
            raise KeyError(start_us) from None
        return Reading(*(column[place] for column in self.columns))

    def __iter__(self) -> Iterator[int]:
        """Return the windows, the oldest first."""
        return iter(self.starts)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.starts)

    def plus(self, start_us: int, reading: Reading) -> Bads:
        """Return these with the reading of one window, which stands instead of one that it has."""
        at = bisect_left(self.starts, start_us)
        behind = at + (start_us in self.starts)
        columns = self.columns or ((),) * len(reading)
        put = tuple((*column[:at], value, *column[behind:]) for column, value in zip(columns, reading, strict=True))
        found = _with_few_ids(Bads((*self.starts[:at], start_us, *self.starts[behind:]), put))
        return self if found == self else found

    def minus(self, start_us: int) -> Bads:
        """Return these without the reading of one window."""
        if start_us not in self.starts:
            return self
        at = self.starts.index(start_us)
        left = tuple((*column[:at], *column[at + 1 :]) for column in self.columns)
        return Bads((*self.starts[:at], *self.starts[at + 1 :]), left) if len(self) > 1 else Bads()

    def behind(self, last_us: int) -> Bads:
        """Return those of the windows behind one."""
        first = bisect_right(self.starts, last_us)
        if not first:
            return self
        return (
            Bads(self.starts[first:], tuple(column[first:] for column in self.columns)) if first < len(self) else Bads()
        )

    def __contains__(self, start_us: object) -> bool:
        """Return whether there is a reading of a window."""
        return start_us in self.starts


def _with_few_ids(bads: Bads) -> Bads:
    ids: Sequence[tuple[str, ...]] = bads.columns[_IDS]
    with_ids = [place for place, of_one in enumerate(ids) if of_one]
    if len(with_ids) <= MOST_WITH_IDS:
        return bads
    # One was added, so that one is too many.
    few = (*ids[: with_ids[0]], (), *ids[with_ids[0] + 1 :])
    return Bads(bads.starts, (*bads.columns[:_IDS], few, *bads.columns[_IDS + 1 :]))
