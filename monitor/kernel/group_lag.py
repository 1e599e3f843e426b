"""Lag of a consumer group in a topic, in offsets, by partition."""

from __future__ import annotations

from typing import Any, NamedTuple


class PartitionLag(NamedTuple):
    """Lag of a group in a partition, in offsets.

    ``committed`` is None where the group has committed nothing: then all that is there counts. ``deleted`` are offsets
    behind the committed one that retention has deleted, and no consumer can read any more.
    """

    partition: int
    committed: int | None
    end: int
    lag: int
    deleted: int


class GroupLag(NamedTuple):
    """Lag of the consumer group of a node in a topic that ``source`` writes, by partition."""

    node: str
    source: str
    topic: str
    group: str
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        """Return the lag in all partitions."""
        return sum(one.lag for one in self.partitions)

    @property
    def deleted(self) -> int:
        """Return the offsets of all partitions that were deleted before they were read."""
        return sum(one.deleted for one in self.partitions)

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        partitions = [one._asdict() for one in self.partitions]
        return self._asdict() | {"lag": self.lag, "deleted": self.deleted, "partitions": partitions}


def measure_lag(partition: int, committed: int, start: int, end: int) -> PartitionLag:
    """Return the lag of a partition that has the offsets from ``start`` to before ``end``.

    ``committed`` is the next offset that the group reads, negative where it has committed none. An end that is before
    it is one of a topic that was made anew, or a committed offset that is read later than the end: there is no lag.
    """
    if committed < 0:
        return PartitionLag(partition, None, end, end - start, 0)
    return PartitionLag(partition, committed, end, max(0, end - max(committed, start)), max(0, start - committed))
