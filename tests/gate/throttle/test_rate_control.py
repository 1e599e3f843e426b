"""Laws of a throttled stream, by simulation of consumers that are too slow."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate.throttle.simulation import SimulatedRun, simulate
from tests.support.examples import examples

DURATION_S: Final = 300.0
SEGMENT_S: Final = 30.0
RATES: Final = st.integers(10, 30)
COMMITS_S: Final = st.sampled_from([0.1, 1.0, 5.0])


@given(
    consumed=RATES,
    overload=st.floats(1.2, 4),
    target_s=st.sampled_from([20.0, 30.0, 60.0]),
    commit_every_s=COMMITS_S,
    gates=st.integers(1, 3),
)
@settings(max_examples=examples(60))
def test_messages_wait_less_than_the_target_and_consumers_stay_busy(
    consumed: int, overload: float, target_s: float, commit_every_s: float, gates: int
) -> None:
    """Up to four times as much may be offered: p95 of waits is under the target, and consumers idle for 5 % at most."""
    found = simulate(
        target_s,
        offered_per_s=lambda _: consumed * overload,
        consumed_per_s=lambda _: consumed,
        commit_every_s=commit_every_s,
        duration_s=DURATION_S,
        gates=gates,
    )
    assert float(np.percentile(found.waits_s, 95)) < target_s
    assert found.consumed > 0.95 * consumed * DURATION_S
    assert found.refused > 0


@given(
    consumed=RATES,
    overloads=st.lists(st.floats(0, 4), min_size=10, max_size=10),
    commit_every_s=COMMITS_S,
    gates=st.integers(1, 3),
)
@settings(max_examples=examples(60))
def test_messages_wait_less_than_the_target_whatever_comes_when(
    consumed: int, overloads: list[float], commit_every_s: float, gates: int
) -> None:
    """Each half minute something else is offered, nothing or four times too much: p95 is under the target."""
    found = simulate(
        20.0,
        offered_per_s=lambda now_s: consumed * overloads[int(now_s / SEGMENT_S)],
        consumed_per_s=lambda _: consumed,
        commit_every_s=commit_every_s,
        duration_s=DURATION_S,
        gates=gates,
    )
    assert float(np.percentile(found.waits_s, 95)) < 20 if found.consumed else not any(overloads)


@given(consumed=RATES, share=st.floats(0.1, 0.95), commit_every_s=COMMITS_S)
@settings(max_examples=examples(40))
def test_nothing_is_refused_while_consumers_keep_up(consumed: int, share: float, commit_every_s: float) -> None:
    """A healthy stream never hears of its throttle, though its consumers commit every five seconds."""
    found = simulate(
        20.0,
        offered_per_s=lambda _: consumed * share,
        consumed_per_s=lambda _: consumed,
        commit_every_s=commit_every_s,
        duration_s=120.0,
    )
    assert found.refused == 0


def test_without_a_throttle_the_same_messages_wait_longer_and_longer() -> None:
    """This is prevented by a throttle: after 300 s of twice what can be consumed the last message waits 150 s."""
    found = run_overload(is_throttled=False)
    assert (found.refused, round(float(found.waits_s[-1]))) == (0, 150)


def test_a_dry_run_refuses_nothing_and_counts_what_it_would() -> None:
    """The waits are those without a throttle."""
    found = run_overload(is_dry_run=True)
    assert (found.refused, round(float(found.waits_s[-1]))) == (0, 150)


def run_overload(*, is_throttled: bool = True, is_dry_run: bool = False) -> SimulatedRun:
    """Return a run in which twice as much is offered as can be consumed."""
    return simulate(
        20.0,
        offered_per_s=lambda _: 50,
        consumed_per_s=lambda _: 25,
        commit_every_s=1.0,
        duration_s=DURATION_S,
        is_throttled=is_throttled,
        is_dry_run=is_dry_run,
    )


def test_a_limit_is_lifted_when_the_overload_is_over() -> None:
    """For two minutes too much is offered, then half of what can be consumed: in the end nothing is refused."""
    until_120 = simulate_burst(120.0)
    until_600 = simulate_burst(600.0)
    assert until_120.refused > 0
    assert until_600.refused - simulate_burst(240.0).refused == 0


def simulate_burst(duration_s: float) -> SimulatedRun:
    """Return a run of a burst of two minutes, and what follows."""
    return simulate(
        20.0,
        offered_per_s=lambda now_s: 50 if now_s < 120 else 12,
        consumed_per_s=lambda _: 25,
        commit_every_s=1.0,
        duration_s=duration_s,
    )


@pytest.mark.parametrize("slower", [0.5, 0.2])
def test_a_consumer_that_gets_slower_is_followed(slower: float) -> None:
    """After a minute it takes less: the last hundred seconds are under the target again."""
    found = simulate(
        20.0,
        offered_per_s=lambda _: 30,
        consumed_per_s=lambda now_s: 25 if now_s < 60 else 25 * slower,
        commit_every_s=1.0,
        duration_s=DURATION_S,
    )
    last = found.waits_s[-int(25 * slower * 100) :]
    assert float(np.percentile(last, 95)) < 20
