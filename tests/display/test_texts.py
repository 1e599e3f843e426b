"""Tests of figures with their units."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.display import texts


def test_a_burn_rate_is_a_multiple_of_the_budget() -> None:
    """One that uses less than the budget reads as well as one that uses more."""
    assert [texts.format_burn_rate(rate) for rate in (0.5, 14.44)] == ["0.5 times the budget", "14.4 times the budget"]


@given(st.floats(0, 1))
def test_a_ratio_is_shown_as_none_or_all_only_if_it_is(ratio: float) -> None:
    """A small loss is never rounded to none, nor a small rest to none."""
    shown = texts.format_ratio(ratio)
    assert (float(shown.removesuffix("%")) == 0) == (ratio * 100 == 0)
    assert (shown == "100%") == (ratio == 1)


def test_minutes_stay_minutes() -> None:
    """As alerts count them."""
    assert texts.format_minutes(1_500) == "1,500 min"
