"""Queries of error budgets: what the objectives of a stream counted in thirty days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, select

from hopwatch.alerts.decision.budgets import BUDGET_US, PACE_US, ErrorBudget
from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.decision.rules import AlertRule, Objective
from hopwatch.monitor.store import tables

_minutes = tables.objective_minutes.c
_is_recent = _minutes.window_start_us >= bindparam("recent_us")
_SUMS: Final = (
    select(
        _minutes.objective,
        func.sum(_minutes.total).label("total"),
        func.sum(_minutes.bad).label("bad"),
        func.sum(case((_is_recent, _minutes.total), else_=0)).label("recent_total"),
        func.sum(case((_is_recent, _minutes.bad), else_=0)).label("recent_bad"),
        func.min(_minutes.window_start_us).label("since_us"),
    )
    .where(_minutes.stream == bindparam("stream"), _minutes.window_start_us >= bindparam("from_us"))
    .group_by(_minutes.objective)
)
_NOTHING: Final = ObjectiveCounts(0, 0)


def query_budgets(connection: Connection, rules: Iterable[AlertRule], stream: str, now_us: int) -> list[ErrorBudget]:
    """Return the budget of each objective of a stream, in the order of the rules; each once."""
    wanted: dict[tuple[str, Objective], None] = {
        (rule.name, rule.objective): None for rule in rules if rule.objective is not None and stream in rule.thresholds
    }
    if not wanted:
        return []
    parameters = {"stream": stream, "from_us": now_us - BUDGET_US, "recent_us": now_us - PACE_US}
    found = {row.objective: row for row in connection.execute(_SUMS, parameters)}
    return [_build_budget(stream, name, objective, found.get(objective.name)) for name, objective in wanted]


def _build_budget(stream: str, rule: str, objective: Objective, row: object) -> ErrorBudget:
    if row is None:
        return ErrorBudget(stream, rule, objective, _NOTHING, _NOTHING, None)
    counts = ObjectiveCounts(int(row.total), int(row.bad))  # type: ignore[attr-defined]  # a row of the query above
    recent = ObjectiveCounts(int(row.recent_total), int(row.recent_bad))  # type: ignore[attr-defined]  # as above
    return ErrorBudget(stream, rule, objective, counts, recent, int(row.since_us))  # type: ignore[attr-defined]  # as above
