"""Queues of events that wait: one interface for memory and spool.

A queue is read from its front: ``read_first`` returns the first events, and the same ones again until ``drop`` forgets
them. Marks count bytes since the queue was made: an event that ended at ``end_mark`` has gone once ``dropped_mark`` is
there.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from hopwatch.client.errors import QueueFullError
from hopwatch.client.event_records import EventRecord

RECORD_OVERHEAD_BYTES: Final = 200
"""Memory of a record beside its JSON, about."""


class Syncable(Protocol):
    """Part of a queue that can be made durable."""

    def sync(self) -> None:
        """Make it durable.

        Raises:
            OSError: it cannot be.
        """


class EventQueue(Protocol):
    """Interface of a queue; all calls come under one lock."""

    is_durable: bool
    """Whether what is left at the end is there for the next process."""
    end_mark: int
    dropped_mark: int
    recovered: int
    unreadable: int

    @property
    def waiting_bytes(self) -> int:
        """Bytes that count for the bound."""

    @property
    def waiting_events(self) -> int:
        """Number of events appended since the queue was made, and not dropped yet."""

    def append(self, record: EventRecord) -> None:
        """Add an event at the end.

        Raises:
            QueueFullError: there is no room.
            ClientSpoolError: the spool cannot be written.
        """

    def read_first(self, max_events: int, max_bytes: int) -> list[EventRecord]:
        """Return the first events: one at least unless the queue is empty, in one request of this size."""

    def drop(self) -> None:
        """Forget the events that were taken last."""

    def list_unsynced(self) -> list[Syncable]:
        """Return the parts that are not durable yet."""

    def close(self) -> None:
        """Release all resources."""


class MemoryQueue:
    """Queue in memory."""

    def __init__(self, max_bytes: int) -> None:
        """Begin empty."""
        self.is_durable = False
        self.end_mark = self.dropped_mark = self.recovered = self.unreadable = 0
        self._max_bytes = max_bytes
        self._records: deque[EventRecord] = deque()
        self._taken = 0

    @property
    def waiting_bytes(self) -> int:
        """Memory of the events."""
        return self.end_mark - self.dropped_mark

    @property
    def waiting_events(self) -> int:
        """Number of events."""
        return len(self._records)

    def append(self, record: EventRecord) -> None:
        """Add an event at the end.

        Raises:
            QueueFullError: there is no room.
        """
        size = _measure_record(record)
        if self.waiting_bytes + size > self._max_bytes:
            raise QueueFullError(describe_full(self.waiting_bytes, self._max_bytes, "in memory"))
        self._records.append(record)
        self.end_mark += size

    def read_first(self, max_events: int, max_bytes: int) -> list[EventRecord]:
        """Return the first events."""
        taken = list[EventRecord]()
        room = BatchRoom(max_events, max_bytes)
        for record in self._records:
            if not room.fits(record):
                break
            taken.append(record)
        self._taken = len(taken)
        return taken

    def drop(self) -> None:
        """Forget the events that were taken last."""
        for _ in range(self._taken):
            self.dropped_mark += _measure_record(self._records.popleft())
        self._taken = 0

    def list_unsynced(self) -> list[Syncable]:
        """Return nothing."""
        return []

    def close(self) -> None:
        """Do nothing."""


class BatchRoom:
    """Room in a request; the first event always fits."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        """Begin with an empty list: two brackets."""
        self._events, self._bytes = max_events, max_bytes - 2
        self._is_empty = True

    def fits(self, record: EventRecord) -> bool:
        """Return whether an event fits, and if so, count it."""
        size = len(record.item) + 1
        # The last one needs no comma.
        if not self._is_empty and (self._events < 1 or size - 1 > self._bytes):
            return False
        self._is_empty = False
        self._events -= 1
        self._bytes -= size
        return True


def describe_full(waiting_bytes: int, max_bytes: int, where: str) -> str:
    """Return the text for an event that there is no room for."""
    return (
        f"{waiting_bytes:,} of {max_bytes:,} bytes of events wait {where} for the gate already: send it again later,"
        " or let it wait (wait_s)"
    )


def _measure_record(record: EventRecord) -> int:
    return len(record.item) + RECORD_OVERHEAD_BYTES
