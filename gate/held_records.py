"""Records that wait for their schema to be registered: which schemas are asked for, and which records are due.

Records of a schema that nobody knows stand in a waiting topic. It is read ahead, so that it is known which schemas are
waited for, and nothing is kept but counts. Every few seconds the registry is asked for these schemas. Once one of them
is registered, the partitions with records of it are read again from their committed offset, in a *turn*: what can be
read now is due, and so is what has expired; what waits still is due to be put at the end of its topic. Thus a record is
written again once for each schema that is registered while it waits, and not once for each look. What has expired
stands first in its partition, but after a crash, and for it alone no more than what has expired is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Message

from hopwatch.gate.record_checks import RecordChecker
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.topic_source import TopicSource
from hopwatch.gate.waiting_counts import MINUTE_US, WaitingCounts
from hopwatch.gate.waiting_records import WaitingRecord, restore_message
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.metric import Sample
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.schema_registry import describe_ref
from hopwatch.probes.taps.context import RunContext

LOOK_EVERY_S: Final = 5.0
"""Time between two looks for the schemas that are waited for."""
ASKED_PER_LOOK: Final = 32
"""Schemas that one look asks for; of more, others come next."""
MAX_AWAITED: Final = 1_024
"""Schemas that are waited for; records of others are rejected at once."""
SETTLED_WITHIN_US: Final = 2 * MINUTE_US
"""Time within which an expired record is rejected: its minute is over, and a validator that ended is started again."""


@dataclass(slots=True)
class _WaitingPartition:
    """Partition of the waiting topic: what waits in it, up to an offset."""

    scanned: int = 0
    counts: WaitingCounts = field(default_factory=WaitingCounts)
    turn_end: int = 0
    """Offset up to which its records are read again, 0 for not at all."""
    is_full: bool = False
    """Whether the turn goes over all of them, and not over what has expired alone."""
    is_begun: bool = False
    """Whether a record of the turn was due."""


class HeldRecords:
    """Waiting topic of a validator, as one of a consumer group of its own; used by one thread but for samples."""

    def __init__(
        self, source: TopicSource, checker: RecordChecker, hold_us: int, around: RunContext, *, name: str
    ) -> None:
        """Take the parts; ``name`` is that of the topic, for the log."""
        self.source, self._checker, self.hold_us, self._context, self._name = source, checker, hold_us, around, name
        self._partitions: dict[int, _WaitingPartition] = {}
        self._awaited: dict[SchemaRef, int] = {}
        """Schemas that are known to be unknown, with the time until which a record of them may wait."""
        self._looked_s = float("-inf")
        self._down = OncePerCause()

    @property
    def unknown(self) -> dict[SchemaRef, int]:
        """Schemas that were not registered at the last look."""
        return self._awaited

    def admit(self, writer: SchemaRef, now_us: int) -> bool:
        """Return whether a record of an unknown schema may wait: not if too many schemas are waited for."""
        if writer not in self._awaited:
            if len(self._awaited) >= MAX_AWAITED:
                return False
            told = f"the schema {describe_ref(writer)} is not registered: its records wait in {self._name} until it is"
            self._context.report(f"{told}, {self.hold_us / 1e6:g} s at most")
        self._awaited[writer] = max(self._awaited.get(writer, 0), now_us + self.hold_us)
        return True

    def is_expired(self, waiting: WaitingRecord, now_us: int) -> bool:
        """Return whether a record has waited for as long as it may."""
        return now_us - waiting.since_us >= self.hold_us

    def take_due(self, most: int) -> list[tuple[Message, WaitingRecord]]:
        """Read on, and return the records of turns that are due, in order: to enter, to be rejected, or to wait anew.

        All that is returned is to be settled and committed, or :meth:`restart` called, before the next call.

        Raises:
            TapSourceError: the topic cannot be read.
            StoppedError: a stop was requested while the brokers did not answer.
        """
        messages = self.source.poll(most, 0.0)
        now_us, assigned = self._context.wall_us(), self.source.next_offsets
        self._partitions = {number: self._partitions.get(number, _WaitingPartition()) for number in assigned}
        due = [one for message in messages if (one := self._read_message(message, now_us)) is not None]
        if not due and self._context.monotonic_s() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = self._context.monotonic_s()
            self._look(now_us)
        return due

    def restart(self) -> None:
        """Begin anew after a transaction that failed: the source reads on from its committed offsets."""
        self._partitions = {}

    def count_by_schema(self) -> Counter[str]:
        """Return the number of waiting records by schema."""
        found: Counter[str] = Counter()
        for partition in list(self._partitions.values()):
            for writer, count in partition.counts.by_schema().items():
                found["" if writer is None else describe_ref(writer)] += count
        return found

    def build_samples(self, stream: str) -> Iterator[Sample]:
        """Yield the number of waiting records of each schema."""
        for name, count in self.count_by_schema().items():
            yield Sample(catalog.VALIDATOR_WAITING, (stream, name), count)

    def _read_message(self, message: Message, now_us: int) -> tuple[Message, WaitingRecord] | None:
        """Count a record that is new; return it if it is due."""
        number, offset = message.partition() or 0, message.offset() or 0
        partition = self._partitions.get(number)
        if partition is None:
            return None
        waiting, writer = restore_message(message), self._checker.find_writer(message.value())
        if offset >= partition.scanned:
            # A turn ends before what came after it had begun.
            partition.turn_end = 0
            partition.scanned = offset + 1
            partition.counts.add(writer, waiting.since_us)
            if writer is not None and writer not in self._awaited:
                self._await_found(writer, waiting)
            return None
        if offset >= partition.turn_end:
            return None
        if not self._is_due(partition, waiting, now_us):
            partition.turn_end = 0
            self.source.seek(number, partition.scanned)
            return None
        if not partition.is_full:
            partition.counts.remove(writer, waiting.since_us)
        return message, waiting

    def _is_due(self, partition: _WaitingPartition, waiting: WaitingRecord, now_us: int) -> bool:
        is_first, partition.is_begun = not partition.is_begun, True
        if partition.is_full or self.is_expired(waiting, now_us):
            return True
        if is_first:
            # What has expired stands behind it.
            partition.is_full, partition.counts = True, WaitingCounts()
        return is_first

    def _await_found(self, writer: SchemaRef, waiting: WaitingRecord) -> None:
        """Await the schema of a record that waits already, such as after a start, however many are awaited."""
        self._awaited[writer] = waiting.since_us + self.hold_us

    def _look(self, now_us: int) -> None:
        """Ask for schemas that are waited for, and begin the turns of what is due."""
        counts = [(number, one) for number, one in self._partitions.items() if not one.turn_end]
        for writer in list(self._awaited)[:ASKED_PER_LOOK]:
            try:
                is_registered = self._checker.is_registered(writer)
            except SchemaStoreError as error:
                if self._down.is_new():
                    self._context.report(f"{error}: what needs a schema of it waits, nothing is lost")
                break
            self._down.rearm()
            until_us = self._awaited.pop(writer)
            if is_registered:
                waiting = sum(one.counts.by_schema()[writer] for one in self._partitions.values())
                told = f"the schema {describe_ref(writer)} is registered now: {waiting:,} records of it go on"
                self._context.report(told)
            elif until_us + SETTLED_WITHIN_US > now_us:
                # To the end, so that all are asked for in turn.
                self._awaited[writer] = until_us
        for number, partition in counts:
            is_full = partition.counts.has_others(self._awaited)
            if is_full or partition.counts.has_expired(self.hold_us, now_us):
                self._begin_turn(number, partition, is_full=is_full)

    def _begin_turn(self, number: int, partition: _WaitingPartition, *, is_full: bool) -> None:
        partition.turn_end, partition.is_full, partition.is_begun = partition.scanned, is_full, False
        if is_full:
            partition.counts = WaitingCounts()
        self.source.seek(number, self.source.next_offsets.get(number, partition.scanned))
