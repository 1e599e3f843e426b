"""What happens to the events of one stream: judged, looked for among recent ones, written, stamped, answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from http import HTTPStatus
from typing import Final

from probes.clock import Clock
from probes.gate import ids, judging, rules
from probes.gate.bodies import Sent
from probes.gate.codec import Codec
from probes.gate.judging import Judged, Terms
from probes.gate.outlets import Leaving, Outlet, OutletError
from probes.gate.recent import Recent
from probes.gate.records import Rejected
from probes.gate.rules import Action, Claims
from probes.gate.stamping import Stamping
from probes.http.problems import MOST_FAULTS, Fault, Problem

REMEMBERED: Final = 250_000
"""So many events of a stream are known again at least, when they come a second time."""
_log = logging.getLogger("hopwatch.gate")


class Fate(IntEnum):
    """What became of an event, as its answer says it."""

    ENTERED = 201
    HELD = 202
    TAKEN_ID = 409
    REJECTED = 422
    NOT_WRITTEN = 503


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one event; ``arrived_us`` is when it came first. ``faults`` are what is wrong, or was noted."""

    event_id: str
    fate: Fate
    arrived_us: int
    faults: tuple[Fault, ...] = ()


@dataclass(slots=True, eq=False)
class _Known:
    """An event that came: what it was, what it was answered, and the write that it waits for, if it does."""

    content: int
    schema: bytes
    arrived_us: int
    fate: Fate = Fate.ENTERED
    faults: tuple[Fault, ...] = ()
    writing: asyncio.Future[frozenset[bytes]] | None = field(default=None, repr=False)


