"""Offsets of messages that are settled out of order: the one to commit, and those settled beyond it. Pure.

The offset to commit is that of the first message which is not settled: behind a restart nothing before it is read
again, and nothing that is not settled is skipped. What is settled beyond it goes along as the metadata of the commit
(:mod:`deliver.offset_metadata`), so that it is not sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.deliver.offset_metadata import MAX_METADATA_CHARS, decode_settled, encode_settled

MAX_WINDOW: Final = 100_000
"""Default of the messages of a partition behind the first one that is not settled."""


class PartitionOffsets:
    """Offsets of one partition, from the committed position on."""

    def __init__(self, position: int, metadata: str = "", max_window: int = MAX_WINDOW) -> None:
        """Begin at a committed position with the metadata of its commit."""
        self._next = position
        self._taken: deque[int] = deque()
        """Offsets from the first unsettled one on, ascending."""
        self._unsettled: set[int] = set()
        self._known: deque[range] = deque(decode_settled(position, metadata))
        """Offsets from ``_next`` on that were settled before the restart."""
        self._max_window = max_window

    @property
    def position(self) -> int:
        """Offset to commit: all messages before it are settled."""
        return self._taken[0] if self._taken else self._next

    @property
    def has_room(self) -> bool:
        """True if another message may be taken."""
        return len(self._taken) < self._max_window

    @property
    def unsettled_count(self) -> int:
        """Number of messages that were taken and are not settled."""
        return len(self._unsettled)

    def take_message(self, offset: int) -> bool:
        """Note that a message was read; return whether it is to be delivered, False if it was before the restart.

        Raises:
            ValueError: an offset as high or higher was read already, or there is no room.
        """
        if offset < self._next:
            raise ValueError(f"offsets of a partition ascend, got {offset} where {self._next} or more comes next")
        if not self.has_room:
            raise ValueError(f"{self._max_window} messages wait behind offset {self.position}: settle it first")
        self._next = offset + 1
        while self._known and self._known[0].stop <= offset:
            self._known.popleft()
        is_settled = bool(self._known) and offset in self._known[0]
        if not is_settled:
            self._unsettled.add(offset)
            self._taken.append(offset)
        elif self._taken:
            self._taken.append(offset)
        return not is_settled

    def settle_message(self, offset: int) -> None:
        """Note that a message is settled.

        Raises:
            ValueError: it is not in hand.
        """
        if offset not in self._unsettled:
            raise ValueError(f"offset {offset} is settled already, or was never taken")
        self._unsettled.remove(offset)
        while self._taken and self._taken[0] not in self._unsettled:
            self._taken.popleft()

    def encode_metadata(self, max_chars: int = MAX_METADATA_CHARS) -> str:
        """Encode the offsets that are settled beyond the position."""
        return encode_settled(self.position, self.list_settled(), max_chars)

    def list_settled(self) -> list[range]:
        """Return the offsets that are settled beyond the position, as ascending ranges.

        A range goes over offsets between two messages that follow each other: nothing stands there.
        """
        found = list(self._list_taken_runs())
        found.extend(range(max(one.start, self._next), one.stop) for one in self._known if one.stop > self._next)
        return found

    def _list_taken_runs(self) -> Iterator[range]:
        start, stop = 0, 0
        for offset in self._taken:
            if offset not in self._unsettled:
                start, stop = (start if stop else offset), offset + 1
            elif stop:
                yield range(start, stop)
                stop = 0
        if stop:
            yield range(start, stop)


class PartitionCommit(NamedTuple):
    """Offset of a partition to commit, with its metadata."""

    topic: str
    partition: int
    offset: int
    metadata: str


class OffsetTracker:
    """Offsets of all partitions that this process has."""

    def __init__(self, max_window: int = MAX_WINDOW) -> None:
        """Begin without partitions; ``max_window`` is of each."""
        self._max_window = max_window
        self._partitions: dict[tuple[str, int], PartitionOffsets] = {}
        self._changed: set[tuple[str, int]] = set()

    def assign_partition(self, topic: str, partition: int, position: int, metadata: str = "") -> None:
        """Begin with a partition at its committed position; what was known of it is forgotten."""
        self._partitions[topic, partition] = PartitionOffsets(position, metadata, self._max_window)
        self._changed.discard((topic, partition))

    def revoke_partition(self, topic: str, partition: int) -> None:
        """Forget a partition."""
        self._partitions.pop((topic, partition), None)
        self._changed.discard((topic, partition))

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether this process has the partition."""
        return (topic, partition) in self._partitions

    def has_room(self, topic: str, partition: int) -> bool:
        """Return whether another message of the partition may be taken."""
        return self._partitions[topic, partition].has_room

    def take_message(self, topic: str, partition: int, offset: int) -> bool:
        """Note that a message was read; return whether it is to be delivered, as of a partition."""
        is_new = self._partitions[topic, partition].take_message(offset)
        if not is_new:
            self._changed.add((topic, partition))
        return is_new

    def settle_message(self, topic: str, partition: int, offset: int) -> None:
        """Note that a message of a partition that this process has is settled."""
        self._partitions[topic, partition].settle_message(offset)
        self._changed.add((topic, partition))

    def list_commits(self) -> list[PartitionCommit]:
        """Return the commits of all partitions that changed since :meth:`clear_changes`."""
        return [
            PartitionCommit(topic, partition, found.position, found.encode_metadata())
            for (topic, partition), found in self._partitions.items()
            if (topic, partition) in self._changed
        ]

    def clear_changes(self) -> None:
        """Note that the commits were made."""
        self._changed.clear()
