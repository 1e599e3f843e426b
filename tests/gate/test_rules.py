"""Tests of rules: the violations of each, their places, and the actions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import rules
from hopwatch.gate.rules import (
    Action,
    Enumeration,
    EventRule,
    FieldPath,
    Freshness,
    NumberRange,
    Pattern,
    Required,
    RuleCheck,
    RuleEvent,
    Uniqueness,
)
from hopwatch.probes.http.problems import Fault

PRICE, NAME, EACH = FieldPath.parse("price"), FieldPath.parse("customer.name"), FieldPath.parse("lines[].price")


def subject(value: Any, event_id: bytes = b"a" * 16, event_us: int = 0, arrived_us: int = 0) -> RuleEvent:  # noqa: ANN401 - an event
    """Return an event."""
    return RuleEvent(value, event_id, event_us, arrived_us)


@pytest.mark.parametrize(
    ("check", "value", "broken"),
    [
        (Required(PRICE), {"price": 0}, []),
        (Required(PRICE), {"price": None}, [("/price", "it is required")]),
        (Required(PRICE), {}, [("/price", "it is required")]),
        (Required(NAME), {"customer": {}}, [("/customer/name", "it is required")]),
        (Required(NAME), {"customer": ("com.x.Person", {"name": "x"})}, []),
        (Required(EACH), {"lines": [{"price": 1}, {}]}, [("/lines/1/price", "it is required")]),
        (Required(EACH), {"lines": []}, []),
        (Pattern(PRICE, "[0-9a-f-]{36}"), {"price": UUID(int=7)}, []),
        (Enumeration(PRICE, (0.1, 2)), {"price": Decimal("0.10")}, []),
        (Enumeration(PRICE, ("0.1", True)), {"price": Decimal("0.1")}, [("/price", "it is one of 0.1, True")]),
        (NumberRange(PRICE, 1, 3), {"price": 1}, []),
        (NumberRange(PRICE, 1, 3), {"price": Decimal(3)}, []),
        (NumberRange(PRICE, 1, 3), {"price": ("double", 3.5)}, [("/price", "it is at most 3")]),
        (NumberRange(PRICE, 1, 3), {"price": 0.5}, [("/price", "it is at least 1")]),
        (NumberRange(PRICE, None, 3), {"price": -9}, []),
        (NumberRange(PRICE, 1, None), {"price": 9}, []),
        (NumberRange(PRICE, 1, 3), {"price": "2"}, [("/price", "it is a number")]),
        (NumberRange(PRICE, 1, 3), {"price": True}, [("/price", "it is a number")]),
        (NumberRange(PRICE, 1, 3), {}, []),
        (NumberRange(PRICE, 1, 3), {"price": None}, []),
        (NumberRange(EACH, 1, 3), {"lines": [{"price": 9}, {"price": 0}]}, [
            ("/lines/0/price", "it is at most 3"), ("/lines/1/price", "it is at least 1"),
        ]),
        (Pattern(NAME, "[a-z]+|7"), {"customer": {"name": "abc"}}, []),
        (Pattern(NAME, "[a-z]+|7"), {"customer": {"name": "abc7"}}, [("/customer/name", "it does not match [a-z]+|7")]),
        (Pattern(NAME, "[a-z]+"), {"customer": {"name": "abc\n"}}, [("/customer/name", "it does not match [a-z]+")]),
        (Pattern(NAME, "[a-z]+"), {"customer": {"name": 7}}, [("/customer/name", "it does not match [a-z]+")]),
        (Enumeration(PRICE, (1, "x")), {"price": 1}, []),
        (Enumeration(PRICE, (1, "x")), {"price": "y"}, [("/price", "it is one of 1, x")]),
        (Enumeration(PRICE, (1, "x")), {"price": True}, [("/price", "it is one of 1, x")]),
    ],
)  # fmt: skip
def test_what_breaks_a_rule(check: RuleCheck, value: Any, broken: list[tuple[str, str]]) -> None:  # noqa: ANN401 - an event
    """And what does not; what is not there breaks the rule that it has to be, and no other."""
    assert list(check.find_faults(subject(value))) == broken


def test_an_event_is_fresh_up_to_its_span() -> None:
    """Counted from its event time to its arrival; one from ahead is fresh."""
    check = Freshness(60_000_000)
    for arrived_us, told in (
        (-5, []),
        (60_000_000, []),
        (61_000_000, [("", "it comes 61 s after its event time, 60 s are allowed")]),
    ):
        assert list(check.find_faults(subject({}, arrived_us=arrived_us))) == told


def test_a_value_comes_once_within_its_span() -> None:
    """But for the event itself; what was not let in has taken nothing, and after the span it is free again."""
    check = Uniqueness(PRICE, 60_000_000)
    first = subject({"price": 1})
    assert list(check.find_faults(first)) == []
    keys = check.claim(first)
    assert list(check.find_faults(first)) == []
    other = subject({"price": 1}, b"b" * 16, arrived_us=59_999_999)
    assert list(check.find_faults(other)) == [("/price", "another event had it in the 60 s before")]
    assert list(check.find_faults(other._replace(arrived_us=60_000_000))) == []
    assert list(check.find_faults(other._replace(value={"price": "1"}))) == []
    assert check.claim(first) == check.claim(other) == []
    check.release(keys)
    assert list(check.find_faults(other)) == []


def test_decimals_of_one_value_are_one() -> None:
    """Decimals that differ in zeros at their end are one value."""
    check = Uniqueness(PRICE, 60_000_000)
    check.claim(subject({"price": Decimal("12.5")}))
    assert len(list(check.find_faults(subject({"price": Decimal("12.50")}, b"b" * 16)))) == 1


def test_all_that_is_broken_is_told_with_what_follows() -> None:
    """In the order of the rules, with the name of each."""
    asked = [
        EventRule("cheap", NumberRange(PRICE, None, 3), Action.NOTE),
        EventRule("named", Required(NAME), Action.REJECT),
    ]
    assert rules.find_violations(asked, subject({"price": 5})) == [
        rules.RuleViolation("cheap", Action.NOTE, Fault("/price", "cheap: it is at most 3")),
        rules.RuleViolation("named", Action.REJECT, Fault("/customer/name", "named: it is required")),
    ]


@given(st.text())
def test_a_path_is_names_and_dots(text: str) -> None:
    """An empty part is refused, whatever stands around it."""
    if "" in text.replace("[]", ".[]").split("."):
        with pytest.raises(ValueError, match="a field is named such as price"):
            FieldPath.parse(text)
    else:
        assert FieldPath.parse(text).parts


def test_a_pattern_that_is_none_is_refused() -> None:
    """With what the engine says of it."""
    with pytest.raises(ValueError, match=r"a pattern is one of Rust's regex, got '\(\?<=a\)b'"):
        Pattern(NAME, "(?<=a)b")
