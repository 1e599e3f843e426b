"""Validation of one event: its id, its time, its schema and its rules; all faults are reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from hopwatch.gate import ids, rules
from hopwatch.gate.codec import Codec, SchemaMismatchError
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES, SentEvent
from hopwatch.gate.rules import Action, EventRule, RuleEvent
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.contract.limits import ID_BYTES
from hopwatch.probes.http.problems import MAX_FAULTS, Fault
from hopwatch.probes.values import TimeUnit, build_time_reader, check_event_us

MAX_AHEAD_US: Final = 300_000_000
"""Maximum lead of an event time over its arrival, in µs: clocks differ."""

_MIN_PLAUSIBLE_US: Final = 100_000_000_000_000
"""Times below it, before March 1973, are probably current times in another unit."""
_READ_US: Final = build_time_reader(TimeUnit.US)
_READ_ISO: Final = build_time_reader(TimeUnit.ISO)


class CheckedEvent(NamedTuple):
    """Event with the result of its checks: ``action`` is None for a valid event.

    ``event_id`` has 16 bytes: an event without a valid id gets the BLAKE2b of its bytes. ``event_us`` is the event
    time, µs since 1970, or the arrival of an event without a valid time. ``record`` is the event in its envelope, empty
    if it has faults other than broken rules; ``faults`` have JSON pointers into the body.
    """

    sent: SentEvent
    event_id: bytes
    event_us: int
    record: bytes
    action: Action | None
    faults: tuple[Fault, ...]
    rule_event: RuleEvent | None = None
    stated_us: int | None = None
    """Event time as the event states it, even if it is out of range; None if it states none."""
    owns_id: bool = True
    """Whether ``event_id`` is the event's own id: not a hash of its bytes, and not the id of another event."""
    is_stale: bool = False
    """Whether it is refused for its age: it counts in the window of its arrival, as its own is closed."""
    awaited: SchemaRef | None = None
    """Reference of the unknown schema that it waits for; None if it does not wait."""
    schema: str = ""
    """Name of the schema that wrote it, by subject and version if they are known; empty if none is named."""

    @property
    def reasons(self) -> tuple[Fault, ...]:
        """Faults of the event, with pointers into its data, or ``/id`` and ``/time``; not into its request."""
        return tuple(Fault(self._relative_place(one.place), one.detail) for one in self.faults)

    @property
    def reason(self) -> str:
        """Faults of the event in one short text."""
        first = self.reasons[0]
        return f"{first.place or '/'} {first.detail}"

    def build_rejected(self, stream: str, producer: str, arrived_us: int, *, is_held: bool) -> RejectedRecord:
        """Return the rejected record to write to quarantine; data that is too long is cut."""
        return RejectedRecord(
            stream,
            self.event_id,
            self.stated_us,
            arrived_us,
            producer,
            self.sent.data[:MAX_EVENT_BYTES],
            self.reasons,
            is_held=is_held,
            owns_id=self.owns_id,
        )

    def _relative_place(self, place: str) -> str:
        if self.sent.data_place and place.startswith(self.sent.data_place):
            return place.removeprefix(self.sent.data_place)
        return place.removeprefix(self.sent.place)


@dataclass(frozen=True, slots=True)
class EventPolicy:
    """Limits for the events of a stream: their maximum age, in µs, and the rules of their subject."""

    max_age_us: int
    rules: Sequence[EventRule] = ()


class ParsedEvent(NamedTuple):
    """Parsed event, before its rules are checked; ``event_us`` is None without a valid time."""

    sent: SentEvent
    event_id: bytes
    event_us: int | None
    value: object
    record: bytes
    faults: Sequence[Fault]
    stated_us: int | None = None
    owns_id: bool = True


def check_event(
    sent: SentEvent, own_id: bytes | None, codec: Codec, terms: EventPolicy, arrived_us: int
) -> CheckedEvent:
    """Check an event that arrives now; ``own_id`` is None without a valid id."""
    faults = list(sent.faults)
    if own_id is None and (fault := _find_id_fault(sent)) is not None:
        faults.append(fault)
    event_id = own_id or blake2b(sent.data, digest_size=ID_BYTES).digest()
    said_us = None if sent.faults else _parse_event_time(sent, own_id, faults)
    event_us = None if said_us is None else _check_stated_time(said_us, sent, terms, arrived_us, faults)
    value, record = None, b""
    if not sent.faults:
        try:
            value = _read_value(sent, codec)
            record = check_size(codec.encode_value(value))
        except SchemaMismatchError as error:
            faults += [Fault(sent.data_place + one.place, one.detail) for one in error.faults]
    is_own = own_id is not None
    return apply_rules(ParsedEvent(sent, event_id, event_us, value, record, faults, said_us, is_own), terms, arrived_us)


