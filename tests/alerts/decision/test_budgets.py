"""Tests of error budgets: what is left of them, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.budget_texts import budget_to_json, describe_budget
from hopwatch.alerts.decision.budgets import BUDGET_US, DAY_US, DayCounts, ErrorBudget, trace_budget
from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.decision.rules import Objective
from tests.support.windows import at

WORDS = "orders, 99.9% arrive (burn_rate): "


def budget(
    total: int, bad: int, recent_total: int = 0, recent_bad: int = 0, target_us: int | None = None
) -> ErrorBudget:
    """Return a budget of 99.9 %."""
    counts, recent = ObjectiveCounts(total, bad), ObjectiveCounts(recent_total, recent_bad)
    since_us = at(0) if total else None
    return ErrorBudget("orders", "burn_rate", Objective(0.001, target_us), counts, recent, since_us)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (budget(0, 0), "no window of the last 30 days was counted"),
        (
            budget(1_000_000, 0, 50_000, 0),
            ("100.0% left, 0 of 1,000,000 bad, 1,000 may be; burn rate 0 in 24 h, at this rate nothing is spent"),
        ),
        (
            budget(1_000_000, 400, 50_000, 100),
            "60.0% left, 400 of 1,000,000 bad, 1,000 may be; burn rate 2 in 24 h, lasts 9 d 0 h",
        ),
        (
            budget(1_000_000, 400, 50_000, 10),
            ("60.0% left, 400 of 1,000,000 bad, 1,000 may be; burn rate 0.2 in 24 h, lasts 30 d or longer"),
        ),
        (
            budget(1_000_000, 1_500, 50_000, 10),
            "-50.0% left, 1,500 of 1,000,000 bad, 1,000 may be; burn rate 0.2 in 24 h, spent",
        ),
        (
            budget(1_000_000, 400),
            ("60.0% left, 400 of 1,000,000 bad, 1,000 may be; no message in 24 h, for how long is not known"),
        ),
    ],
)
def test_a_budget_is_told_in_a_line(found: ErrorBudget, told: str) -> None:
    """With its counts, its rate and its end; of what is not known nothing is said."""
    assert describe_budget(found) == WORDS + told


def test_an_objective_of_lag_names_its_target() -> None:
    """In the unit that a person would choose."""
    assert describe_budget(budget(1_000, 0, target_us=500_000)).startswith(
        "orders, 99.9% arrive within 500.0 ms (burn_rate): 100.0% left"
    )


def test_a_budget_as_json_has_its_numbers() -> None:
    """Unrounded, but for the objective, which is the one of the configuration."""
    assert budget_to_json(budget(1_000_000, 400, 50_000, 100, target_us=500_000)) == {
        "stream": "orders",
        "rule": "burn_rate",
        "objective": 0.999,
        "target_us": 500_000,
        "messages": 1_000_000,
        "bad": 400,
        "allowed": 1_000.0,
        "left_ratio": 0.6,
        "burn_rate": 2.0,
        "lasts_s": pytest.approx(9 * 86_400),
        "since": "2026-01-01T00:00:00Z",
    }
    assert budget_to_json(budget(0, 0))["since"] is None


@given(st.integers(1, 10**9), st.floats(0, 1), st.integers(1, 10**8), st.floats(0, 1))
def test_what_is_left_is_spent_when_the_forecast_says(total: int, part: float, recent: int, recent_part: float) -> None:
    """A budget that burns on at the rate of the last day is spent just then; one that is overspent has no time left."""
    found = budget(total, int(total * part), recent, int(recent * recent_part))
    left, rate = found.left_ratio, found.burn_rate
    assert left is not None
    assert rate is not None
    assert left <= 1
    if left <= 0:
        assert found.lasts_us == 0
    elif rate == 0:
        assert found.lasts_us is None
    else:
        assert found.lasts_us is not None
        assert found.lasts_us * rate / BUDGET_US == pytest.approx(left)
        assert rate != 1 or found.lasts_us <= 30 * DAY_US


def test_a_budget_is_traced_day_by_day() -> None:
    """From all of it where counting began to what is left now, of what the whole span allows."""
    found = budget(1_000_000, 1_500)
    days = [DayCounts(at(0), ObjectiveCounts(500_000, 500)), DayCounts(at(0) + DAY_US, ObjectiveCounts(500_000, 1_000))]
    now_us = at(0) + DAY_US + 60_000_000
    traced = trace_budget(found, days, now_us)
    assert traced == [(at(0), 1.0), (at(0) + DAY_US, 0.5), (now_us, pytest.approx(-0.5))]
    assert traced[-1][1] == pytest.approx(found.left_ratio)


def test_a_budget_of_nothing_has_no_trace() -> None:
    """Of no message nothing may be bad."""
    assert trace_budget(budget(0, 0), [], at(1)) == []
