"""Validator of a topic: poll records, check them, write and commit in one transaction, stamp; in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import Message, TopicPartition

from hopwatch.gate import rules
from hopwatch.gate.event_checks import CheckedEvent
from hopwatch.gate.forwarding import build_headers, build_record, select_key, to_timestamp_ms
from hopwatch.gate.record_checks import RecordChecker, TopicRecord
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.retry import RETRY_S, StoppedError
from hopwatch.gate.rules import Action, Uniqueness
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.topic_source import MAX_RECORDS, TopicSource
from hopwatch.gate.transactions import OutputRecord, OutputTopics, RecordTimeError, TransactionalWriter
from hopwatch.probes.message_headers import MessageIdentity
from hopwatch.probes.metrics.account import VALIDATOR_OUTCOMES, Account, EventOutcome, Output, Receipt, RefusalReason
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.taps.context import RunContext

REPORT_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ValidatorCounts:
    """Counts of records read, validated and rejected; quarantined records count as rejected."""

    read: int = 0
    validated: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        """Return the counts as text."""
        return f"{self.read:,} read, {self.validated:,} validated, {self.rejected:,} rejected"


class _CheckedRecord(NamedTuple):
    """Record after its check, with its output record."""

    event: CheckedEvent
    may_enter: bool
    output: OutputRecord


class Validator:
    """Write each record of a topic to exactly one of two topics: validated or rejected."""

    def __init__(
        self,
        source: TopicSource,
        validating: RecordChecker,
        turns: TransactionalWriter[OutputTopics],
        *,
        stamping: GateStamper,
        around: RunContext,
    ) -> None:
        """Take the parts."""
        self._source, self._checker, self._writer = source, validating, turns
        self.stamping, self._context = stamping, around
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
        return ValidatorCounts(
            parts.total(EventOutcome.EMITTED), validated, parts.total(EventOutcome.EMITTED, Output.QUARANTINE)
        )

    def run(self) -> None:
        """Run until a stop is requested.

        Raises:
            TapSourceError: the topic cannot be read, or the outputs cannot be written, until an operator fixes it.
        """
        self._source.open()
        try:
            while not self._context.stop.is_set():
                self.step()
                self._report_periodically()
        except StoppedError:
            pass
        finally:
            self._writer.close()
            self._source.close()

    def step(self) -> None:
        """Poll, check and write one batch of records."""
        messages = self._source.poll(self._max_records)
        arrived_us = self._context.wall_us()
        for message in self._source.read_history(messages):
            self._check_message(message, arrived_us)
        with self.account.open_receipt(len(messages)) as receipt:
            looked = [self._check_message(message, arrived_us) for message in messages]
            if looked:
                self._write(looked, messages, arrived_us, receipt)

    def _write(
        self, looked: Sequence[_CheckedRecord], messages: Sequence[Message], arrived_us: int, receipt: Receipt
    ) -> None:
        read = self._source.find_next_offsets(messages)
        self.is_in_doubt = True
        if not self._write_outputs([one.output for one in looked], read):
            committed = self._source.rewind()
            # A transaction whose answer was lost may have been committed all the same.
            if not all(committed.get(one.partition, -1) >= one.offset for one in read):
                self.is_in_doubt = False
                # The batch may have been too large for the timeout.
                self._max_records = max(1, self._max_records // 2)
                receipt.refuse(len(looked), RefusalReason.NOT_WRITTEN)
                return
        self.is_in_doubt = False
        self._max_records = min(MAX_RECORDS, 2 * self._max_records)
        self._source.mark_done(read)
        entered = sum(one.may_enter for one in looked)
        receipt.emit(entered, Output.STREAM)
        receipt.emit(len(looked) - entered, Output.QUARANTINE)
        self._stamp(looked, arrived_us)

    def _write_outputs(self, outs: Sequence[OutputRecord], read: Sequence[TopicPartition]) -> bool:
        """Write a batch; a record whose time its topic does not take is found in smaller ones, and gets that of now."""
        try:
            return self._writer.write(outs, read, self._source.group_metadata())
        except RecordTimeError:
            if len(outs) > 1:
                return False
            return self._writer.write([outs[0]._replace(recorded_ms=0)], read, self._source.group_metadata())

    def _stamp(self, looked: Sequence[_CheckedRecord], arrived_us: int) -> None:
        entered = [one.event for one in looked if one.may_enter]
        now_us = self._context.wall_us()
        self.stamping.stamp_entered(
            [one.event_id for one in entered], [one.event_us for one in entered], arrived_us, now_us
        )
        for judged, may_enter, _ in looked:
            if not may_enter:
                self.stamping.stamp_rejected(judged, arrived_us)

    def _check_message(self, message: Message, arrived_us: int) -> _CheckedRecord:
        """Check a message, and claim its unique values from then on."""
        record = build_record(message)
        judged = self._check_record(record, arrived_us)
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
        while True:
            try:
                return self._checker.check(record, arrived_us)
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


def find_lookback_us(checks: Sequence[rules.EventRule]) -> int:
    """Return the longest span of the uniqueness rules, in µs."""
    return max((one.check.within_us for one in checks if isinstance(one.check, Uniqueness)), default=0)
