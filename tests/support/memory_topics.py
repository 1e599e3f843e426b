"""Topics in memory with committed offsets, and a source and a transactional writer over them that fail when told to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from confluent_kafka import Message, TopicPartition

from hopwatch.gate.transactions import OutputRecord, OutputTopics
from hopwatch.testing import ManualClock

PARTITIONS = 2
NEW_MESSAGE = cast("Any", Message)
"""Its stub knows of no arguments."""


class KilledError(BaseException):
    """The process was killed."""


class StoredRecord(NamedTuple):
    """Record of a topic, with the time at which it was written, ms since 1970."""

    value: bytes
    key: bytes | None
    headers: list[tuple[str, Any]]
    written_ms: int


class MemoryTopics:
    """Topics of two partitions each; a record goes to the partition of its key's first byte."""

    def __init__(self, clock: ManualClock) -> None:
        """Begin empty."""
        self.clock = clock
        self.logs: dict[tuple[str, int], list[StoredRecord]] = defaultdict(list)
        self.committed: dict[tuple[str, int], int] = defaultdict(int)

    def append(self, out: OutputRecord) -> None:
        """Write a record."""
        headers = [(name, value.encode() if isinstance(value, str) else value) for name, value in out.headers]
        at_ms = out.recorded_ms or self.clock.us // 1_000
        number = out.key[0] % PARTITIONS if out.key else 0
        self.logs[out.topic, number].append(StoredRecord(out.value, out.key, headers, at_ms))

    def read(self, topic: str, *, is_left: bool = False) -> list[StoredRecord]:
        """Return all records of a topic, or those behind its committed offsets."""
        return [
            record
            for number in range(PARTITIONS)
            for record in self.logs[topic, number][self.committed[topic, number] if is_left else 0 :]
        ]


class MemorySource:
    """Source over one topic, which has all its partitions; it stands for :class:`TopicSource`."""

    def __init__(self, topics: MemoryTopics, topic: str) -> None:
        """Begin at the committed offsets."""
        self._topics, self._topic = topics, topic
        self.next_offsets = {number: topics.committed[topic, number] for number in range(PARTITIONS)}
        self.positions = dict(self.next_offsets)

    def poll(self, most: int, _: float = 0.0) -> list[Message]:
        """Return new records."""
        found: list[Message] = []
        for number, position in self.positions.items():
            log = self._topics.logs[self._topic, number]
            for offset in range(position, min(len(log), position + most - len(found))):
                one, self.positions[number] = log[offset], offset + 1
                found.append(
                    NEW_MESSAGE(
                        topic=self._topic, partition=number, offset=offset, key=one.key, value=one.value,
                        headers=list(one.headers), timestamp=(1, one.written_ms),
                    )
                )  # fmt: skip
        return found

    def read_history(self, _: Sequence[Message]) -> Iterator[Message]:
        """Yield nothing: no value has to be unique."""
        yield from ()

    def find_next_offsets(self, messages: Sequence[Message]) -> list[TopicPartition]:
        """Return the offsets to commit after some records."""
        last = {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}
        return [TopicPartition(self._topic, number, offset) for number, offset in last.items()]

    def mark_done(self, read: Sequence[TopicPartition]) -> None:
        """Advance the offsets."""
        self.next_offsets |= {one.partition: one.offset for one in read}

    def rewind(self) -> dict[int, int]:
        """Return to the committed offsets."""
        self.next_offsets = {number: self._topics.committed[self._topic, number] for number in self.next_offsets}
        self.positions = dict(self.next_offsets)
        return dict(self.next_offsets)

    def seek(self, number: int, offset: int) -> None:
        """Read on from an offset."""
        self.positions[number] = offset

    def group_metadata(self) -> None:
        """Return no group."""


class MemoryWriter:
    """Writer whose transactions end as ``ends`` say, one after the other, and are committed after that."""

    def __init__(self, topics: MemoryTopics, outputs: OutputTopics) -> None:
        """Take the topics."""
        self._topics, self.outputs, self.ends = topics, outputs, list[str]()

    def write(self, outs: Sequence[OutputRecord], read: Sequence[TopicPartition], _: object) -> bool:
        """Write all or nothing."""
        end = self.ends.pop(0) if self.ends else "committed"
        if end in {"committed", "unanswered", "killed after"}:
            for out in outs:
                self._topics.append(out)
            for one in read:
                self._topics.committed[one.topic, one.partition] = one.offset
        if end.startswith("killed"):
            raise KilledError
        return end == "committed"
