"""Counts of the records that wait in one partition, by schema and by the minute since which they wait. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Final

from hopwatch.probes.avro_reader import SchemaRef

MINUTE_US: Final = 60_000_000


class WaitingCounts:
    """Number of records that wait in a partition: memory is bounded by schemas and minutes, not by records."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._counts: Counter[tuple[SchemaRef | None, int]] = Counter()

    def add(self, writer: SchemaRef | None, since_us: int) -> None:
        """Count a record."""
        self._counts[writer, since_us // MINUTE_US] += 1

    def remove(self, writer: SchemaRef | None, since_us: int) -> None:
        """Count a record that waits no more."""
        key = writer, since_us // MINUTE_US
        self._counts[key] -= 1
        if self._counts[key] <= 0:
            del self._counts[key]

    def by_schema(self) -> Counter[SchemaRef | None]:
        """Return the number of records by schema."""
        found: Counter[SchemaRef | None] = Counter()
        for (writer, _), count in self._counts.items():
            found[writer] += count
        return found

    def has_others(self, unknown: Container[SchemaRef | None]) -> bool:
        """Return whether a record waits for none of these schemas."""
        return any(writer not in unknown for writer, _ in self._counts)

    def has_expired(self, hold_us: int, now_us: int) -> bool:
        """Return whether all records of some minute have waited for so long."""
        return any((minute + 1) * MINUTE_US + hold_us <= now_us for _, minute in self._counts)
