"""What happens to the events of one stream: judged, looked for among recent ones, written, stamped, answered."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from http import HTTPStatus
from typing import Final, NamedTuple

from hopwatch.gate import ids, judging, rules
from hopwatch.gate.bodies import EVENT_BYTES, Sent
from hopwatch.gate.codec import Codec
from hopwatch.gate.judging import Judged, Terms
from hopwatch.gate.outlets import Leaving, Outlet, OutletError
from hopwatch.gate.recent import Recent
from hopwatch.gate.records import Rejected
from hopwatch.gate.rules import Action, Claims
from hopwatch.gate.stamping import Stamping
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import MOST_FAULTS, Fault, Problem

REMEMBERED: Final = 250_000
"""So many events of a stream are known again at least, when they come a second time."""
MOST_WAITING: Final = 256
"""So many requests of one stream wait at once: a transport that is slow keeps the other streams from nothing."""


class Fate(IntEnum):
    """What became of an event, as its answer says it."""

    ENTERED = 201
    HELD = 202
    TAKEN_ID = 409
    REJECTED = 422
    NOT_WRITTEN = 503


class Outcome(NamedTuple):
    """What became of one event; ``arrived_us`` is when it came first. ``faults`` are what is wrong, or was noted."""

    event_id: str
    fate: Fate
    arrived_us: int
    faults: tuple[Fault, ...] = ()


@dataclass(slots=True, eq=False)
class _Known:
    """An event that came: what it was, what it was answered, and the write that it waits for, until it is written.

    ``sent`` is a hash of what was sent, ``content`` one of what is written and of the event time.
    """

    sent: int
    content: int
    schema: bytes
    arrived_us: int
    fate: Fate = Fate.ENTERED
    faults: tuple[Fault, ...] = ()
    writing: asyncio.Future[None] | None = field(default=None, repr=False)


_Brief = tuple[int, int, bytes, int]
"""The first four fields of one that entered, and of which there is no more to say; the garbage collector skips it."""


class _Looked(NamedTuple):
    """An event of a request: its id, what is known of it, and how it was judged, unless it was known already."""

    event_id: bytes
    known: _Known
    judged: Judged | None


class _New(NamedTuple):
    """An event that may go out, and what it has claimed."""

    judged: Judged
    known: _Known
    claims: Claims


@dataclass(frozen=True, slots=True)
class Entrance:
    """What a stream's events are held to: the subject that has their schema, and their terms."""

    stream: str
    subject: str
    terms: Terms


