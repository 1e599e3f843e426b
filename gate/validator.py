"""The loop round a topic: look, judge, write what may enter and what may not, commit, stamp; turn after turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import Message

from hopwatch.gate import rules
from hopwatch.gate.copies import headers_of, key_of, record_of, recorded_ms
from hopwatch.gate.judging import Judged
from hopwatch.gate.persistent import RETRY_S, StoppedError
from hopwatch.gate.registry.shelf import ShelfDownError
from hopwatch.gate.rules import Action, Uniqueness
from hopwatch.gate.source import MOST_RECORDS, Source
from hopwatch.gate.stamping import Stamping
from hopwatch.gate.turns import Out, Turns
from hopwatch.gate.validating import Record, Validating
from hopwatch.probes.marks import Marks
from hopwatch.probes.taps.surroundings import Surroundings

TELL_EVERY_S: Final = 10.0


@dataclass(slots=True)
class Counts:
    """Records that were read, and what became of each; those that are held count as rejected."""

    read: int = 0
    validated: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        """Return them in words."""
        return f"{self.read:,} read, {self.validated:,} validated, {self.rejected:,} rejected"


class _Looked(NamedTuple):
    """A record, what becomes of it, and what is written."""

    judged: Judged
    may_enter: bool
    out: Out


class Validator:
    """Takes every record of a topic to exactly one of two others."""

    def __init__(
        self,
        source: Source,
        validating: Validating,
        turns: Turns,
        *,
        stamping: Stamping,
        around: Surroundings,
    ) -> None:
        """Put the parts together."""
        self._source, self._validating, self._turns = source, validating, turns
        self.stamping, self._around = stamping, around
        self._most = MOST_RECORDS
        self.counts = Counts()
        self._told, self._told_s = str(self.counts), around.monotonic_s()
        self.is_in_doubt = False
        """Whether it ended without knowing if its last turn was written, and so without stamps of it."""

    def run(self) -> None:
        """Go on until it is to stop.

        Raises:
            TapSourceError: the topic cannot be read, or what comes of it not be written, before a person mends it.
        """
        self._source.open()
        try:
            while not self._around.stop.is_set():
                self.step()
                self._tell_at_times()
        except StoppedError:
            pass
        finally:
            self._turns.close()
            self._source.close()

    def step(self) -> None:
        """Take one turn."""
        messages = self._source.look(self._most)
        arrived_us = self._around.wall_us()
        for message in self._source.before(messages):
            self._judged(message, arrived_us)
        looked = [self._judged(message, arrived_us) for message in messages]
        if looked:
            self._write(looked, messages, arrived_us)

    def _write(self, looked: Sequence[_Looked], messages: Sequence[Message], arrived_us: int) -> None:
        read = self._source.positions(messages)
        self.is_in_doubt = True
        if not self._turns.write([one.out for one in looked], read, self._source.group_metadata()):
            committed = self._source.go_back()
            # A turn whose answer was lost may have been written all the same.
            if not all(committed.get(one.partition, -1) >= one.offset for one in read):
                self.is_in_doubt = False
                # It may have been too long for the time that it has.
                self._most = max(1, self._most // 2)
                return
        self.is_in_doubt = False
        self._most = min(MOST_RECORDS, 2 * self._most)
        self._source.done(read)
        self._stamp(looked, arrived_us)

    def _stamp(self, looked: Sequence[_Looked], arrived_us: int) -> None:
        entered = [one.judged for one in looked if one.may_enter]
        now_us = self._around.wall_us()
        self.stamping.entered([one.event_id for one in entered], [one.event_us for one in entered], arrived_us, now_us)
        for judged, may_enter, _ in looked:
            if not may_enter:
                booked_us = arrived_us if judged.is_stale else judged.event_us
                self.stamping.rejected(judged.event_id, booked_us, arrived_us, judged.reason)
        self.counts.read += len(looked)
        self.counts.validated += len(entered)
        self.counts.rejected += len(looked) - len(entered)

    def _judged(self, message: Message, arrived_us: int) -> _Looked:
        """Judge a record; what has to be unique is another's from then on."""
        record = record_of(message)
        judged = self._patiently(record, arrived_us)
        if judged.subject is not None and judged.action is not Action.REJECT:
            rules.claim(self._validating.terms.rules, judged.subject)
        may_enter = judged.action in {None, Action.NOTE}
        value = judged.record if may_enter else self._validating.rejected(judged, record, arrived_us).record()
        topic = self._turns.outputs.validated if may_enter else self._turns.outputs.rejected
        headers = headers_of(message, record, Marks(judged.event_id, judged.event_us), arrived_us)
        return _Looked(judged, may_enter, Out(topic, value, key_of(message, record), headers, recorded_ms(record)))

    def _patiently(self, record: Record, arrived_us: int) -> Judged:
        """Judge a record, and wait for the registry where its schema is not known yet."""
        is_told = False
        while True:
            try:
                return self._validating.judge(record, arrived_us)
            except ShelfDownError as error:
                if not is_told:
                    self._around.tell(f"{error}: waiting for it, nothing is lost")
                    is_told = True
                if self._around.stop.wait(RETRY_S):
                    raise StoppedError from None

    def _tell_at_times(self) -> None:
        now_s = self._around.monotonic_s()
        if now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self.tell()

    def tell(self) -> None:
        """Tell the counts, unless that was done."""
        if str(self.counts) != self._told:
            self._told = str(self.counts)
            self._around.tell(self._told)


def back_us(checks: Sequence[rules.Rule]) -> int:
    """Return how far back rules look for what has to be unique."""
    return max((one.check.within_us for one in checks if isinstance(one.check, Uniqueness)), default=0)
