"""Tests of how durations are read; that every allowed one is read right is a law."""

from __future__ import annotations

import pytest

from hopwatch.monitor.settings.durations import parse_duration_us, parse_positive_us


@pytest.mark.parametrize(
    ("text", "span_us"),
    [("500ms", 500_000), ("150s", 150_000_000), ("10m", 600_000_000), ("1h", 3_600_000_000), ("7d", 604_800_000_000)],
)
def test_each_unit(text: str, span_us: int) -> None:
    """The forms that the messages name mean what they say."""
    assert parse_duration_us(text) == parse_positive_us(text) == span_us


@pytest.mark.parametrize(
    "value", [150, 1.5, True, None, "", "150", "s", "1.5s", "-1s", "1 s", "1S", "1h30m", "1w", "\u0661s"]
)
def test_other_forms_are_refused_with_the_allowed_ones(value: object) -> None:
    """The error has the value that was got and all allowed forms."""
    allowed = 'a whole number with ms, s, m, h or d behind it, in quotes: "500ms", "150s", "10m", "1h", "7d"'
    with pytest.raises(ValueError, match="a duration is") as refused:
        parse_duration_us(value)
    assert str(refused.value) == f"a duration is {allowed}; got {value!r}"


def test_no_duration_is_longer_than_ten_years() -> None:
    """Sums of spans and times fit into 64 bits, because 3650 days are the most."""
    assert parse_duration_us("3650d") == 315_360_000_000_000
    with pytest.raises(ValueError, match=r"^a duration is at most 3650d, got '3651d'$"):
        parse_duration_us("3651d")


def test_some_durations_cannot_be_zero() -> None:
    """A trigger every 0 s is refused, a settle of 0 s is fine."""
    assert parse_duration_us("0s") == 0
    with pytest.raises(ValueError, match=r"^this duration is longer than zero, got '0s'$"):
        parse_positive_us("0s")