class Intake:
    """The entrance of one stream; all calls come from one event loop."""

    def __init__(
        self, entrance: Entrance, outlet: Outlet, rejected: Outlet, *, stamping: Stamping, clock: Clock
    ) -> None:
        """Take the parts."""
        self.stream, self.subject, self.terms = entrance.stream, entrance.subject, entrance.terms
        self.outlet, self.rejected, self.stamping = outlet, rejected, stamping
        self._clock = clock
        self._waiting = 0
        self._recent: Recent[bytes, _Known | _Brief] = Recent(REMEMBERED)

    async def take(
        self, sent: Sequence[Sent], codec: Codec, *, producer: str = "", each: bool, keeps: bool = True
    ) -> list[Outcome]:
        """Let events in, and return what became of them once the transport has them.

        With ``each`` every event has a fate of its own. Without it all of them enter, or none. What may not enter is
        kept and stamped before that is said, unless ``keeps`` says that it is already; what cannot be kept stays with
        its sender, as what was not written does.

        Raises:
            Problem: without ``each``, one of them may not enter, or was not written or kept; or too many wait already.
        """
        if self._waiting >= MOST_WAITING:
            told = f"{MOST_WAITING} requests wait for the transport of {self.stream} already: come again"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", told)
        self._waiting += 1
        try:
            return await self._take(sent, codec, producer, each=each, keeps=keeps)
        finally:
            self._waiting -= 1

    async def _take(
        self, sent: Sequence[Sent], codec: Codec, producer: str, *, each: bool, keeps: bool
    ) -> list[Outcome]:
        arrived_us = self._clock.wall_ns() // 1_000
        new: dict[bytes, _New] = {}
        looked = [self._look(one, codec, new, arrived_us) for one in sent]
        bad = [one for one in looked if one.known.fate >= Fate.TAKEN_ID]
        keeping = self._refuse(bad, arrived_us, producer) if bad and keeps else None
        if bad and not each:
            for one in new.values():
                rules.release(one.claims)
            if keeping is not None and (unkept := await asyncio.shield(keeping)):
                raise _not_kept(len(unkept))
            raise _refusal([one.known for one in bad], len(looked))
        self._enter(new, producer, keeps=keeps)
        for writing in {one.known.writing for one in looked if one.known.writing is not None}:
            await asyncio.shield(writing)
        unkept = frozenset() if keeping is None else await asyncio.shield(keeping)
        outcomes = [_outcome(one, unkept) for one in looked]
        if not each and any(one.fate is Fate.NOT_WRITTEN for one in outcomes):
            raise _not_written(outcomes)
        return outcomes

    def _look(self, sent: Sent, codec: Codec, new: dict[bytes, _New], arrived_us: int) -> _Looked:
        """Look at one event; one that may go out and is not known yet is put to those that are new."""
        said = hash((repr(sent.time), sent.data))
        event_id = judging.read_id(sent)
        found = None if event_id is None else self._known_of(event_id, new)
        if found is not None and event_id is not None and found.sent == said:
            return _Looked(event_id, found, None)
        judged = judging.judge(sent, event_id, codec, self.terms, arrived_us)
        schema, content = codec.schema.fingerprint, hash((judged.event_us, judged.record))
        if not judged.record:
            known = _Known(said, 0, schema, arrived_us, Fate.REJECTED, judged.faults)
        elif found is not None:
            if found.content == content and found.schema == schema:
                return _Looked(judged.event_id, found, None)
            told = "another event came under this id: the id of an event is its own"
            known = _Known(said, 0, schema, arrived_us, Fate.TAKEN_ID, (Fault(f"{sent.place}/id", told),))
        elif judged.action is Action.REJECT:
            known = _Known(said, 0, schema, arrived_us, Fate.REJECTED, judged.faults)
        else:
            fate = Fate.HELD if judged.action is Action.QUARANTINE else Fate.ENTERED
            known = _Known(said, content, schema, arrived_us, fate, judged.faults)
            claims = [] if judged.subject is None else rules.claim(self.terms.rules, judged.subject)
            new[judged.event_id] = _New(judged, known, claims)
        return _Looked(judged.event_id, known, judged)

    def _known_of(self, event_id: bytes, new: Mapping[bytes, _New]) -> _Known | None:
        if event_id in new:
            return new[event_id].known
        found = self._recent.get(event_id)
        return _Known(*found) if isinstance(found, tuple) else found

    def _enter(self, new: Mapping[bytes, _New], producer: str, *, keeps: bool) -> None:
        """Let go out what is new; each is known from now on."""
        for event_id, one in new.items():
            if keeps or one.known.fate is Fate.ENTERED:
                self._recent.put(event_id, one.known)
        self._write([one for one in new.values() if one.known.fate is Fate.ENTERED], self.outlet, producer)
        if keeps:
            self._write([one for one in new.values() if one.known.fate is Fate.HELD], self.rejected, producer)

    def _write(self, new: Sequence[_New], outlet: Outlet, producer: str) -> None:
        """Hand events to the transport; whoever sends one of them again waits for the same write."""
        if not new:
            return
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[None] = loop.create_future()
        for one in new:
            one.known.writing = writing
        try:
            leaving = [self._leaving(one, producer) for one in new]
            outlet.write(leaving, lambda failed: loop.call_soon_threadsafe(self._settle, new, writing, failed))
        except Exception as error:
            self._settle(new, writing, frozenset(one.judged.event_id for one in new))
            if not isinstance(error, OutletError):
                raise

    def _leaving(self, new: _New, producer: str) -> Leaving:
        judged, known, _ = new
        record = judged.record
        if known.fate is Fate.HELD:
            record = self._rejected(judged, known.arrived_us, producer, is_held=True).record()
        return Leaving(judged.event_id, judged.event_us, known.arrived_us, record)

    def _settle(self, new: Sequence[_New], writing: asyncio.Future[None], failed: frozenset[bytes]) -> None:
        """Hear what was written: forget what was not, answer, and stamp the rest."""
        written = []
        for one in new:
            event_id, known = one.judged.event_id, one.known
            if event_id in failed:
                self._recent.forget(event_id)
                rules.release(one.claims)
                continue
            written.append(one)
            known.writing = None
            if known.fate is Fate.ENTERED and not known.faults:
                self._recent.put(event_id, (known.sent, known.content, known.schema, known.arrived_us))
        if not writing.done():
            writing.set_result(None)
        self._stamp(written)

    def _stamp(self, written: Sequence[_New]) -> None:
        entered = []
        for judged, known, _ in written:
            if known.fate is Fate.HELD:
                self._stamp_rejected(judged, known.arrived_us)
            else:
                entered.append(judged)
        if entered:
            ids_, times_us = [one.event_id for one in entered], [one.event_us for one in entered]
            self.stamping.entered(ids_, times_us, written[0].known.arrived_us, self._clock.wall_ns() // 1_000)

    def _refuse(self, bad: Sequence[_Looked], arrived_us: int, producer: str) -> asyncio.Future[frozenset[bytes]]:
        """Keep what may not enter, and stamp what is kept; the ids of what is not are known once that was tried."""
        refused, leaving = [], []
        for _, known, judged in bad:
            if judged is None:
                continue
            owns_id = judged.owns_id and known.fate is not Fate.TAKEN_ID
            one = judged._replace(faults=known.faults, owns_id=owns_id)
            refused.append(one)
            record = self._rejected(one, arrived_us, producer).record()
            leaving.append(Leaving(one.event_id, one.event_us, arrived_us, record))
        loop = asyncio.get_running_loop()
        keeping: asyncio.Future[frozenset[bytes]] = loop.create_future()

        def settle(unkept: frozenset[bytes]) -> None:
            for one in refused:
                if one.event_id not in unkept:
                    self._stamp_rejected(one, arrived_us)
            keeping.set_result(unkept)

        try:
            self.rejected.write(leaving, lambda failed: loop.call_soon_threadsafe(settle, failed))
        except OutletError:
            settle(frozenset(one.event_id for one in refused))
        return keeping

    def _stamp_rejected(self, judged: Judged, arrived_us: int) -> None:
        booked_us = arrived_us if judged.is_stale else judged.event_us
        self.stamping.rejected(judged.event_id, booked_us, arrived_us, judged.reason)

    def _rejected(self, one: Judged, arrived_us: int, producer: str, *, is_held: bool = False) -> Rejected:
        data = one.sent.data[:EVENT_BYTES]
        return Rejected(
            self.stream,
            one.event_id,
            one.said_us,
            arrived_us,
            producer,
            data,
            one.reasons,
            is_held=is_held,
            owns_id=one.owns_id,
        )


def _outcome(looked: _Looked, unkept: Container[bytes]) -> Outcome:
    """Return what became of an event; what still waits when its write is over was not written."""
    known = looked.known
    is_unkept = known.fate >= Fate.TAKEN_ID and looked.event_id in unkept
    fate = Fate.NOT_WRITTEN if is_unkept or known.writing is not None else known.fate
    return Outcome(ids.written(looked.event_id), fate, known.arrived_us, known.faults)


def _refusal(bad: Sequence[_Known], count: int) -> Problem:
    faults = [fault for one in bad for fault in one.faults][:MOST_FAULTS]
    told = f"{len(bad)} of {count} events may not enter, and so none of them did: see errors"
    is_taken = all(one.fate is Fate.TAKEN_ID for one in bad)
    status = HTTPStatus.CONFLICT if is_taken else HTTPStatus.UNPROCESSABLE_ENTITY
    return Problem(status, "id-taken" if is_taken else "bad-events", told, faults)


def _not_kept(count: int) -> Problem:
    told = f"{count} events may not enter, and cannot be kept now: send all of them again, with the same ids"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-kept", told)


def _not_written(outcomes: Sequence[Outcome]) -> Problem:
    written = sum(one.fate < Fate.TAKEN_ID for one in outcomes)
    told = f"{written} of {len(outcomes)} events were written: send all of them again, with the same ids"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-written", told)
