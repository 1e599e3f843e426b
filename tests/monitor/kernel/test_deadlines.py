"""Tests of deadlines that are learnt from the times of windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.deadlines import (
    MIN_MESSAGES,
    QUANTILE_SHARES,
    LearntDeadline,
    SlowestPart,
    WindowTimes,
    bound_time_us,
    learn_deadlines,
)
from hopwatch.monitor.pathway import Pathway

SECOND_US: Final = 1_000_000
TIMES_US: Final = st.lists(st.integers(-5, 60) | st.integers(-(2**40), 2**40), min_size=1, max_size=40)


def summarize(windows: list[list[int]]) -> WindowTimes:
    """Return what is known of windows with these times: of each share the least time that so many took at most."""
    times_us = [np.quantile(one, QUANTILE_SHARES, method="inverted_cdf") for one in windows]
    return WindowTimes(np.array([len(one) for one in windows], np.float64), np.array(times_us, np.int64))


def took(time_us: int, messages: int = MIN_MESSAGES) -> WindowTimes:
    """Return one window in which all messages took the same time."""
    return WindowTimes(np.array([messages], np.float64), np.full((1, len(QUANTILE_SHARES)), time_us))


def learn(path: str, times: Mapping[tuple[str, str], WindowTimes], **stamps: str) -> list[LearntDeadline]:
    """Return the deadlines of a path with a floor of 2 s and a transit of 20 s."""
    return list(learn_deadlines(Pathway.parse([path], stamps), times, 2 * SECOND_US, 20 * SECOND_US))


@given(st.lists(TIMES_US, min_size=1, max_size=6), st.sampled_from([0.3, 0.5, 0.9, 0.96, 0.995, 0.999, 1.0]))
def test_so_many_messages_took_no_longer(windows: list[list[int]], share: float) -> None:
    """Of all windows together, whatever their sizes; and the bound is a time that some message took."""
    bound_us = bound_time_us(summarize(windows), share)
    every = np.concatenate([np.array(one, np.int64) for one in windows])
    assert (every <= bound_us).mean() >= share - 1e-9
    assert bound_us in every


@given(TIMES_US, st.integers(1, 50))
def test_windows_that_are_alike_say_what_one_says(times_us: list[int], windows: int) -> None:
    """A quantile that a window tells is not stretched to its maximum."""
    assert bound_time_us(summarize([times_us] * windows), 0.95) == bound_time_us(summarize([times_us]), 0.95)
    assert bound_time_us(summarize([times_us]), 0.95) == np.quantile(times_us, 0.95, method="inverted_cdf")


def test_a_rare_slow_window_does_not_decide() -> None:
    """A thousandth of the messages was slower."""
    times = WindowTimes(np.array([99_950.0, 50.0]), np.array([[1, 2, 3, 3], [900, 900, 900, 900]]))
    assert bound_time_us(times) == 3
    assert bound_time_us(times, 0.9996) == 900


def test_a_deadline_covers_the_way_to_a_node_and_its_inside() -> None:
    """In whole seconds, and no shorter than the floor; the slowest part is named."""
    times = {("a", "a"): took(10), ("a", "b"): took(3 * SECOND_US), ("b", "b"): took(3 * SECOND_US + 1, 2_000)}
    assert learn("a -> b", times) == [
        LearntDeadline("a", 2 * SECOND_US, SlowestPart("a", "a", MIN_MESSAGES, 10)),
        LearntDeadline("b", 4 * SECOND_US, SlowestPart("b", "b", 2_000, 3 * SECOND_US + 1)),
    ]


def test_a_deadline_of_a_branch_covers_the_ways_onward() -> None:
    """A message that comes to none of several nodes is missing at the branch; a rare way counts, too."""
    times = {("a", "a"): took(1), ("a", "b"): took(5), ("a", "c"): took(9 * SECOND_US, 3)}
    found = learn("a -> b | c", times)
    assert [(one.node, one.deadline_us) for one in found] == [("a", 9 * SECOND_US), ("b", 2 * SECOND_US), ("c", None)]
    assert found[0].slowest == SlowestPart("a", "c", 3, 9 * SECOND_US)
    assert found[2].obstacle == "3 messages were timed, 1,000 are needed"


def test_nothing_can_be_missing_at_an_origin_that_stamps_one_side() -> None:
    """No time is learnt for it."""
    times = {("a", "b"): took(1), ("b", "b"): took(1)}
    assert [one.node for one in learn("a -> b", times, a="out")] == ["b"]


@pytest.mark.parametrize(
    ("times", "stamps", "obstacle"),
    [
        ({}, {}, "0 messages were timed, 1,000 are needed"),
        ({("b", "b"): took(1, MIN_MESSAGES - 1)}, {}, "999 messages were timed, 1,000 are needed"),
        ({("b", "b"): took(1)}, {"a": "in"}, "the time from a to b is not stamped"),
        ({}, {"b": "out"}, "the time from a to b is not stamped"),
        ({("b", "b"): took(20 * SECOND_US + 1)}, {}, "it would be longer than transit"),
    ],
)
def test_a_deadline_that_cannot_be_learnt_is_told(
    times: Mapping[tuple[str, str], WindowTimes], stamps: Mapping[str, str], obstacle: str
) -> None:
    """With the reason."""
    assert (learn("a -> b", times, **stamps)[-1].deadline_us, learn("a -> b", times, **stamps)[-1].obstacle) == (
        None,
        obstacle,
    )
