"""Laws of order: what is counted in arrays is what is counted pair by pair, whatever the order, batches and lanes."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopwatch.monitor.kernel import order
from tests.model.order import overtakers
from tests.support.examples import examples

Message = tuple[int, int, int]
"""Lane, departure and arrival."""

MOMENTS = st.sampled_from([-order.FAR_US, 0, 1, 2, 3, order.FAR_US]) | st.integers(-order.FAR_US, order.FAR_US)
FEW = st.lists(st.tuples(st.integers(0, 2), MOMENTS, MOMENTS), max_size=30)


@st.composite
def many(draw: st.DrawFn) -> list[Message]:
    """Draw hundreds of messages that come nearly in order, in any, in blocks, or the other way round, many at once."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, spread = draw(st.integers(100, 400)), draw(st.sampled_from([0, 1, 5, 100, 10_000]))
    left_us = np.arange(count) // draw(st.sampled_from([1, 1, 3, 50]))
    came_us = draw(st.sampled_from([-1, 1, 1])) * left_us + chance.integers(0, spread + 1, count)
    if draw(st.booleans()):
        came_us += left_us % 7 * draw(st.sampled_from([10, 300]))
    lane = chance.integers(0, draw(st.sampled_from([1, 1, 4])), count)
    shuffled = chance.permutation(count)
    return list(zip(*(column[shuffled].tolist() for column in (lane, left_us, came_us)), strict=True))


def _found(messages: list[Message]) -> list[int]:
    columns = np.array(messages, np.int64).reshape(-1, 3).T
    counts: list[int] = order.count_overtakers(*columns).tolist()
    return counts


def _expected(messages: list[Message]) -> list[int]:
    counts = [0] * len(messages)
    for lane in {one[0] for one in messages}:
        at = [place for place, one in enumerate(messages) if one[0] == lane]
        for place, count in zip(at, overtakers([messages[place][1:] for place in at]), strict=True):
            counts[place] = count
    return counts


@settings(max_examples=examples(200))
@given(FEW | many())
@example([])
@example([(0, 1, 1)])
def test_overtakers_are_those_of_all_pairs(messages: list[Message]) -> None:
    """A message is overtaken by those of its lane that left after it and came before it; equal moments are neither."""
    assert _found(messages) == _expected(messages)


@given(many(), st.integers(0, 2**32))
def test_order_and_clocks_change_nothing(messages: list[Message], seed: int) -> None:
    """Messages may stand in any order, and each clock be as wrong as it likes, as long as it goes on."""
    chance = np.random.default_rng(seed)
    ahead_us = chance.integers(-(10**9), 10**9, (2, 4)).tolist()
    skewed = [(lane, left + ahead_us[0][lane], came + ahead_us[1][lane]) for lane, left, came in messages]
    mixed = chance.permutation(len(messages)).tolist()
    assert _found([skewed[place] for place in mixed]) == [_found(messages)[place] for place in mixed]
