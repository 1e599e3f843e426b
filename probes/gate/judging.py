"""Whether an event may enter: its id, its time, its schema, its rules; all that is wrong with it is told at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from probes.contract.limits import ID_BYTES
from probes.gate import ids, rules
from probes.gate.bodies import Sent
from probes.gate.codec import Codec, MisfitError
from probes.gate.rules import Action, Rule, Subject
from probes.http.problems import Fault
from probes.values import TimeUnit, time_reader

EVENT_BYTES: Final = 256 * 1024
"""What an event has at most, as JSON and as Avro."""
AHEAD_US: Final = 300_000_000
"""So far an event time may be ahead of its arrival: clocks differ."""

_READ_US: Final = time_reader(TimeUnit.US)
_READ_ISO: Final = time_reader(TimeUnit.ISO)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """An event and what becomes of it: ``action`` is None for one that is in order.

    ``event_id`` is 16 bytes: what had no id is known by the BLAKE2b of its bytes. ``event_us`` is the event time, µs
    since 1970, or the arrival of what had none that can be. ``record`` is the event in its envelope, empty for one that
    does not fit its schema; ``faults`` are all that is wrong, with JSON pointers into the body.
    """

    sent: Sent
    event_id: bytes
    event_us: int
    record: bytes
    action: Action | None
    faults: tuple[Fault, ...]
    subject: Subject | None = None

    @property
    def reason(self) -> str:
        """What is wrong with it, in short: without where in the body it stood."""
        first = self.faults[0]
        place = first.place.removeprefix(self.sent.data_place) if self.sent.data_place else first.place
        return f"{place.removeprefix(self.sent.place) or '/'} {first.detail}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the events of a stream owe: how old they may be, in µs, and the rules of their subject."""

    max_age_us: int
    rules: Sequence[Rule] = ()


def judge(sent: Sent, codec: Codec, terms: Terms, arrived_us: int) -> Judged:
    """Return what becomes of an event that arrives now."""
    faults = list(sent.faults)
    event_id = _id(sent, faults)
    event_us = None if faults else _time(sent, event_id, terms, arrived_us, faults)
    value, record = None, b""
    if not sent.faults:
        try:
            value = codec.read(_checked(sent.data))
            record = _checked(codec.write(value))
        except MisfitError as error:
            faults += [Fault(sent.data_place + one.place, one.detail) for one in error.faults]
    if faults or event_us is None:
        told_us = arrived_us if event_us is None else event_us
        return Judged(sent, event_id, told_us, b"", Action.REJECT, tuple(faults))
    if not terms.rules:
        return Judged(sent, event_id, event_us, record, None, ())
    subject = Subject(value, event_id, event_us, arrived_us)
    broken = rules.judge(terms.rules, subject)
    told = tuple(Fault(sent.data_place + one.fault.place, one.fault.detail) for one in broken)
    return Judged(sent, event_id, event_us, record, _hardest(broken), told, subject)


def _hardest(broken: Sequence[rules.Broken]) -> Action | None:
    order = list(Action)
    return max((one.action for one in broken), key=order.index, default=None)


def _checked(data: bytes) -> bytes:
    if len(data) > EVENT_BYTES:
        raise MisfitError((Fault("", f"an event has at most {EVENT_BYTES:,} bytes, got {len(data):,}"),))
    return data


def _id(sent: Sent, faults: list[Fault]) -> bytes:
    try:
        if isinstance(sent.event_id, str):
            return ids.read(sent.event_id)
        if not sent.faults:
            got = type(sent.event_id).__name__
            faults.append(Fault(f"{sent.place}/id", f"an id is a UUID in a text, got {got}"))
    except ValueError as error:
        faults.append(Fault(f"{sent.place}/id", str(error)))
    return blake2b(sent.data, digest_size=ID_BYTES).digest()


def _time(sent: Sent, event_id: bytes, terms: Terms, arrived_us: int, faults: list[Fault]) -> int | None:
    """Return the event time, None where there is none that can be."""
    try:
        found = ids.time_us(event_id) if sent.time is None else _said_us(sent.time)
        if found is None:
            told = f"it needs one: an id of version {ids.version(event_id)} knows none, those of 1, 6 and 7 do"
            raise ValueError(told)  # noqa: TRY301 - one sentence of many
        return _plausible(found, terms, arrived_us)
    except ValueError as error:
        faults.append(Fault(f"{sent.place}/time", str(error)))
        return None


def _said_us(time: object) -> int:
    if type(time) is int:
        return _READ_US(time)
    if isinstance(time, str):
        return _READ_ISO(time)
    raise ValueError(f"a time is RFC 3339 text with a zone or whole µs since 1970, got {type(time).__name__}")


def _plausible(event_us: int, terms: Terms, arrived_us: int) -> int:
    ahead_us = event_us - arrived_us
    if ahead_us > AHEAD_US:
        raise ValueError(
            f"the event time is {ahead_us / 1e6:.0f} s ahead of now, {AHEAD_US // 1_000_000} s are allowed"
        )
    if -ahead_us > terms.max_age_us:
        raise ValueError(f"the event time is {-ahead_us / 1e6:.0f} s old, {terms.max_age_us / 1e6:.0f} s are allowed")
    return event_us
