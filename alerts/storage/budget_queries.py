"""Queries of error budgets: what the objectives of a stream counted in thirty days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, select

from hopwatch.alerts.decision.budgets import BUDGET_US, DAY_US, PACE_US, DayCounts, ErrorBudget
from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.storage.objectives import StreamObjective
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
_day = (_minutes.window_start_us - bindparam("from_us")) // DAY_US
_DAYS: Final = (
    select(_day, func.sum(_minutes.total), func.sum(_minutes.bad))
    .where(_minutes.stream == bindparam("stream"), _minutes.objective == bindparam("objective"))
    .where(_minutes.window_start_us >= bindparam("from_us"), _minutes.window_start_us < bindparam("to_us"))
    .group_by(_day)
    .order_by(_day)
)
_NOTHING: Final = ObjectiveCounts(0, 0)


def query_budgets(
    connection: Connection, objectives: Iterable[StreamObjective], stream: str, now_us: int
) -> list[ErrorBudget]:
    """Return the budget of each objective of a stream, in their order."""
    wanted = [one for one in objectives if one.stream == stream]
    if not wanted:
        return []
    parameters = {"stream": stream, "from_us": now_us - BUDGET_US, "recent_us": now_us - PACE_US}
    found = {row.objective: row for row in connection.execute(_SUMS, parameters)}
    return [_build_budget(one, found.get(one.objective.name)) for one in wanted]


def query_days(connection: Connection, stream: str, objective: str, now_us: int) -> list[DayCounts]:
    """Return what an objective of a stream counted on each of the days of a budget, from its start on."""
    from_us = now_us - BUDGET_US
    rows = connection.execute(_DAYS, {"stream": stream, "objective": objective, "from_us": from_us, "to_us": now_us})
    return [DayCounts(from_us + int(day) * DAY_US, ObjectiveCounts(int(total), int(bad))) for day, total, bad in rows]


def _build_budget(of: StreamObjective, row: object) -> ErrorBudget:
    if row is None:
        return ErrorBudget(*of, _NOTHING, _NOTHING, None)
    counts = ObjectiveCounts(int(row.total), int(row.bad))  # type: ignore[attr-defined]  # a row of the query above
    recent = ObjectiveCounts(int(row.recent_total), int(row.recent_bad))  # type: ignore[attr-defined]  # as above
    return ErrorBudget(*of, counts, recent, int(row.since_us))  # type: ignore[attr-defined]  # as above
