"""Rules for events beyond their schema, and the action for a broken one; only uniqueness rules keep state."""

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
"""Part of a path that selects each item of an array."""
MIN_UNIQUE_VALUES: Final = 500_000
"""Minimum number of values that a uniqueness rule remembers."""
_ABSENT: Final = object()
_MAX_FAULTS_PER_RULE: Final = 3
"""Maximum number of faults that are reported for one rule."""


class Action(StrEnum):
    """Action taken on an event that breaks a rule, from the mildest to the hardest."""

    NOTE = "note"
    QUARANTINE = "quarantine"
    REJECT = "reject"


class RuleEvent(NamedTuple):
    """Event under check: its value, as decoded by the schema, its id and its two times in µs."""

    value: Any
    event_id: bytes
    event_us: int
    arrived_us: int


class RuleCheck(Protocol):
    """Check of a rule."""

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield each fault: a JSON pointer into the event, and a description."""


class EventRule(NamedTuple):
    """Rule: its name, its check, and the action on an event that breaks it."""

    name: str
    check: RuleCheck
    action: Action


class RuleViolation(NamedTuple):
    """Violation of a rule by an event, with its place."""

    rule: str
    action: Action
    fault: Fault
    is_staleness: bool = False


def find_violations(rules: Sequence[EventRule], event: RuleEvent) -> list[RuleViolation]:
    """Return the violations of all rules by an event."""
    return [
        RuleViolation(
            rule.name, rule.action, Fault(place, f"{rule.name}: {told}"[:200]), isinstance(rule.check, Freshness)
        )
        for rule in rules
        for place, told in islice(rule.check.find_faults(event), _MAX_FAULTS_PER_RULE)
    ]


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Path into an event: names of fields, and :data:`EACH_ITEM`."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Parse a path such as ``customer.lines[].price``.

        Raises:
            ValueError: a part of it is empty.
        """
        parts = tuple(text.replace(EACH_ITEM, f".{EACH_ITEM}").split("."))
        if "" in parts:
            raise ValueError(f"a field is named such as price, customer.name or lines[].price, got {text!r:.80}")
        return cls(parts)

    def resolve(self, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - what the schema says
        """Yield a pointer and a value for each place of the path; :data:`_ABSENT` where there is no value."""
        for place, one in _resolve(value, self.parts, ()):
            yield json_pointer(place), one

    def first_value(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """Return the first value of the path; None if there is none."""
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
    """Check that a field is present and not null."""

    field: FieldPath

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield the places without a value."""
        for place, value in self.field.resolve(event.value):
            if value is _ABSENT or value is None:
                yield place, "it is required"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Check that a number is within bounds, inclusive."""

    field: FieldPath
    minimum: float | None
    maximum: float | None

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield the places out of bounds; a value that is not a number is out of bounds."""
        for place, value in _present_values(self.field, event):
            is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            # NaN, which exists in Avro but not in JSON, is out of any bounds.
            if not is_number or (self.minimum is not None and not value >= self.minimum):
                yield (
                    place,
                    f"it is at least {self.minimum:g}" if is_number and self.minimum is not None else "it is a number",
                )
            elif self.maximum is not None and not value <= self.maximum:
                yield place, f"it is at most {self.maximum:g}"


class Pattern:
    """Check that a whole text matches a pattern, in the syntax of Rust's ``regex``.

    That engine takes time linear in the text, for any pattern.
    """

    def __init__(self, field: FieldPath, pattern: str) -> None:
        """Compile the pattern.

        Raises:
            ValueError: it is not a valid pattern.
        """
        self.field, self.pattern = field, pattern
        try:
            schema = core_schema.str_schema(pattern=rf"\A(?:{pattern})\z", regex_engine="rust-regex", strict=True)
            self._validator = SchemaValidator(schema)
        except SchemaError as error:
            raise ValueError(f"a pattern is one of Rust's regex, got {pattern!r:.80}: {error!s:.200}") from None

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield the places that do not match."""
        for place, value in _present_values(self.field, event):
            try:
                self._validator.validate_python(value)
            except ValidationError:
                yield place, f"it does not match {self.pattern:.80}"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """Check that a value is one of a list."""

    field: FieldPath
    values: tuple[str | int | float | bool, ...]

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield the places with another value."""
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
    """Check that an event arrives soon after its event time."""

    within_us: int

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield a fault if the event arrives too late."""
        late_us = event.arrived_us - event.event_us
        if late_us > self.within_us:
            yield "", f"it comes {late_us / 1e6:.0f} s after its event time, {self.within_us / 1e6:g} s are allowed"


class Uniqueness:
    """Check that a value is unique within a span of arrival times, as far as this gate remembers."""

    def __init__(self, field: FieldPath, within_us: int, most: int = MIN_UNIQUE_VALUES) -> None:
        """Begin without any values."""
        self.field, self.within_us = field, within_us
        self._claimed: RecentMap[int, tuple[bytes, int]] = RecentMap(most)

    def find_faults(self, event: RuleEvent) -> Iterator[tuple[str, str]]:
        """Yield the places whose value another event has claimed."""
        for place, value in _present_values(self.field, event):
            found = self._claimed.get(_value_key(value))
            if found is not None and found[0] != event.event_id and event.arrived_us - found[1] < self.within_us:
                yield place, f"another event had it in the {self.within_us / 1e6:g} s before"

    def claim(self, event: RuleEvent) -> list[int]:
        """Claim the values of an accepted event, and return the keys of the new ones.

        A value that another event has claimed stays with that event.
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
        """Release claimed values: their event was not accepted after all."""
        for key in keys:
            self._claimed.forget(key)


Claims = list[tuple[Uniqueness, list[int]]]


def claim_values(rules: Sequence[EventRule], event: RuleEvent) -> Claims:
    """Claim the unique values of an accepted event, and return the claims, to be released if it fails."""
    return [(rule.check, rule.check.claim(event)) for rule in rules if isinstance(rule.check, Uniqueness)]


def release_claims(claims: Claims) -> None:
    """Release claimed values."""
    for check, keys in claims:
        check.release(keys)


def _present_values(field: FieldPath, event: RuleEvent) -> Iterator[tuple[str, Any]]:
    """Yield the values that are present; required fields are a rule of their own."""
    for place, value in field.resolve(event.value):
        if value is not _ABSENT and value is not None:
            yield place, str(value) if isinstance(value, UUID) else value


def _value_key(value: object) -> int:
    return hash(repr(value.normalize() if isinstance(value, Decimal) else value))
