"""Intake of the events of one stream: validate, deduplicate, write, stamp and answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from http import HTTPStatus
from typing import Final, NamedTuple

from hopwatch.gate import event_checks, ids, rules
from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import CheckedEvent, EventPolicy
from hopwatch.gate.outlets import OutgoingRecord, Outlet, OutletError
from hopwatch.gate.recent_map import RecentMap
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.gate.rules import Action, Claims
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.throttle.stream_throttle import StreamThrottle
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, HttpProblem
from hopwatch.probes.metrics.account import GATE_OUTCOMES, Account, DropReason, Output, Receipt, RefusalReason

MIN_REMEMBERED: Final = 250_000
"""Minimum number of recent events per stream for which a repeat is recognized."""
MAX_WAITING: Final = 256
"""Maximum number of waiting requests per stream, so that one slow transport does not block other streams."""


class EventStatus(IntEnum):
    """Status of an event, as its answer reports it."""

    ENTERED = 201
    HELD = 202
    TAKEN_ID = 409
    REJECTED = 422
    NOT_WRITTEN = 503


class EventResult(NamedTuple):
    """Result of one event; ``arrived_us`` is its first arrival, ``faults`` are its errors or notes."""

    event_id: str
    status: EventStatus
    arrived_us: int
    faults: tuple[Fault, ...] = ()


@dataclass(slots=True, eq=False)
class _KnownEvent:
    """Recent event: its hashes, its answer, and the write it waits for, None once it is written.

    ``sent_hash`` is of the data and time as sent, ``content_hash`` of the event time and the envelope.
    """

    sent_hash: int
    content_hash: int
    schema: bytes
    arrived_us: int
    status: EventStatus = EventStatus.ENTERED
    faults: tuple[Fault, ...] = ()
    writing: asyncio.Future[None] | None = field(default=None, repr=False)


_KnownEventTuple = tuple[int, int, bytes, int]
"""First four fields of an event that entered without notes; the garbage collector does not track such a tuple."""


class _RequestEvent(NamedTuple):
    """Event of a request: its id, its entry among the recent ones, and its check, None if it was known before."""

    event_id: bytes
    known: _KnownEvent
    judged: CheckedEvent | None


class _NewEvent(NamedTuple):
    """New event that may be written, with its claims of unique values."""

    judged: CheckedEvent
    known: _KnownEvent
    claims: Claims


@dataclass(frozen=True, slots=True)
class GateStream:
    """Entrance of one stream: the subject that holds the schema of its events, and their limits."""

    stream: str
    subject: str
    policy: EventPolicy


class EventIntake:
    """Entrance of one stream; all calls come from one event loop."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        entrance: GateStream,
        outlet: Outlet,
        rejected: Outlet,
        *,
        stamping: GateStamper,
        clock: Clock,
        throttle: StreamThrottle | None = None,
    ) -> None:
        """Take the parts; without a throttle all events are admitted."""
        self.stream, self.subject, self.policy = entrance.stream, entrance.subject, entrance.policy
        self.outlet, self.rejected, self.stamping = outlet, rejected, stamping
        self.throttle = throttle
        self.account = Account(GATE_OUTCOMES)
        self._clock = clock
        self._waiting = 0
        self._recent: RecentMap[bytes, _KnownEvent | _KnownEventTuple] = RecentMap(MIN_REMEMBERED)

    async def accept(
        self, sent: Sequence[SentEvent], codec: Codec, *, producer: str = "", each: bool, keeps: bool = True
    ) -> list[EventResult]:
        """Accept events, and return their results once the transport has acknowledged them.

        With ``each`` every event is accepted or refused on its own; without it all of them enter, or none. Refused
        events are written to quarantine and stamped before the answer, unless ``keeps`` is False, as in a replay, where
        they are there already. Events that cannot be written, there or to the stream, are to be sent again.

        Raises:
            HttpProblem: without ``each``, one of them was refused, or not written or kept; too many requests wait; or
                the throttle admits no more.
        """
        with self.account.open_receipt(len(sent)) as receipt:
            return await self._accept_unless_busy(sent, codec, producer, receipt, each=each, keeps=keeps)

    async def _accept_unless_busy(  # noqa: PLR0913 - those of accept
        self, sent: Sequence[SentEvent], codec: Codec, producer: str, receipt: Receipt, *, each: bool, keeps: bool
    ) -> list[EventResult]:
        if self._waiting >= MAX_WAITING:
            receipt.refuse(len(sent), RefusalReason.BUSY)
            told = f"{MAX_WAITING} requests wait for the transport of {self.stream} already: retry later"
            raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", told)
        self._admit(len(sent), receipt)
        self._waiting += 1
        try:
            return await self._accept(sent, codec, producer, receipt, each=each, keeps=keeps)
        finally:
            self._waiting -= 1

    def _admit(self, count: int, receipt: Receipt) -> None:
        if self.throttle is None:
            return
        try:
            self.throttle.admit(count)
        except HttpProblem:
            receipt.refuse(count, RefusalReason.THROTTLED)
            raise

    async def _accept(  # noqa: PLR0913 - those of accept
        self, sent: Sequence[SentEvent], codec: Codec, producer: str, receipt: Receipt, *, each: bool, keeps: bool
    ) -> list[EventResult]:
        arrived_us = self._clock.wall_ns() // 1_000
        new: dict[bytes, _NewEvent] = {}
        looked = [self._check_event(one, codec, new, arrived_us) for one in sent]
        bad = [one for one in looked if one.known.status >= EventStatus.TAKEN_ID]
        keeping = self._write_rejected(bad, arrived_us, producer, receipt) if bad and keeps else None
        if not keeps:
            receipt.refuse(len(bad), RefusalReason.REJECTED)
        if bad and not each:
            receipt.refuse(len(looked) - len(bad), RefusalReason.BATCH)
            for one in new.values():
                rules.release_claims(one.claims)
            if keeping is not None and (unkept := await asyncio.shield(keeping)):
                raise _not_kept_problem(len(unkept))
            raise _refusal_problem([one.known for one in bad], len(looked))
        receipt.drop(len(looked) - len(bad) - len(new), DropReason.REPEAT)
        self._write_new(new, producer, receipt, keeps=keeps)
        for writing in {one.known.writing for one in looked if one.known.writing is not None}:
            await asyncio.shield(writing)
        unkept = frozenset() if keeping is None else await asyncio.shield(keeping)
        outcomes = [_build_result(one, unkept) for one in looked]
        if not each and any(one.status is EventStatus.NOT_WRITTEN for one in outcomes):
            raise _not_written_problem(outcomes)
        return outcomes

    def _check_event(
        self, sent: SentEvent, codec: Codec, new: dict[bytes, _NewEvent], arrived_us: int
    ) -> _RequestEvent:
        """Check one event; add it to ``new`` if it may be written and is not known yet."""
        said = hash((repr(sent.time), sent.data))
        event_id = event_checks.parse_id(sent)
        found = None if event_id is None else self._find_known(event_id, new)
        if found is not None and event_id is not None and found.sent_hash == said:
            return _RequestEvent(event_id, found, None)
        judged = event_checks.check_event(sent, event_id, codec, self.policy, arrived_us)
        schema, content = codec.schema.fingerprint, hash((judged.event_us, judged.record))
        if not judged.record:
            known = _KnownEvent(said, 0, schema, arrived_us, EventStatus.REJECTED, judged.faults)
        elif found is not None:
            if found.content_hash == content and found.schema == schema:
                return _RequestEvent(judged.event_id, found, None)
            told = "another event has this id already: each event needs an id of its own"
            known = _KnownEvent(said, 0, schema, arrived_us, EventStatus.TAKEN_ID, (Fault(f"{sent.place}/id", told),))
        elif judged.action is Action.REJECT:
            known = _KnownEvent(said, 0, schema, arrived_us, EventStatus.REJECTED, judged.faults)
        else:
            fate = EventStatus.HELD if judged.action is Action.QUARANTINE else EventStatus.ENTERED
            known = _KnownEvent(said, content, schema, arrived_us, fate, judged.faults)
            claims = [] if judged.rule_event is None else rules.claim_values(self.policy.rules, judged.rule_event)
            new[judged.event_id] = _NewEvent(judged, known, claims)
        return _RequestEvent(judged.event_id, known, judged)

    def _find_known(self, event_id: bytes, new: Mapping[bytes, _NewEvent]) -> _KnownEvent | None:
        if event_id in new:
            return new[event_id].known
        found = self._recent.get(event_id)
        return _KnownEvent(*found) if isinstance(found, tuple) else found

    def _write_new(self, new: Mapping[bytes, _NewEvent], producer: str, receipt: Receipt, *, keeps: bool) -> None:
        """Write the new events, and remember each from now on."""
        for event_id, one in new.items():
            if keeps or one.known.status is EventStatus.ENTERED:
                self._recent.put(event_id, one.known)
        held = [one for one in new.values() if one.known.status is EventStatus.HELD]
        entered = [one for one in new.values() if one.known.status is EventStatus.ENTERED]
        self._write(entered, self.outlet, producer, receipt)
        if keeps:
            self._write(held, self.rejected, producer, receipt)
        else:
            receipt.refuse(len(held), RefusalReason.REJECTED)

    def _write(self, new: Sequence[_NewEvent], outlet: Outlet, producer: str, receipt: Receipt) -> None:
        """Hand events to the transport; a repeat of one of them waits for the same write."""
        if not new:
            return
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[None] = loop.create_future()
        for one in new:
            one.known.writing = writing
        receipt.hand_on(len(new))
        try:
            leaving = [self._build_outgoing(one, producer) for one in new]
            outlet.write(leaving, lambda failed: loop.call_soon_threadsafe(self._on_written, new, writing, failed))
        except Exception as error:
            self._on_written(new, writing, frozenset(one.judged.event_id for one in new))
            if not isinstance(error, OutletError):
                raise

    def _build_outgoing(self, new: _NewEvent, producer: str) -> OutgoingRecord:
        judged, known, _ = new
        record = judged.record
        if known.status is EventStatus.HELD:
            record = judged.build_rejected(self.stream, producer, known.arrived_us, is_held=True).encode()
        return OutgoingRecord(judged.event_id, judged.event_us, known.arrived_us, record)

    def _on_written(self, new: Sequence[_NewEvent], writing: asyncio.Future[None], failed: frozenset[bytes]) -> None:
        """Complete a write: forget the events that failed, release the waiting requests, and stamp the rest."""
        written: list[_NewEvent] = []
        for one in new:
            event_id, known = one.judged.event_id, one.known
            if event_id in failed:
                self._recent.forget(event_id)
                rules.release_claims(one.claims)
                continue
            written.append(one)
            known.writing = None
            if known.status is EventStatus.ENTERED and not known.faults:
                self._recent.put(event_id, (known.sent_hash, known.content_hash, known.schema, known.arrived_us))
        self.account.refuse(len(new) - len(written), RefusalReason.NOT_WRITTEN)
        if not writing.done():
            writing.set_result(None)
        self._stamp(written)

    def _stamp(self, written: Sequence[_NewEvent]) -> None:
        entered = []
        for judged, known, _ in written:
            if known.status is EventStatus.HELD:
                self.stamping.stamp_rejected(judged, known.arrived_us)
            else:
                entered.append(judged)
        self.account.emit(len(entered), Output.STREAM)
        self.account.emit(len(written) - len(entered), Output.QUARANTINE)
        if entered:
            ids_, times_us = [one.event_id for one in entered], [one.event_us for one in entered]
            self.stamping.stamp_entered(ids_, times_us, written[0].known.arrived_us, self._clock.wall_ns() // 1_000)

    def _write_rejected(
        self, bad: Sequence[_RequestEvent], arrived_us: int, producer: str, receipt: Receipt
    ) -> asyncio.Future[frozenset[bytes]]:
        """Write refused events to quarantine and stamp them; the future returns the ids of those that failed."""
        refused, leaving = [], []
        for _, known, judged in bad:
            if judged is None:
                continue
            owns_id = judged.owns_id and known.status is not EventStatus.TAKEN_ID
            one = judged._replace(faults=known.faults, owns_id=owns_id)
            refused.append(one)
            record = one.build_rejected(self.stream, producer, arrived_us, is_held=False).encode()
            leaving.append(OutgoingRecord(one.event_id, one.event_us, arrived_us, record))
        loop = asyncio.get_running_loop()
        keeping: asyncio.Future[frozenset[bytes]] = loop.create_future()

        def settle(unkept: frozenset[bytes]) -> None:
            kept = [one for one in refused if one.event_id not in unkept]
            self.account.emit(len(kept), Output.QUARANTINE)
            self.account.refuse(len(refused) - len(kept), RefusalReason.NOT_WRITTEN)
            for one in kept:
                self.stamping.stamp_rejected(one, arrived_us)
            keeping.set_result(unkept)

        receipt.hand_on(len(refused))
        try:
            self.rejected.write(leaving, lambda failed: loop.call_soon_threadsafe(settle, failed))
        except Exception as error:
            settle(frozenset(one.event_id for one in refused))
            if not isinstance(error, OutletError):
                raise
        return keeping


def _build_result(looked: _RequestEvent, unkept: Container[bytes]) -> EventResult:
    """Return the result of an event; one that still has a write after its end was not written."""
    known = looked.known
    is_unkept = known.status >= EventStatus.TAKEN_ID and looked.event_id in unkept
    fate = EventStatus.NOT_WRITTEN if is_unkept or known.writing is not None else known.status
    return EventResult(ids.format_uuid(looked.event_id), fate, known.arrived_us, known.faults)


def _refusal_problem(bad: Sequence[_KnownEvent], count: int) -> HttpProblem:
    faults = [fault for one in bad for fault in one.faults][:MAX_FAULTS]
    told = f"{len(bad)} of {count} events may not enter, and so none of them did: see errors"
    is_taken = all(one.status is EventStatus.TAKEN_ID for one in bad)
    status = HTTPStatus.CONFLICT if is_taken else HTTPStatus.UNPROCESSABLE_ENTITY
    return HttpProblem(status, "id-taken" if is_taken else "bad-events", told, faults)


def _not_kept_problem(count: int) -> HttpProblem:
    told = f"{count} events may not enter, and cannot be kept now: send all of them again, with the same ids"
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "not-kept", told)


def _not_written_problem(outcomes: Sequence[EventResult]) -> HttpProblem:
    written = sum(one.status < EventStatus.TAKEN_ID for one in outcomes)
    told = f"{written} of {len(outcomes)} events were written: send all of them again, with the same ids"
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "not-written", told)
