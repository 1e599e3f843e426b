"""Moves of partitions from one probe of a node to another one, as after a rebalance of a consumer group.

A partition of which several probes report at once, as of two topics, is shared and never moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple

from hopwatch.monitor.payloads import FactSheet

GRACE_US: Final = 15_000_000
"""The last batches of a reader may arrive so long after the first ones of the next reader."""
CONFIRMED_AFTER_US: Final = 30_000_000
"""A move is told once nothing of the reader before has come for so long."""
SHARED_FOR_US: Final = 600_000_000
"""A partition that was shared is taken for shared for so long, and so is one that comes back to a reader."""
MAX_TRACKED: Final = 20_000
"""Partitions of nodes that are tracked, the first ones."""

_Place = tuple[str, str, str]
"""Stream, node and partition."""


class PartitionMove(NamedTuple):
    """Move of partitions of a node, whose names are in order, at the arrival of the first batch of a new reader."""

    stream: str
    node: str
    at_us: int
    partitions: tuple[str, ...]


class _Reading(NamedTuple):
    """Arrivals of a probe's batches of a partition."""

    first_us: int
    last_us: int
    place: _Place
    probe: str


@dataclass(slots=True)
class _Partition:
    """Reader of a partition, and the moment when it was heard last; and those that may have followed it."""

    reader: str
    heard_us: int
    followers: dict[str, int] = field(default_factory=dict)
    """The moments at which they were heard last, in the order in which they were heard first."""
    followed_us: int = 0
    """The moment at which the first of them was heard first."""
    shared_until_us: int = 0
    left_us: dict[str, int] = field(default_factory=dict)
    """The moments at which former readers were followed, of the last minutes."""

    def note(self, probe: str, first_us: int, last_us: int) -> None:
        """Take the arrivals of a probe's batches."""
        if probe == self.reader:
            self.heard_us = max(self.heard_us, last_us)
        else:
            self.followed_us = self.followed_us if self.followers else first_us
            self.followers[probe] = max(last_us, self.followers.get(probe, 0))
        if self.followers and self.heard_us > self.followed_us + GRACE_US:
            self.shared_until_us = max(self.heard_us, last_us) + SHARED_FOR_US
            self.followers.clear()

    def move(self, now_us: int) -> int | None:
        """Let a follower be the reader if it is time, and return when it began; None if there is nothing to tell."""
        since_us = self.followed_us
        if not self.followers or now_us < since_us + CONFIRMED_AFTER_US:
            return None
        self.left_us = {one: at_us for one, at_us in self.left_us.items() if at_us > since_us - SHARED_FOR_US}
        if self.left_us.keys() & self.followers.keys():
            self.shared_until_us = since_us + SHARED_FOR_US
        self.left_us[self.reader] = since_us
        self.reader, self.heard_us = max(self.followers.items(), key=itemgetter(1))
        self.followers.clear()
        return since_us if since_us >= self.shared_until_us else None


@dataclass(slots=True)
class PartitionTracker:
    """Readers of partitions, as far as labels tell them; after a restart of the monitor it begins with none."""

    partitions: dict[_Place, _Partition] = field(default_factory=dict)

    def absorb(self, sheets: Collection[FactSheet]) -> list[PartitionMove]:
        """Take the batches of a micro-batch, and return the moves that are sure by now, one of a node."""
        readings = [
            _Reading(first_us, last_us, (sheet.stream, sheet.node, partition), sheet.probe)
            for sheet in sheets
            for partition, (first_us, last_us) in sheet.partitions.items()
        ]
        for reading in sorted(readings):
            self._note(reading)
        if not self.partitions:
            return []
        now_us = max((fact.arrival_us for sheet in sheets for fact in sheet.facts), default=0)
        moved: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        for (stream, node, name), tracked in self.partitions.items():
            at_us = tracked.move(now_us)
            if at_us is not None:
                moved[stream, node].append((at_us, name))
        return [
            PartitionMove(*place, min(of_node)[0], tuple(sorted((name for _, name in of_node), key=_order)))
            for place, of_node in sorted(moved.items())
        ]

    def _note(self, reading: _Reading) -> None:
        partition = self.partitions.get(reading.place)
        if partition is not None:
            partition.note(reading.probe, reading.first_us, reading.last_us)
        elif len(self.partitions) < MAX_TRACKED:
            self.partitions[reading.place] = _Partition(reading.probe, reading.last_us)


def _order(partition: str) -> tuple[int, str]:
    """Order of partitions: numbers by their length first."""
    return len(partition), partition
