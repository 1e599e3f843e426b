"""Tests of spans of time in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.texts import time_spans


@pytest.mark.parametrize(
    ("span_us", "words"),
    [
        (0, "0 µs"),
        (-1_500, "-1.5 ms"),
        (999.4, "999 µs"),
        (999.6, "1.0 ms"),
        (999_940, "999.9 ms"),
        (999_960, "1.0 s"),
        (-999_960, "-1.0 s"),
        (119_940_000, "119.9 s"),
        (119_999_999, "2.0 min"),
        (4_000_000_000, "66.7 min"),
        (7_200_000_000, "2.0 h"),
        (172_800_000_000, "2.0 d"),
    ],
)
def test_a_span_is_told_in_the_unit_that_a_person_would_choose(span_us: float, words: str) -> None:
    """4,000,000 ms are 66.7 min; of a number that is rounded up to the next unit, that unit."""
    assert time_spans.format_duration(span_us) == words


@given(st.integers(-(2**63), 2**63))
def test_no_span_is_told_in_a_unit_that_is_too_small(span_us: int) -> None:
    """Below a day no number has more than four digits before its point, and what is told is right to its last digit."""
    unit, size_us = time_spans.choose_unit(span_us)
    number, said = time_spans.format_duration(span_us).split(" ")
    assert said == unit
    assert abs(float(number.replace(",", "")) * size_us - span_us) <= max(0.0500001 * size_us, 1e-12 * abs(span_us))
    assert unit == "d" or abs(float(number)) < 1_000
