"""Error budgets in words and as JSON."""

from __future__ import annotations

from typing import Any

from hopwatch.alerts.decision.budgets import BUDGET_US, ErrorBudget
from hopwatch.alerts.decision.rules import Objective
from hopwatch.display import texts
from hopwatch.monitor.results import format_iso


def describe_budget(one: ErrorBudget) -> str:
    """Return the budget in a line."""
    return f"{one.stream}, {describe_objective(one)}: {describe_state(one)}"


def describe_objective(one: ErrorBudget) -> str:
    """Return the objective, and the rule that watches it, in words."""
    return f"{_describe_objective(one.objective)} ({one.rule})"


def describe_state(one: ErrorBudget) -> str:
    """Return what is left of the budget, and for how long, in words."""
    if one.left_ratio is None:
        return "no window of the last 30 days was counted"
    counts = f"{one.counts.bad:,} of {one.counts.total:,} bad, {int(one.allowed):,} may be"
    rate = "no message in 24 h" if one.burn_rate is None else f"burn rate {one.burn_rate:.3g} in 24 h"
    return f"{one.left_ratio:.1%} left, {counts}; {rate}, {_describe_end(one)}"


def _describe_objective(objective: Objective) -> str:
    """Return the objective in words."""
    share = f"{100 * (1 - objective.budget):.10g}% arrive"
    return share if objective.target_us is None else f"{share} within {texts.format_lag(objective.target_us)}"


def _describe_end(one: ErrorBudget) -> str:
    """Return for how long the budget lasts at the pace of the last day."""
    if one.lasts_us is None:
        return "at this rate nothing is spent" if one.burn_rate == 0 else "for how long is not known"
    if one.lasts_us == 0:
        return "spent"
    if one.lasts_us >= BUDGET_US:
        return "lasts 30 d or longer"
    return f"lasts {texts.format_age(int(one.lasts_us))}"


def budget_to_json(one: ErrorBudget) -> dict[str, Any]:
    """Return the budget as programs read it."""
    return {
        "stream": one.stream,
        "rule": one.rule,
        "objective": round(1 - one.objective.budget, 12),
        "target_us": one.objective.target_us,
        "messages": one.counts.total,
        "bad": one.counts.bad,
        "allowed": one.allowed,
        "left_ratio": one.left_ratio,
        "burn_rate": one.burn_rate,
        "lasts_s": None if one.lasts_us is None else one.lasts_us / 1e6,
        "since": None if one.since_us is None else format_iso(one.since_us),
    }