def _read_value(sent: SentEvent, codec: Codec) -> object:
    """Return the value of an event.

    Raises:
        SchemaMismatchError: it is too long, or does not match its schema.
    """
    data = check_size(sent.data)
    if sent.decoded is None:
        return codec.parse_json(data)
    if sent.decoded.faults:
        raise SchemaMismatchError(sent.decoded.faults)
    return sent.decoded.value


def apply_rules(looked: ParsedEvent, terms: EventPolicy, arrived_us: int) -> CheckedEvent:
    """Apply the rules to a parsed event; an event that has faults already is rejected."""
    sent, event_id, event_us, value, record, faults, said_us, owns_id = looked
    if faults or event_us is None:
        told_us = arrived_us if event_us is None else event_us
        told = tuple(faults)[:MAX_FAULTS]
        return CheckedEvent(sent, event_id, told_us, b"", Action.REJECT, told, None, said_us, owns_id)
    if not terms.rules:
        return CheckedEvent(sent, event_id, event_us, record, None, (), None, said_us)
    subject = RuleEvent(value, event_id, event_us, arrived_us)
    broken = rules.find_violations(terms.rules, subject)
    action = _strictest_action(broken)
    # Notes are not among the reasons of a refusal.
    reasons = [one for one in broken if action is Action.NOTE or one.action is not Action.NOTE]
    told = tuple(Fault(sent.data_place + one.fault.place, one.fault.detail) for one in reasons)[:MAX_FAULTS]
    is_stale = any(one.is_staleness for one in reasons) and action is not Action.NOTE
    return CheckedEvent(sent, event_id, event_us, record, action, told, subject, said_us, is_stale=is_stale)


def _strictest_action(broken: Sequence[rules.RuleViolation]) -> Action | None:
    order = list(Action)
    return max((one.action for one in broken), key=order.index, default=None)


def check_size(data: bytes) -> bytes:
    """Return the event unchanged if it is not too long.

    Raises:
        SchemaMismatchError: it is too long.
    """
    if len(data) > MAX_EVENT_BYTES:
        raise SchemaMismatchError((Fault("", f"an event has at most {MAX_EVENT_BYTES:,} bytes, got {len(data):,}"),))
    return data


def parse_id(sent: SentEvent) -> bytes | None:
    """Return the event's own id; None without a valid one."""
    try:
        return ids.parse_uuid(sent.event_id) if isinstance(sent.event_id, str) else None
    except ValueError:
        return None


def _find_id_fault(sent: SentEvent) -> Fault | None:
    """Return the fault of an invalid id; None if the event has other faults that explain it."""
    if isinstance(sent.event_id, str):
        return Fault(f"{sent.place}/id", ids.describe_bad_uuid(sent.event_id))
    if sent.faults:
        return None
    return Fault(f"{sent.place}/id", f"an id is a UUID in a text, got {type(sent.event_id).__name__}")


def _parse_event_time(sent: SentEvent, own_id: bytes | None, faults: list[Fault]) -> int | None:
    """Return the stated event time, else the time in the id."""
    try:
        if sent.time is not None:
            return _parse_time_us(sent.time)
        if own_id is None:
            return None
        if (found := ids.uuid_time_us(own_id)) is None:
            told = f"it is required: an id of version {ids.uuid_version(own_id)} has no time, those of 1, 6 and 7 do"
            raise ValueError(told)  # noqa: TRY301 - one sentence of many
        return check_event_us(found)
    except ValueError as error:
        faults.append(Fault(f"{sent.place}/time", str(error)))
        return None


def _parse_time_us(time: object) -> int:
    if type(time) is int:
        return _READ_US(time)
    if isinstance(time, str):
        return _READ_ISO(time)
    raise ValueError(f"a time is RFC 3339 text with a zone or whole µs since 1970, got {type(time).__name__}")


def _check_stated_time(
    said_us: int, sent: SentEvent, terms: EventPolicy, arrived_us: int, faults: list[Fault]
) -> int | None:
    try:
        return check_event_time(said_us, terms, arrived_us)
    except ValueError as error:
        hint = ""
        if sent.time is None:
            hint = ": it is taken from the id, as no other is given"
        elif type(sent.time) is int and said_us < _MIN_PLAUSIBLE_US:
            hint = ": a number is µs since 1970, is this in seconds or milliseconds?"
        faults.append(Fault(f"{sent.place}/time", f"{error}{hint}"))
        return None


def check_event_time(event_us: int, terms: EventPolicy, arrived_us: int) -> int:
    """Return the event time if it is plausible for an event that arrives at ``arrived_us``.

    Raises:
        ValueError: it is too far ahead of it, or too old.
    """
    ahead_us = event_us - arrived_us
    if ahead_us > MAX_AHEAD_US:
        raise ValueError(
            f"the event time is {ahead_us / 1e6:.0f} s ahead of now, {MAX_AHEAD_US // 1_000_000} s are allowed"
        )
    if -ahead_us > terms.max_age_us:
        raise ValueError(f"the event time is {-ahead_us / 1e6:.0f} s old, {terms.max_age_us / 1e6:.0f} s are allowed")
    return event_us
