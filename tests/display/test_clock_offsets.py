"""Tests of offsets of probes' clocks in words."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.display.clock_offsets import describe_clock, format_offset, group_clocks
from hopwatch.monitor.accounting.instances import InstanceClock
from hopwatch.monitor.kernel.books import ClockOffset


def clock(node: str, probe: str, low_us: int, high_us: int) -> InstanceClock:
    """Return the clock of a probe of one stream."""
    return InstanceClock("orders", node, probe, ClockOffset(low_us, high_us))


@pytest.mark.parametrize(
    ("low_us", "high_us", "told"),
    [
        (147_400, 152_600, "150.0 ± 2.7 ms ahead"),
        (-43_000, -37_000, "40.0 ± 3.1 ms behind"),
        (-1_500, 2_900, "right to 2.9 ms"),
        (-3_000, 0, "right to 3.0 ms"),
        (-1, 1, "right to 0.1 ms"),
        (0, 0, "right to 0.0 ms"),
        (1, 1, "0.0 ± 0.1 ms ahead"),
        (1_497_289, 1_504_411, "1,500.8 ± 3.7 ms ahead"),
    ],
)
def test_an_offset_has_its_error(low_us: int, high_us: int, told: str) -> None:
    """A clock that may be right is not called wrong."""
    assert format_offset(ClockOffset(low_us, high_us)) == told


def test_a_node_has_one_line_by_its_farthest_clock() -> None:
    """With the number of others, and whether lags are too long or too short."""
    found = group_clocks(
        [clock("b", "x", 900_000, 904_000), clock("a", "y", -42_000, -38_000), clock("b", "z", 6_000, 8_000)]
    )
    assert [describe_clock(*one) for one in found] == [
        (
            "the clock of x at b is 902.0 ± 2.1 ms ahead, and those of 1 more of its instances are wrong: "
            "lags that it stamps are too long by that"
        ),
        "the clock of y at a is 40.0 ± 2.1 ms behind: lags that it stamps are too short by that",
    ]
    assert group_clocks([]) == ()


@given(low_us=st.integers(-(10**12), 10**12), width_us=st.integers(0, 10**10))
def test_what_is_shown_covers_the_bounds(low_us: int, width_us: int) -> None:
    """Both bounds lie within the figure and its error, in any rounding."""
    told = format_offset(ClockOffset(low_us, low_us + width_us)).replace(",", "")
    numbers = [Decimal(number) * 1_000 for number in re.findall(r"[0-9.]+", told)]
    if "right" in told:
        assert -numbers[0] <= low_us <= 0 <= low_us + width_us <= numbers[0]
        return
    middle_us = -numbers[0] if "behind" in told else numbers[0]
    assert middle_us - numbers[1] <= low_us <= low_us + width_us <= middle_us + numbers[1]
