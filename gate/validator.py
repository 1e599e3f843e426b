"""Validator of a topic: poll records, check them, write and commit in one transaction, stamp; in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import Message, TopicPartition

from hopwatch.gate import rules
from hopwatch.gate.event_checks import CheckedEvent
from hopwatch.gate.forwarding import build_headers, build_record, select_key, to_timestamp_ms
from hopwatch.gate.held_records import LOOK_EVERY_S, MAX_AWAITED, SETTLED_WITHIN_US, HeldRecords
from hopwatch.gate.record_checks import RecordChecker, TopicRecord
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.retry import RETRY_S, StoppedError
from hopwatch.gate.rules import Action, Uniqueness
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.topic_source import MAX_RECORDS, TopicSource
from hopwatch.gate.transactions import OutputRecord, OutputTopics, RecordTimeError, TransactionalWriter
from hopwatch.gate.waiting_records import WaitingRecord, build_waiting_headers, restore_record
from hopwatch.probes.http.problems import Fault
from hopwatch.probes.kafka.consumer import read_headers
from hopwatch.probes.message_headers import MessageIdentity
from hopwatch.probes.metrics.account import VALIDATOR_OUTCOMES, Account, EventOutcome, Output, Receipt, RefusalReason
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.schema_registry import describe_ref
from hopwatch.probes.taps.context import RunContext

REPORT_EVERY_S: Final = 10.0
WAITS: Final = "waits for its schema to be registered"
"""Reason of the stamp of a record that waits."""


@dataclass(frozen=True, slots=True)
class ValidatorCounts:
    """Counts of records read, validated and rejected; quarantined records count as rejected.

    ``held`` are those that were put to wait for their schema, ``released`` those that wait no more.
    """

    read: int = 0
    validated: int = 0
    rejected: int = 0
    held: int = 0
    released: int = 0

    def __str__(self) -> str:
        """Return the counts as text."""
        told = f"{self.read:,} read, {self.validated:,} validated, {self.rejected:,} rejected"
        return f"{told}, {self.held:,} held, {self.released:,} released" if self.held or self.released else told


class _CheckedRecord(NamedTuple):
    """Record after its check, with its output record."""

    event: CheckedEvent
    may_enter: bool
    output: OutputRecord
    waits: bool = False


class Validator:
    """Write each record of a topic to exactly one of two topics: validated or rejected, at once or after a wait."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        source: TopicSource,
        validating: RecordChecker,
        turns: TransactionalWriter[OutputTopics],
        *,
        stamping: GateStamper,
        around: RunContext,
        held: HeldRecords | None = None,
    ) -> None:
        """Take the parts; ``held`` where records wait for their schema."""
        self._source, self._checker, self._writer = source, validating, turns
        self.stamping, self._context, self.held = stamping, around, held
        self._released = 0
        self._max_records = MAX_RECORDS
        self.account = Account(VALIDATOR_OUTCOMES)
        self._reported, self._reported_s = str(self.counts), around.monotonic_s()
        self.is_in_doubt = False
        """Whether it ended without knowing if its last transaction was committed, and so without its stamps."""

    @property
    def counts(self) -> ValidatorCounts:
        """Counts of the records that were written and committed."""
        parts = self.account.snapshot()
        validated = parts.total(EventOutcome.EMITTED, Output.STREAM)
        rejected, held = (parts.total(EventOutcome.EMITTED, one) for one in (Output.QUARANTINE, Output.RETRY))
        return ValidatorCounts(validated + rejected + held - self._released, validated, rejected, held, self._released)

    def run(self) -> None:
        """Run until a stop is requested.

        Raises:
            TapSourceError: the topic cannot be read, or the outputs cannot be written, until an operator fixes it.
        """
        self._source.open()
        if self.held is not None:
            self.held.source.open()
        try:
            while not self._context.stop.is_set():
                self.step()
                self._report_periodically()
        except StoppedError:
            pass
        finally:
            self._writer.close()
            self._source.close()
            if self.held is not None:
                self.held.source.close()

    def step(self) -> None:
        """Poll, check and write one batch of records, and one of those that waited."""
        messages = self._source.poll(self._max_records)
        arrived_us = self._context.wall_us()
        for message in self._source.read_history(messages):
            self._check_message(message, arrived_us)
        with self.account.open_receipt(len(messages)) as receipt:
            looked = [self._check_message(message, arrived_us) for message in messages]
            if looked and self._write(looked, messages, self._source):
                self._settle(looked, receipt)
                self._stamp(looked, arrived_us)
            elif looked:
                receipt.refuse(len(looked), RefusalReason.NOT_WRITTEN)
        if self.held is not None:
            self._step_held(self.held)

    def _step_held(self, held: HeldRecords) -> None:
        """Poll, check and write one batch of records that waited; those that wait still are written as they were."""
        due = held.take_due(self._max_records)
        if not due:
            return
        looked = [self._check_held(held, message, waiting) for message, waiting in due]
        settled = [one for one in looked if not one.waits]
        with self.account.open_receipt(len(settled)) as receipt:
            if not self._write(looked, [message for message, _ in due], held.source):
                held.restart()
                receipt.refuse(len(settled), RefusalReason.NOT_WRITTEN)
                return
            self._released += len(settled)
            self._settle(settled, receipt)
        now_us = self._context.wall_us()
        for schema, events in _group_entered(settled).items():
            ids, events_us = zip(*((event.event_id, event.event_us) for event in events), strict=True)
            self.stamping.stamp_released(ids, events_us, now_us, schema)
        for one in settled:
            if not one.may_enter:
                self.stamping.stamp_rejected_inside(one.event, now_us)

    def _write(self, looked: Sequence[_CheckedRecord], messages: Sequence[Message], source: TopicSource) -> bool:
        """Write a batch of records of a source; return whether it was written, else the source reads it again."""
        read = source.find_next_offsets(messages)
        self.is_in_doubt = True
        if not self._write_outputs([one.output for one in looked], read, source):
            committed = source.rewind()
            # A transaction whose answer was lost may have been committed all the same.
            if not all(committed.get(one.partition, -1) >= one.offset for one in read):
                self.is_in_doubt = False
                # The batch may have been too large for the timeout.
                self._max_records = max(1, self._max_records // 2)
                return False
        self.is_in_doubt = False
        self._max_records = min(MAX_RECORDS, 2 * self._max_records)
        source.mark_done(read)
        return True

    def _settle(self, looked: Sequence[_CheckedRecord], receipt: Receipt) -> None:
        entered, waiting = (sum(one.may_enter for one in looked), sum(one.waits for one in looked))
        receipt.emit(entered, Output.STREAM)
        receipt.emit(waiting, Output.RETRY)
        receipt.emit(len(looked) - entered - waiting, Output.QUARANTINE)

    def _write_outputs(self, outs: Sequence[OutputRecord], read: Sequence[TopicPartition], source: TopicSource) -> bool:
        """Write a batch; a record whose time its topic does not take is found in smaller ones, and gets that of now."""
        try:
            return self._writer.write(outs, read, source.group_metadata())
        except RecordTimeError:
            if len(outs) > 1:
                return False
            return self._writer.write([outs[0]._replace(recorded_ms=0)], read, source.group_metadata())

    def _stamp(self, looked: Sequence[_CheckedRecord], arrived_us: int) -> None:
        now_us = self._context.wall_us()
        for schema, events in _group_entered(looked).items():
            ids, events_us = zip(*((event.event_id, event.event_us) for event in events), strict=True)
            self.stamping.stamp_entered(ids, events_us, arrived_us, now_us, schema)
        for judged, may_enter, _, waits in looked:
            if waits and self.held is not None:
                until_us = arrived_us + self.held.hold_us + SETTLED_WITHIN_US
                self.stamping.stamp_deferred(judged, arrived_us, until_us, WAITS)
            elif not may_enter:
                self.stamping.stamp_rejected(judged, arrived_us)

    def _check_message(self, message: Message, arrived_us: int) -> _CheckedRecord:
        """Check a message, and claim its unique values from then on."""
        record = build_record(message)
        judged = self._check_record(record, arrived_us)
        if judged.awaited is not None and self.held is not None:
            if self.held.admit(judged.awaited, arrived_us):
                state = WaitingRecord(arrived_us, 1, record.location, record.recorded_us)
                return self._build_waiting(message, judged, state)
            told = f"unknown_schema: it cannot wait, as {MAX_AWAITED:,} other schemas are waited for"
            judged = _reject(judged, told)
        return self._build_checked(message, record, judged, arrived_us)

    def _check_held(self, held: HeldRecords, message: Message, waiting: WaitingRecord) -> _CheckedRecord:
        """Check a message that waited, as at the time at which it came."""
        record = restore_record(build_record(message), waiting)
        judged = self._check_record(record, waiting.since_us)
        if judged.awaited is None:
            return self._build_checked(message, record, judged, waiting.since_us)
        if held.is_expired(waiting, self._context.wall_us()):
            name, hold_s = describe_ref(judged.awaited), held.hold_us / 1e6
            told = f"unknown_schema: expired: there is no schema {name}, and it has waited for {hold_s:g} s"
            return self._build_checked(message, record, _reject(judged, told), waiting.since_us)
        return self._build_waiting(message, judged, waiting._replace(tries=waiting.tries + 1))

    def _build_waiting(self, message: Message, judged: CheckedEvent, waiting: WaitingRecord) -> _CheckedRecord:
        """Build the record of a message that waits, with the time of its topic: an older one would age out sooner."""
        key, topic = message.key(), self._writer.outputs.waiting
        next_us = self._context.wall_us() + round(LOOK_EVERY_S * 1e6)
        headers = build_waiting_headers(read_headers(message), waiting, next_us)
        out = OutputRecord(topic, bytes(message.value() or b""), None if key is None else bytes(key), headers)
        return _CheckedRecord(judged, may_enter=False, output=out, waits=True)

    def _build_checked(
        self, message: Message, record: TopicRecord, judged: CheckedEvent, arrived_us: int
    ) -> _CheckedRecord:
        if judged.rule_event is not None and judged.action is not Action.REJECT:
            rules.claim_values(self._checker.policy.rules, judged.rule_event)
        may_enter = judged.action in {None, Action.NOTE}
        value = judged.record if may_enter else self._checker.build_rejected(judged, record, arrived_us).encode()
        topic = self._writer.outputs.validated if may_enter else self._writer.outputs.rejected
        headers = build_headers(message, record, MessageIdentity(judged.event_id, judged.event_us), arrived_us)
        return _CheckedRecord(
            judged, may_enter, OutputRecord(topic, value, select_key(message, record), headers, to_timestamp_ms(record))
        )

    def _check_record(self, record: TopicRecord, arrived_us: int) -> CheckedEvent:
        """Check a record; wait for the registry while its schema is not cached."""
        reported = OncePerCause()
        absent = () if self.held is None else self.held.unknown
        while True:
            try:
                return self._checker.check(record, arrived_us, absent)
            except SchemaStoreError as error:
                if reported.is_new():
                    self._context.report(f"{error}: waiting for it, nothing is lost")
                if self._context.stop.wait(RETRY_S):
                    raise StoppedError from None

    def _report_periodically(self) -> None:
        now_s = self._context.monotonic_s()
        if now_s - self._reported_s >= REPORT_EVERY_S:
            self._reported_s = now_s
            self.report_counts()

    def report_counts(self) -> None:
        """Report the counts if they have changed."""
        if str(self.counts) != self._reported:
            self._reported = str(self.counts)
            self._context.report(self._reported)


def _group_entered(looked: Iterable[_CheckedRecord]) -> dict[str, list[CheckedEvent]]:
    """Return the events that may enter, by the schema that wrote them."""
    found: dict[str, list[CheckedEvent]] = {}
    for one in looked:
        if one.may_enter:
            found.setdefault(one.event.schema, []).append(one.event)
    return found


def _reject(judged: CheckedEvent, told: str) -> CheckedEvent:
    """Return a record that waits no more as one that is rejected."""
    return judged._replace(record=b"", action=Action.REJECT, faults=(Fault("", told),), awaited=None)


def find_lookback_us(checks: Sequence[rules.EventRule]) -> int:
    """Return the longest span of the uniqueness rules, in µs."""
    return max((one.check.within_us for one in checks if isinstance(one.check, Uniqueness)), default=0)
