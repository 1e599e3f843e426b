"""Tests of the plan of a minute."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.selftest.injector import SETTLING_US, is_near_death
from hopwatch.monitor.selftest.minute import LagBounds, bound_lags, format_minute, parse_minute
from hopwatch.monitor.selftest.plan import (
    DEATH_EVERY_US,
    TAIL_US,
    MessageFate,
    StampCall,
    count_plan,
    is_death_minute,
    plan_minute,
)
from hopwatch.monitor.selftest.stream import LEFT, RIGHT, SELFTEST_CONFIG
from hopwatch.probes.contract.limits import WINDOW_US

minutes = st.integers(0, 10_000).map(lambda minute: minute * WINDOW_US)
seeds = st.text(max_size=10)


@given(seeds, minutes, st.integers(0, 300))
def test_a_plan_follows_from_its_seed(seed: str, start_us: int, count: int) -> None:
    """The same seed and minute make the same plan; ids are distinct, and event times are in the minute."""
    plan = plan_minute(seed, start_us, count)
    assert plan == plan_minute(seed, start_us, count)
    assert len({message.message_id for message in plan.messages}) == count
    assert all(0 <= message.offset_us < WINDOW_US for message in plan.messages)
    assert (plan.death_offset_us is not None) == is_death_minute(start_us)


@given(seeds, minutes)
def test_stamps_end_where_the_message_does(seed: str, start_us: int) -> None:
    """In order of the pathway, each later than the one before, until the place of its fate and before the tail ends."""
    for message in plan_minute(seed, start_us, 50).messages:
        way = [(stamp.node, stamp.kind) for stamp in message.stamps]
        whole = [
            ("source", "out"),
            ("router", "in"),
            ("router", "out"),
            (message.branch, "in"),
            (message.branch, "out"),
        ]
        match message.fate:
            case MessageFate.DELIVERED_TWICE:
                assert way == [*whole, ("router", "in")]
            case MessageFate.FILTERED | MessageFate.REJECTED:
                assert way == [whole[0], ("router", message.fate)]
            case _:
                assert way == whole[: len(way)]
                assert (message.lost_at is None) == (len(way) == len(whole))
        moments = [stamp.offset_us for stamp in message.stamps[:5]]
        assert moments == sorted(set(moments))
        assert max(stamp.offset_us for stamp in message.stamps) < WINDOW_US + TAIL_US
        assert message.branch in {LEFT, RIGHT}


@given(seeds, minutes, st.integers(0, 300), st.booleans())
def test_counts_of_a_plan_are_conserved(seed: str, start_us: int, count: int, is_exact: bool) -> None:  # noqa: FBT001 - a fact
    """Each message is delivered, filtered, rejected or lost at one node; what is stored reads as it was."""
    injected = count_plan(start_us, plan_minute(seed, start_us, count), is_exact=is_exact)
    lost = sum(map(len, injected.lost.values()))
    assert injected.known == count
    assert injected.delivered + injected.filtered + injected.rejected + lost == count
    assert len(injected.lost_ids) == lost
    assert set(injected.lost) == set(SELFTEST_CONFIG.pathway.nodes)
    assert parse_minute(format_minute(injected), is_exact=is_exact) == injected


def test_every_fate_comes_about() -> None:
    """In a minute with the default number of messages nearly each, in ten minutes each for sure."""
    plans = [plan_minute("a seed", minute * WINDOW_US, 240) for minute in range(10)]
    assert {message.fate for plan in plans for message in plan.messages} == set(MessageFate)
    assert {stamp.kind for plan in plans for message in plan.messages for stamp in message.stamps} == set(StampCall)


def test_a_probe_dies_once_an_hour() -> None:
    """Bounds are exact in most minutes between: those that neither reach to a death nor come soon behind one."""
    starts = [minute * WINDOW_US for minute in range(120)]
    assert [start // WINDOW_US for start in starts if is_death_minute(start)] == [30, 90]
    near = [start // WINDOW_US for start in starts if is_near_death(start)]
    assert near == [*range(28, 31 + SETTLING_US // WINDOW_US), *range(88, 91 + SETTLING_US // WINDOW_US)]
    assert DEATH_EVERY_US == 60 * WINDOW_US


@given(st.lists(st.integers(-(10**6), 10**7), min_size=1, max_size=300))
def test_bounds_of_a_lag_hold_each_figure(lags_us: list[int]) -> None:
    """The least and the greatest are exact; a quantile lies between stamps of nearly its rank."""
    found = bound_lags({"router.in": [LagBounds(lag_us, lag_us + 5) for lag_us in lags_us]})["router.in"]
    ordered = sorted(lags_us)
    assert found["min"] == (ordered[0], ordered[0] + 5)
    assert found["max"] == (ordered[-1], ordered[-1] + 5)
    for name, rank in (("p50", 0.5), ("p95", 0.95)):
        place = rank * (len(ordered) - 1)
        assert found[name].low_us <= ordered[int(place)] <= ordered[math.ceil(place)] <= found[name].high_us