_Brief = tuple[int, bytes, int]
"""The first three fields of one that entered, and of which there is no more to say; the garbage collector skips it."""


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
        self.stream, self.subject, self._terms = entrance.stream, entrance.subject, entrance.terms
        self.outlet, self.rejected, self.stamping = outlet, rejected, stamping
        self._clock = clock
        self._unkept = 0
        self._recent: Recent[bytes, _Known | _Brief] = Recent(REMEMBERED)

    async def take(self, sent: Sequence[Sent], codec: Codec, *, producer: str = "", each: bool) -> list[Outcome]:
        """Let events in, and return what became of them once the transport has them.

        With ``each`` every event has a fate of its own. Without it all of them enter, or none.

        Raises:
            Problem: without ``each``, one of them may not enter, or was not written.
        """
        arrived_us = self._clock.wall_ns() // 1_000
        here: dict[bytes, _Known] = {}
        claims: Claims = []
        judged, known = [], []
        for one in sent:
            judged.append(judging.judge(one, codec, self._terms, arrived_us))
            known.append(self._known_of(judged[-1], here, codec.schema.fingerprint, arrived_us))
            if judged[-1].subject is not None and known[-1] is here.get(judged[-1].event_id):
                claims += rules.claim(self._terms.rules, judged[-1].subject)
        if any(found.fate >= Fate.TAKEN_ID for found in known):
            self._refuse(judged, known, arrived_us, producer)
            if not each:
                rules.release(claims)
                raise _refusal(known)
        self._enter({one.event_id: one for one in judged}, here, producer)
        failed = await _settled(known)
        outcomes = [
            Outcome(
                ids.written(one.event_id),
                Fate.NOT_WRITTEN if found.writing is not None and one.event_id in failed else found.fate,
                found.arrived_us,
                found.faults,
            )
            for one, found in zip(judged, known, strict=True)
        ]
        if failed and not each:
            raise _not_written(outcomes)
        return outcomes

    def _known_of(self, judged: Judged, here: dict[bytes, _Known], schema: bytes, arrived_us: int) -> _Known:
        """Return what is known of an event; one that is new and may enter is kept in ``here``."""
        if not judged.record:
            return _Known(0, schema, arrived_us, Fate.REJECTED, judged.faults)
        content = hash((judged.event_us, judged.record))
        found = self._recent.get(judged.event_id) or here.get(judged.event_id)
        if found is not None:
            known = _Known(*found) if isinstance(found, tuple) else found
            # A schema that came between may have made other bytes of it.
            if known.content == content or known.schema != schema:
                return known
            told = "another event came under this id: the id of an event is its own"
            return _Known(0, schema, arrived_us, Fate.TAKEN_ID, (Fault(f"{judged.sent.place}/id", told),))
        if judged.action is Action.REJECT:
            return _Known(0, schema, arrived_us, Fate.REJECTED, judged.faults)
        fate = Fate.HELD if judged.action is Action.QUARANTINE else Fate.ENTERED
        here[judged.event_id] = _Known(content, schema, arrived_us, fate, judged.faults)
        return here[judged.event_id]

    def _enter(self, judged: Mapping[bytes, Judged], new: Mapping[bytes, _Known], producer: str) -> None:
        """Let go out what is new, each event once."""
        for event_id, known in new.items():
            self._recent.put(event_id, known)
        for fate, outlet in ((Fate.ENTERED, self.outlet), (Fate.HELD, self.rejected)):
            self._write([(judged[at], known) for at, known in new.items() if known.fate is fate], outlet, producer)

    def _write(self, new: Sequence[tuple[Judged, _Known]], outlet: Outlet, producer: str) -> None:
        """Hand events to the transport; all that are new are known already, and are waited for by their write."""
        if not new:
            return
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[frozenset[bytes]] = loop.create_future()
        for _, known in new:
            known.writing = writing
        leaving = [self._leaving(judged, known, producer) for judged, known in new]
        try:
            outlet.write(leaving, lambda failed: loop.call_soon_threadsafe(self._settle, new, failed))
        except OutletError:
            self._settle(new, frozenset(judged.event_id for judged, _ in new))

    def _leaving(self, judged: Judged, known: _Known, producer: str) -> Leaving:
        record = judged.record
        if known.fate is Fate.HELD:
            record = self._rejected(judged, known.arrived_us, producer, is_held=True).record()
        return Leaving(judged.event_id, judged.event_us, known.arrived_us, record)

    def _settle(self, new: Sequence[tuple[Judged, _Known]], failed: frozenset[bytes]) -> None:
        """Hear what was written: forget what was not, stamp the rest."""
        entered = []
        for judged, known in new:
            if judged.event_id in failed:
                self._recent.forget(judged.event_id)
            elif known.fate is Fate.HELD:
                self.stamping.rejected(judged.event_id, judged.event_us, known.arrived_us, judged.reason)
            else:
                entered.append(judged)
                if not known.faults:
                    self._recent.put(judged.event_id, (known.content, known.schema, known.arrived_us))
        _, first = new[0]
        self.stamping.entered(
            [one.event_id for one in entered],
            [one.event_us for one in entered],
            first.arrived_us,
            self._clock.wall_ns() // 1_000,
        )
        if first.writing is not None and not first.writing.done():
            first.writing.set_result(failed)

    def _refuse(self, judged: Sequence[Judged], known: Sequence[_Known], arrived_us: int, producer: str) -> None:
        """Stamp and keep what may not enter; its sender has it, so nobody waits until it is kept."""
        leaving = []
        for at, found in zip(judged, known, strict=True):
            if found.fate >= Fate.TAKEN_ID:
                one = replace(at, faults=found.faults)
                self.stamping.rejected(one.event_id, one.event_us, arrived_us, one.reason)
                record = self._rejected(one, arrived_us, producer).record()
                leaving.append(Leaving(one.event_id, one.event_us, arrived_us, record))
        try:
            self.rejected.write(leaving, lambda failed: self._tell_unkept(len(failed)))
        except OutletError:
            self._tell_unkept(len(leaving))

    def _tell_unkept(self, count: int) -> None:
        """Log rejected events that could not be kept: the first, and then each time that they are ten times as many."""
        before, self._unkept = self._unkept, self._unkept + count
        if len(str(self._unkept)) > len(str(before)) or (count and not before):
            _log.warning("%d rejected events of %s could not be kept since the start", self._unkept, self.stream)

    def _rejected(self, one: Judged, arrived_us: int, producer: str, *, is_held: bool = False) -> Rejected:
        return Rejected(
            self.stream, one.event_id, one.event_us, arrived_us, producer, one.sent.data, one.faults, is_held
        )


async def _settled(known: Sequence[_Known]) -> frozenset[bytes]:
    """Wait for all writes, and return the ids of what was not written."""
    failed: frozenset[bytes] = frozenset()
    for writing in {one.writing for one in known if one.writing is not None}:
        failed |= await asyncio.shield(writing)
    return failed


def _refusal(known: Sequence[_Known]) -> Problem:
    bad = [one for one in known if one.fate >= Fate.TAKEN_ID]
    faults = [fault for one in bad for fault in one.faults][:MOST_FAULTS]
    told = f"{len(bad)} of {len(known)} events may not enter, and so none of them did: see errors"
    is_taken = all(one.fate is Fate.TAKEN_ID for one in bad)
    status = HTTPStatus.CONFLICT if is_taken else HTTPStatus.UNPROCESSABLE_ENTITY
    return Problem(status, "id-taken" if is_taken else "bad-events", told, faults)


def _not_written(outcomes: Sequence[Outcome]) -> Problem:
    written = sum(one.fate < Fate.TAKEN_ID for one in outcomes)
    told = f"{written} of {len(outcomes)} events were written: send all of them again, with the same ids"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-written", told)
