"""Assigned partitions of a delivery: the records in hand of each, and how far they are settled.

The thread that polls adds and removes partitions and takes records, the one that settles takes their settlements; one
lock guards both. A settlement counts only for the assignment in which its record was taken: after a partition was
revoked, its records in hand belong to its next owner, who reads them again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from confluent_kafka import TopicPartition

from hopwatch.deliver.kafka_records import HeldRecord
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.offset_tracker import PartitionOffsets
from hopwatch.deliver.settlement import Settlement
from hopwatch.gate.start_offsets import StartOffset

SHORT_WAIT_US: Final = 20_000_000
"""Time in hand that needs no stamp; without order a message is deferred after it."""
WAIT_RENEWED_US: Final = 60_000_000
"""Time for which a message that waits in hand is stamped beyond its next try, as more may follow."""
PartitionKey = tuple[str, int]
"""Topic and partition."""


class KnownWait(NamedTuple):
    """Wait of a record in hand: since when, and until when it was stamped, 0 for not yet; µs since 1970."""

    since_us: int
    until_us: int = 0


@dataclass(slots=True)
class AssignedPartition:
    """One assigned partition; ``held`` are its records in hand, by their offsets."""

    offsets: PartitionOffsets
    next_offset: int
    committed: tuple[int, str] = (-1, "")
    """Offset of the last commit, and its metadata; -1 without one."""
    held: dict[int, HeldRecord] = field(default_factory=dict)
    waits: dict[int, KnownWait] = field(default_factory=dict)
    """Waits of records in hand, by their offsets."""
    wanted_offset: int | None = None
    """Offset of a record that was put back until its time has come, and is the next one to take."""
    until_us: int = 0
    """Time until which the partition is held back, µs since 1970; 0 for no time."""


class SettledRecord(NamedTuple):
    """Settlement with the record that it is of, and the assignment in which that was taken."""

    settlement: Settlement
    held: HeldRecord
    partition: AssignedPartition

    @property
    def key(self) -> PartitionKey:
        """Topic and partition."""
        return self.held.message.position[:2]


class Assignment:
    """Assigned partitions; thread-safe."""

    def __init__(self) -> None:
        """Begin without partitions."""
        self._partitions: dict[PartitionKey, AssignedPartition] = {}
        self._lock = threading.Lock()

    def add_partition(self, key: PartitionKey, start: StartOffset) -> None:
        """Add a partition that is read from its committed offset, without the records that are settled already."""
        position = start.committed if start.committed >= 0 else start.offset
        with self._lock:
            self._partitions[key] = AssignedPartition(
                PartitionOffsets(position, start.metadata), start.offset, (start.committed, start.metadata)
            )

    def remove_partitions(self, keys: Iterable[PartitionKey]) -> int:
        """Remove revoked partitions, and return how many records of them were in hand."""
        with self._lock:
            removed = [self._partitions.pop(key, None) for key in keys]
        return sum(len(one.held) for one in removed if one is not None)

    @property
    def keys(self) -> list[PartitionKey]:
        """Topic and partition of each."""
        with self._lock:
            return list(self._partitions)

    @property
    def in_hand(self) -> int:
        """Number of records in hand."""
        with self._lock:
            return sum(len(one.held) for one in self._partitions.values())

    def find_wanted(self, key: PartitionKey) -> int | None:
        """Return the offset of the record that is to be taken next, if it was put back and its time has come."""
        with self._lock:
            found = self._partitions.get(key)
            return None if found is None or found.until_us else found.wanted_offset

    def is_new(self, key: PartitionKey, offset: int) -> bool:
        """Return whether a record is to be taken: its partition is assigned, and it was neither taken nor settled.

        Records are delivered again when their partition got another leader, and those behind a record that was put
        back may still come before it.
        """
        with self._lock:
            found = self._partitions.get(key)
            if found is None or offset < found.next_offset or found.until_us:
                return False
            return found.wanted_offset is None or offset <= found.wanted_offset

    def is_at_end(self, key: PartitionKey, offset: int) -> bool:
        """Return whether all records before an offset, the end of a partition, were taken: none was put back."""
        with self._lock:
            found = self._partitions.get(key)
            return found is not None and found.wanted_offset is None and offset >= found.next_offset

    def has_room(self, key: PartitionKey) -> bool:
        """Return whether another record of a partition may be taken: not too many behind one that is not settled."""
        with self._lock:
            found = self._partitions.get(key)
            return found is None or found.offsets.has_room

    def take_record(self, held: HeldRecord) -> bool:
        """Take a record in hand; return False if it was settled before, by this process or an earlier owner."""
        position = held.message.position
        with self._lock:
            found = self._partitions.get(position[:2])
            if found is None:
                return False
            found.next_offset, found.wanted_offset = position.offset + 1, None
            is_open = found.offsets.take_message(position.offset)
            if is_open:
                found.held[position.offset] = held
            return is_open

    def put_back(self, held: HeldRecord, until_us: int) -> None:
        """Hold a partition back at a record until a time, µs since 1970."""
        position = held.message.position
        with self._lock:
            found = self._partitions.get(position[:2])
            if found is not None:
                found.wanted_offset, found.until_us = position.offset, until_us

    def release_due(self, now_us: int) -> None:
        """Release the partitions whose time has come."""
        with self._lock:
            for found in self._partitions.values():
                if found.until_us <= now_us:
                    found.until_us = 0

    def find_held_back(self) -> set[PartitionKey]:
        """Return the partitions that are held back."""
        with self._lock:
            return {key for key, found in self._partitions.items() if found.until_us}

    def settle_records(self, settlements: Iterable[Settlement]) -> list[SettledRecord]:
        """Settle records, and return those that were in hand; any other belongs to another owner or was settled."""
        found = []
        with self._lock:
            for settlement in settlements:
                topic, number, offset = settlement.message.position
                partition = self._partitions.get((topic, number))
                held = None if partition is None else partition.held.pop(offset, None)
                if partition is not None and held is not None:
                    partition.waits.pop(offset, None)
                    partition.offsets.settle_message(offset)
                    found.append(SettledRecord(settlement, held, partition))
        return found

    def filter_held(self, messages: Iterable[DeliveryMessage]) -> list[DeliveryMessage]:
        """Return the messages whose records are in hand, as they were taken."""
        with self._lock:
            return [one for one in messages if self._is_held(one)]

    def note_wait(self, messages: Iterable[DeliveryMessage], now_us: int, until_us: int) -> list[HeldRecord]:
        """Return the records in hand that are to be stamped, as they wait until a time and a minute longer.

        They are those that wait for longer than a while in all, and were not stamped until then before.
        """
        found = []
        with self._lock:
            for topic, number, offset in (one.position for one in messages):
                partition = self._partitions.get((topic, number))
                held = None if partition is None else partition.held.get(offset)
                if partition is None or held is None:
                    continue
                known = partition.waits.setdefault(offset, KnownWait(now_us))
                if until_us - known.since_us > SHORT_WAIT_US and known.until_us < until_us:
                    partition.waits[offset] = known._replace(until_us=until_us + WAIT_RENEWED_US)
                    found.append(held)
        return found

    def _is_held(self, message: DeliveryMessage) -> bool:
        found = self._partitions.get(message.position[:2])
        held = None if found is None else found.held.get(message.position.offset)
        return held is not None and held.message is message

    def filter_assigned(self, settled: Sequence[SettledRecord]) -> list[SettledRecord]:
        """Return the settled records whose partition is still the one in which they were taken."""
        with self._lock:
            return [one for one in settled if self._partitions.get(one.key) is one.partition]

    def find_offsets(self, settled: Iterable[SettledRecord]) -> list[TopicPartition]:
        """Return the offsets to commit of the partitions of settled records, with what is settled beyond them."""
        with self._lock:
            partitions = {one.key: one.partition for one in settled}
            return [
                TopicPartition(topic, number, found.offsets.position, found.offsets.encode_metadata())
                for (topic, number), found in partitions.items()
            ]
