"""Tests of the search's errors."""

from __future__ import annotations

import re

import pytest

from hopwatch.rate.search import SearchEnd, SearchPlan, SearchState, advance_search
from hopwatch.rate.step import StepState


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((0, 0, 1, 0.1), "the rates are 0 < min <= start <= max, got 0, 0 and 1"),
        ((2, 1, 1, 0.1), "the rates are 0 < min <= start <= max, got 1, 2 and 1"),
        ((1, 1, float("inf"), 0.1), "the rates are 0 < min <= start <= max, got 1, 1 and inf"),
        ((1, 1, 1, 0), "the tolerance is a ratio above 0 and at most 1, got 0"),
    ],
)
def test_bounds_that_cannot_be_are_named(bounds: tuple[float, float, float, float], told: str) -> None:
    """The error has the values that were got."""
    with pytest.raises(ValueError, match=re.escape(told)):
        SearchPlan(*bounds)


def test_a_search_that_has_ended_goes_on_no_more() -> None:
    """The error says how it ended."""
    state = SearchState(1, 2, 1, end=SearchEnd.FOUND)
    with pytest.raises(ValueError, match=r"the search has ended \(found\): start another one"):
        advance_search(SearchPlan(1, 1, 2, 0.1), state, StepState.HOLDS)
