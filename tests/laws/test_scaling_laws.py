"""Laws of scaling, for any sequence of metrics."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.scale.policy import (
    MetricKind,
    RateLimit,
    RateUnit,
    Recommendation,
    ScalingBehaviour,
    ScalingPolicy,
    ScalingState,
    average_shares,
    decide_processes,
    start_state,
)
from hopwatch.scale.restart import MAX_WAIT_S, restart_wait_s

LIMITS: Final = st.builds(
    RateLimit, st.sampled_from(RateUnit), st.integers(1, 100), st.sampled_from([15.0, 60.0, 300.0])
)
BEHAVIOURS: Final = st.builds(
    ScalingBehaviour, st.sampled_from([0.0, 60.0, 300.0]), st.lists(LIMITS, max_size=3).map(tuple)
)
METRICS: Final = st.one_of(st.none(), st.floats(0, 1e6), st.sampled_from([0.0, float("nan"), float("inf")]))
STEPS: Final = st.lists(st.tuples(METRICS, st.floats(1, 120)), min_size=1, max_size=40)


@st.composite
def policies(draw: st.DrawFn) -> ScalingPolicy:
    """Draw a policy."""
    least = draw(st.integers(1, 5))
    most = draw(st.integers(least, 20))
    target = draw(st.floats(0.01, 1_000))
    kind = draw(st.sampled_from(MetricKind))
    return ScalingPolicy(target, least, most, kind, draw(st.floats(0, 0.5)), draw(BEHAVIOURS), draw(BEHAVIOURS))


@st.composite
def runs(draw: st.DrawFn) -> tuple[ScalingPolicy, list[ScalingState], list[tuple[float | None, float]]]:
    """Draw a policy with the states that a sequence of metrics leads to, the first one before the first metric."""
    policy = draw(policies())
    state, now_s = start_state(draw(st.integers(policy.minimum, policy.maximum)), 0.0), 0.0
    states, readings = [state], []
    for metric, passed_s in draw(STEPS):
        now_s += passed_s
        state = decide_processes(policy, state, metric, now_s).state
        states.append(state)
        readings.append((metric, now_s))
    return policy, states, readings


@given(runs())
def test_the_number_is_never_outside_of_its_bounds(
    run: tuple[ScalingPolicy, list[ScalingState], list[tuple[float | None, float]]],
) -> None:
    """The number of processes stays within its bounds for any measurements and limits of rate."""
    policy, states, _ = run
    assert all(policy.minimum <= state.current <= policy.maximum for state in states)


@given(runs())
def test_a_missing_metric_changes_nothing_downwards(
    run: tuple[ScalingPolicy, list[ScalingState], list[tuple[float | None, float]]],
) -> None:
    """Neither one that cannot be had, nor one that is no number."""
    policy, states, readings = run
    for before, (_, now_s) in zip(states, readings, strict=False):
        for nothing in (None, float("nan"), float("inf")):
            assert decide_processes(policy, before, nothing, now_s).processes >= before.current


@given(runs())
def test_processes_end_only_after_a_whole_window_has_asked_for_it(
    run: tuple[ScalingPolicy, list[ScalingState], list[tuple[float | None, float]]],
) -> None:
    """No moment of the window recommended more than there are afterwards; at the first the run was as old as it."""
    policy, states, readings = run
    asked = [Recommendation(0.0, states[0].current)]
    for before, after, (_, now_s) in zip(states, states[1:], readings, strict=False):
        asked.append(after.recommendations[-1])
        if after.current < before.current:
            within = [one.processes for one in asked if one.at_s > now_s - policy.down.window_s]
            assert max(within, default=0) <= after.current
            assert now_s >= policy.down.window_s


@given(policies(), st.lists(st.tuples(st.floats(0, 1), st.floats(1, 600)), min_size=1, max_size=30), st.data())
def test_nothing_flaps_within_the_tolerance(
    policy: ScalingPolicy, steps: list[tuple[float, float]], data: st.DataObject
) -> None:
    """A metric that stays near its target changes the number of processes never."""
    current = data.draw(st.integers(policy.minimum, policy.maximum))
    state, now_s = start_state(current, 0.0), 0.0
    whole = policy.target * (current if policy.kind is MetricKind.TOTAL else 1)
    for place, passed_s in steps:
        now_s += passed_s
        # Slightly inside, so that the rounding of the product does not matter.
        metric = whole * (1 + policy.tolerance_ratio * 0.999 * (2 * place - 1))
        state = decide_processes(policy, state, metric, now_s).state
        assert state.current == current


@given(runs(), st.floats(0, 1e6), st.floats(0, 1e6))
def test_more_lag_never_means_fewer_processes(
    run: tuple[ScalingPolicy, list[ScalingState], list[tuple[float | None, float]]], one: float, other: float
) -> None:
    """From any state, a greater metric leads to at least as many processes."""
    policy, states, readings = run
    now_s = readings[-1][1] + 15
    less, more = (decide_processes(policy, states[-1], metric, now_s).processes for metric in sorted((one, other)))
    assert less <= more


@given(st.lists(st.none() | st.floats(0, 4), max_size=8), st.floats(0.1, 1))
def test_unknown_shares_count_against_a_change(shares: list[float | None], target: float) -> None:
    """The average is never further from the target than that of the known ones, nor on the other side."""
    known = [share for share in shares if share is not None]
    average = average_shares(shares, target)
    if not known:
        assert average is None
        return
    assert average is not None
    plain = sum(known) / len(known)
    assert min(plain, target) - 1e-9 <= average <= max(plain, target) + 1e-9


@given(st.integers(0, 10_000))
def test_a_wait_grows_and_is_bounded(ends: int) -> None:
    """More early ends in a row never mean a shorter wait, nor one beyond the longest."""
    assert restart_wait_s(ends) <= restart_wait_s(ends + 1) <= MAX_WAIT_S
