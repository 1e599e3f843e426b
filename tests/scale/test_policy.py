"""Tests of the decision on the number of processes: the arithmetic of Kubernetes, in numbers."""

from __future__ import annotations

import re

import pytest

from hopwatch.scale.policy import (
    SCALE_DOWN,
    SCALE_UP,
    MetricKind,
    RateLimit,
    RateUnit,
    Reason,
    ScalingBehaviour,
    ScalingPolicy,
    average_shares,
    decide_processes,
    recommend_processes,
    start_state,
)


def policy(kind: MetricKind = MetricKind.VALUE, most: int = 100, **more: ScalingBehaviour) -> ScalingPolicy:
    """Return a policy with the target 100."""
    return ScalingPolicy(100, 1, most, kind, **more)  # type: ignore[arg-type]  # the behaviours


@pytest.mark.parametrize(
    ("kind", "current", "metric", "expected"),
    [
        (MetricKind.VALUE, 1, 200, 2),
        (MetricKind.VALUE, 2, 50, 1),
        (MetricKind.VALUE, 3, 110, 3),
        (MetricKind.VALUE, 3, 111, 4),
        (MetricKind.VALUE, 10, 90, 10),
        (MetricKind.VALUE, 10, 89, 9),
        (MetricKind.VALUE, 4, 0, 0),
        (MetricKind.TOTAL, 1, 1_001, 11),
        (MetricKind.TOTAL, 4, 400, 4),
        (MetricKind.TOTAL, 4, 439, 4),
        (MetricKind.TOTAL, 4, 441, 5),
        (MetricKind.TOTAL, 4, 350, 4),
    ],
)
def test_the_formula_is_that_of_kubernetes(kind: MetricKind, current: int, metric: float, expected: int) -> None:
    """Desired = ceil(current * metric / target), of a total ceil(metric / target), with a tolerance of a tenth."""
    assert recommend_processes(policy(kind), current, metric) == expected


def test_the_defaults_are_those_of_kubernetes() -> None:
    """Windows of 0 and 300 s; 100 % or 4 upwards, 100 % downwards, in 15 s; a tolerance of 0.1."""
    assert SCALE_UP.window_s == 0
    assert set(SCALE_UP.limits) == {RateLimit(RateUnit.PERCENT, 100, 15), RateLimit(RateUnit.PROCESSES, 4, 15)}
    assert (SCALE_DOWN.window_s, SCALE_DOWN.limits) == (300, (RateLimit(RateUnit.PERCENT, 100, 15),))
    assert policy().tolerance_ratio == 0.1


def test_processes_start_at_the_default_rate() -> None:
    """From 1 to 5, 10 and 20, a step of 15 s each: four more, then as many again."""
    rules, state, counts = policy(), start_state(1, 0), []
    for at_s in (15, 30, 45):
        state = decide_processes(rules, state, 1e9, at_s).state
        counts.append(state.current)
    assert counts == [5, 10, 20]


def test_within_a_period_the_rate_counts_from_its_start() -> None:
    """Two decisions in one period start no more than one would."""
    rules, state = policy(), start_state(1, 0)
    state = decide_processes(rules, state, 1e9, 15).state
    again = decide_processes(rules, state, 1e9, 20)
    assert (again.processes, again.reason) == (5, Reason.RATE)


def test_processes_end_at_their_rate_once_the_window_has_passed() -> None:
    """One a minute, the first at 300 s."""
    down = ScalingBehaviour(300, (RateLimit(RateUnit.PROCESSES, 1, 60),))
    rules, state, ends = policy(down=down), start_state(4, 0), []
    for at_s in range(15, 481, 15):
        before, decision = state.current, decide_processes(rules, state, 0, at_s)
        state = decision.state
        if state.current < before:
            ends.append(at_s)
        else:
            assert decision.reason in {Reason.STABILISATION, Reason.RATE, Reason.BOUNDS}
    assert ends == [300, 360, 420]
    assert state.current == 1


def test_one_high_metric_holds_all_processes_for_a_window() -> None:
    """The window begins again with each metric that asks for as many as there are."""
    rules, state = policy(), start_state(4, 0)
    for at_s in range(15, 600, 15):
        state = decide_processes(rules, state, 100 if at_s == 150 else 0, at_s).state
        assert state.current == (4 if at_s < 450 else 1)


def test_a_gap_of_metrics_holds_all_processes_for_a_window() -> None:
    """As nobody asked for fewer in it; Kubernetes would end some with the first metric after it."""
    rules, state = policy(), start_state(4, 0)
    for at_s in range(15, 900, 15):
        decision = decide_processes(rules, state, None if at_s <= 400 else 0, at_s)
        state = decision.state
        assert (decision.reason is Reason.NO_METRIC) == (at_s <= 400)
        assert state.current == (4 if at_s < 690 else 1)


def test_a_window_upwards_waits_for_the_least() -> None:
    """A short peak starts nothing."""
    rules = policy(up=ScalingBehaviour(60, ()))
    state = start_state(1, 0)
    for at_s, metric in ((15, 100), (30, 900), (45, 900), (60, 900), (75, 900)):
        decision = decide_processes(rules, state, metric, at_s)
        state = decision.state
        assert (decision.processes, decision.reason) == (
            (9, Reason.METRIC) if at_s == 75 else (1, Reason.STEADY if at_s == 15 else Reason.STABILISATION)
        )


def test_the_bounds_hold() -> None:
    """The reason names them."""
    decision = decide_processes(policy(most=2), start_state(2, 0), 1e9, 15)
    assert (decision.processes, decision.recommended, decision.reason) == (2, 1_000_000, Reason.BOUNDS)


@pytest.mark.parametrize(
    ("shares", "average"),
    [
        ((0.9, 0.9), 0.9),
        ((None, None), None),
        ((0.2, None), 0.5),
        ((0.2, 0.2, 0.2, None), 0.4),
        ((0.9, None), 0.5),
        ((1.0, 1.0, None), 2 / 3),
        ((0.5, None), 0.5),
    ],
)
def test_an_unknown_share_counts_against_a_change(shares: tuple[float | None, ...], average: float | None) -> None:
    """As all of a processor where fewer processes would do, as nothing where more are needed, and never further."""
    assert average_shares(shares, 0.5) == (average if average is None else pytest.approx(average))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target": 0}, "the target is a number above 0, got 0"),
        ({"target": float("inf")}, "the target is a number above 0, got inf"),
        ({"minimum": 0}, "the numbers of processes are 1 <= min <= max, got 0 and 4"),
        ({"minimum": 5}, "the numbers of processes are 1 <= min <= max, got 5 and 4"),
        ({"tolerance_ratio": 1}, "the tolerance is a ratio from 0 to below 1, got 1"),
    ],
)
def test_values_outside_of_their_range_are_refused(changed: dict[str, float], message: str) -> None:
    """With what was got."""
    given = {"target": 1, "minimum": 1, "maximum": 4, "kind": MetricKind.VALUE}
    with pytest.raises(ValueError, match=re.escape(message)):
        ScalingPolicy(**{**given, **changed})  # type: ignore[arg-type]
