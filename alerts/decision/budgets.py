"""Error budgets: the part of the messages of thirty days that may be bad, how much of it is left, and for how long.

The method is that of service level objectives: *The Site Reliability Workbook*, chapter 5, "Alerting on SLOs". What
counts as bad is what burn rate rules count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hopwatch.alerts.decision.burn_rate import compute_burn_rate
from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.decision.rules import Objective

DAY_US: Final = 86_400_000_000
BUDGET_US: Final = 30 * DAY_US
"""Span of a budget."""
PACE_US: Final = DAY_US
"""Span by whose burn rate is said for how long a budget lasts."""


class DayCounts(NamedTuple):
    """Counts of an objective of a stream on a day that begins at ``start_us``."""

    start_us: int
    counts: ObjectiveCounts


class ErrorBudget(NamedTuple):
    """Budget of an objective of a stream; ``counts`` are those of the span of a budget, ``recent`` of that of its pace.

    ``since_us`` is the start of the first window of the span that is counted, None without any.
    """

    stream: str
    rule: str
    objective: Objective
    counts: ObjectiveCounts
    recent: ObjectiveCounts
    since_us: int | None

    @property
    def allowed(self) -> float:
        """The number of messages that may be bad, of those that were counted."""
        return self.counts.total * self.objective.budget

    @property
    def left_ratio(self) -> float | None:
        """The part of the budget that is left; below 0 where more was bad than may be, None without any message."""
        return 1 - compute_burn_rate(self.objective, self.counts) if self.counts.total else None

    @property
    def burn_rate(self) -> float | None:
        """The burn rate over the span of the pace; None without any message there."""
        return compute_burn_rate(self.objective, self.recent) if self.recent.total else None

    @property
    def lasts_us(self) -> float | None:
        """The time in which the pace spends what is left; 0 where nothing is, None where nothing is spent or known."""
        left, rate = self.left_ratio, self.burn_rate
        if left is not None and left <= 0:
            return 0.0
        return left * BUDGET_US / rate if left and rate else None


def trace_budget(budget: ErrorBudget, days: Iterable[DayCounts], now_us: int) -> list[tuple[int, float]]:
    """Return how much of a budget was left at the end of each day, of what the whole span allows; the last one is now.

    The first moment is where counting began, with all of it left. Empty where nothing may be bad, or nothing counted.
    """
    if not budget.allowed or budget.since_us is None:
        return []
    traced, bad = [(budget.since_us, 1.0)], 0
    for day in days:
        bad += day.counts.bad
        traced.append((min(day.start_us + DAY_US, now_us), 1 - bad / budget.allowed))
    return traced
