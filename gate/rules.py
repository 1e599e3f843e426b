"""Rules for events beyond their schema, and what follows from breaking one; pure but for what is to be unique."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from hopwatch.gate.recent_map import RecentMap
from hopwatch.probes.http.problems import Fault, json_pointer

EACH_ITEM: Final = "[]"
"""The part of a path that stands for each item of an array."""
MIN_UNIQUE_VALUES: Final = 500_000
"""So many values a rule of uniqueness remembers at least."""
_ABSENT: Final = object()
_MAX_FAULTS_PER_RULE: Final = 3
"""So many places of an array are told for one rule."""


class Action(StrEnum):
    """Action taken on an event that breaks a rule, from the mildest to the hardest."""

    NOTE = "note"
    QUARANTINE = "quarantine"
    REJECT = "reject"


class RuleEvent(NamedTuple):
    """The event that is looked at: its value, as the schema reads it, its id and its two times in µs."""

    value: Any
    event_id: bytes
    event_us: int
    arrived_us: int


class RuleCheck(Protocol):
    """Check of a rule."""

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield a JSON pointer into the event, and what is wrong there."""


class EventRule(NamedTuple):
    """A rule: its name, what it looks for, and what becomes of an event that breaks it."""

    name: str
    check: RuleCheck
    action: Action


class RuleViolation(NamedTuple):
    """A rule that an event broke, and where."""

    rule: str
    action: Action
    fault: Fault
    is_staleness: bool = False


def find_violations(rules: Sequence[EventRule], event: RuleEvent) -> list[RuleViolation]:
    """Return all that an event breaks."""
    return [
        RuleViolation(
            rule.name, rule.action, Fault(place, f"{rule.name}: {told}"[:200]), isinstance(rule.check, Freshness)
        )
        for rule in rules
        for place, told in islice(rule.check.find_faults(event), _MAX_FAULTS_PER_RULE)
    ]


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A way into an event: names of fields, and :data:`EACH_ITEM`."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Return the path that ``customer.lines[].price`` is.

        Raises:
            ValueError: a part of it is empty.
        """
        parts = tuple(text.replace(EACH_ITEM, f".{EACH_ITEM}").split("."))
        if "" in parts:
            raise ValueError(f"a field is named such as price, customer.name or lines[].price, got {text!r:.80}")
        return cls(parts)

    def resolve(self, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - what the schema says
        """Yield a pointer and a value for each place that the path leads to; :data:`_ABSENT` where there is none."""
        for place, one in _resolve(value, self.parts, ()):
            yield json_pointer(place), one

    def first_value(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """Return what the path leads to first; None where there is nothing."""
        found = next((one for _, one in self.resolve(value)), None)
        return None if found is _ABSENT else found


def _resolve(
    value: Any,  # noqa: ANN401 - as above
    parts: tuple[str, ...],
    way: tuple[str | int, ...],
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, tuple):  # of a union: the name of the type, and the value
        value = value[1]
    if not parts:
        yield way, value
    elif parts[0] == EACH_ITEM:
        for number, one in enumerate(value if isinstance(value, list) else ()):
            yield from _resolve(one, parts[1:], (*way, number))
    elif isinstance(value, dict) and parts[0] in value:
        yield from _resolve(value[parts[0]], parts[1:], (*way, parts[0]))
    else:
        yield (*way, *parts), _ABSENT


@dataclass(frozen=True, slots=True)
class Required:
    """A field is there, and not null."""

    field: FieldPath

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield where it is not."""
        for place, value in self.field.resolve(event.value):
            if value is _ABSENT or value is None:
                yield place, "it has to be there"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A number lies between two others, these included."""

    field: FieldPath
    minimum: float | None
    maximum: float | None

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield where it does not; what is no number is outside."""
        for place, value in _present_values(self.field, event):
            is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            # NaN, which Avro has and JSON has not, lies nowhere.
            if not is_number or (self.minimum is not None and not value >= self.minimum):
                yield (
                    place,
                    f"it is at least {self.minimum:g}" if is_number and self.minimum is not None else "it is a number",
                )
            elif self.maximum is not None and not value <= self.maximum:
                yield place, f"it is at most {self.maximum:g}"


