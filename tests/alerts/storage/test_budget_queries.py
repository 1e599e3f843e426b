"""Tests of the days of error budgets in the store, in either database."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine, insert

from hopwatch.alerts.decision.budgets import BUDGET_US, DAY_US
from hopwatch.alerts.decision.rules import Objective
from hopwatch.alerts.storage.budget_queries import query_budgets, query_days
from hopwatch.alerts.storage.objectives import StreamObjective, read_objectives, save_objectives
from hopwatch.monitor.store import tables

NOW_US: Final = 1_800_000_000_000_000
START_US: Final = NOW_US - BUDGET_US
OBJECTIVE: Final = StreamObjective("orders", "burn_rate", Objective(0.001))


def test_the_days_of_a_budget_begin_with_it(engine: Engine) -> None:
    """Days are of 24 hours from the start of the span on; one without a minute is left out."""
    moments = {START_US - 1: 9, START_US: 1, START_US + DAY_US - 1: 2, NOW_US - 1: 4, NOW_US: 8}
    rows = [
        {"stream": "orders", "objective": "loss", "window_start_us": at_us, "total": 100, "bad": bad}
        for at_us, bad in moments.items()
    ]
    with engine.execution_options(writes=True).begin() as connection:
        save_objectives(connection, [OBJECTIVE])
        connection.execute(insert(tables.objective_minutes), rows)
        assert query_days(connection, "orders", "loss", NOW_US) == [
            (START_US, (200, 3)),
            (NOW_US - DAY_US, (100, 4)),
        ]
        assert query_days(connection, "orders", "lag over 1 us", NOW_US) == []
        (found,) = query_budgets(connection, read_objectives(connection), "orders", NOW_US)
    assert (found.rule, found.since_us, found.recent.bad) == ("burn_rate", START_US, 12)
