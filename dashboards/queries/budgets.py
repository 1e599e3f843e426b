"""Query of the error budgets of a stream, and how they were spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import Connection

from hopwatch.alerts.decision.budgets import ErrorBudget, trace_budget
from hopwatch.alerts.storage.budget_queries import query_budgets, query_days
from hopwatch.alerts.storage.objectives import read_objectives
from hopwatch.monitor.store import fencing


@dataclass(frozen=True, slots=True)
class TracedBudget:
    """Budget of an objective; ``traced`` has moments, µs since 1970, with how much of it was left then."""

    budget: ErrorBudget
    traced: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class BudgetsQuery:
    """Query of the budgets of a stream up to where the monitor has read."""

    fresh_for_us: ClassVar = 60_000_000
    """A budget is summed from thirty days of minutes, and changes once a minute."""

    stream: str

    def run(self, connection: Connection) -> tuple[TracedBudget, ...]:
        """Return those of which anything was counted."""
        now_us = fencing.read_watermark_us(connection)
        found = query_budgets(connection, read_objectives(connection), self.stream, now_us)
        return tuple(
            TracedBudget(
                one, tuple(trace_budget(one, query_days(connection, self.stream, one.objective.name, now_us), now_us))
            )
            for one in found
            if one.counts.total
        )