class Pattern:
    """A text matches a pattern from its beginning to its end, in the language of Rust's ``regex``.

    That engine takes time in proportion to the text, whatever the pattern.
    """

    def __init__(self, field: FieldPath, pattern: str) -> None:
        """Compile it.

        Raises:
            ValueError: it is no pattern.
        """
        self.field, self.pattern = field, pattern
        try:
            schema = core_schema.str_schema(pattern=rf"\A(?:{pattern})\z", regex_engine="rust-regex", strict=True)
            self._validator = SchemaValidator(schema)
        except SchemaError as error:
            raise ValueError(f"a pattern is one of Rust's regex, got {pattern!r:.80}: {error!s:.200}") from None

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield where it does not."""
        for place, value in _present_values(self.field, event):
            try:
                self._validator.validate_python(value)
            except ValidationError:
                yield place, f"it does not match {self.pattern:.80}"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A value is one of a list."""

    field: FieldPath
    values: tuple[str | int | float | bool, ...]

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield where it is not."""
        for place, value in _present_values(self.field, event):
            if not any(_is_equal(value, one) for one in self.values):
                yield place, f"it is one of {', '.join(map(str, self.values))}"[:120]


def _is_equal(value: object, one: str | float) -> bool:
    """Return whether a value equals one of the configuration: true is not 1, and 0.1 is compared as a decimal."""
    if isinstance(value, Decimal):
        return not isinstance(one, bool | str) and value == Decimal(str(one))
    return value == one and isinstance(value, bool) == isinstance(one, bool)


@dataclass(frozen=True, slots=True)
class Freshness:
    """An event arrives soon after its event time."""

    within_us: int

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield if it does not."""
        late_us = event.arrived_us - event.event_us
        if late_us > self.within_us:
            yield "", f"it comes {late_us / 1e6:.0f} s after its event time, {self.within_us / 1e6:g} s are allowed"


class Uniqueness:
    """A value comes once within a span of arrival times; as far as this gate remembers."""

    def __init__(self, field: FieldPath, within_us: int, most: int = MIN_UNIQUE_VALUES) -> None:
        """Begin knowing nothing."""
        self.field, self.within_us = field, within_us
        self._claimed: RecentMap[int, tuple[bytes, int]] = RecentMap(most)

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield where another event has the value already."""
        for place, value in _present_values(self.field, event):
            found = self._claimed.get(_value_key(value))
            if found is not None and found[0] != event.event_id and event.arrived_us - found[1] < self.within_us:
                yield place, f"another event had it in the {self.within_us / 1e6:g} s before"

    def claim(self, event: RuleEvent) -> list[int]:
        """Remember the values of an event that is let in, and return the keys of those that are new with it.

        A value that another event has stays the other's.
        """
        new = []
        for _, value in _present_values(self.field, event):
            key = _value_key(value)
            found = self._claimed.get(key)
            if found is None or event.arrived_us - found[1] >= self.within_us:
                self._claimed.put(key, (event.event_id, event.arrived_us))
                new.append(key)
        return new

    def release(self, keys: Sequence[int]) -> None:
        """Forget values again: the event they are of was not let in."""
        for key in keys:
            self._claimed.forget(key)


Claims = list[tuple[Uniqueness, list[int]]]


def claim_values(rules: Sequence[EventRule], event: RuleEvent) -> Claims:
    """Remember what of an event that is let in has to be unique, and return how to forget it."""
    return [(rule.check, rule.check.claim(event)) for rule in rules if isinstance(rule.check, Uniqueness)]


def release_claims(claims: Claims) -> None:
    """Forget what was claimed."""
    for check, keys in claims:
        check.release(keys)


def _present_values(field: FieldPath, event: RuleEvent) -> Iterator[tuple[str, Any]]:
    """Yield the values that are there; whether they have to be is a rule of its own."""
    for place, value in field.resolve(event.value):
        if value is not _ABSENT and value is not None:
            yield place, str(value) if isinstance(value, UUID) else value


def _value_key(value: object) -> int:
    return hash(repr(value.normalize() if isinstance(value, Decimal) else value))
