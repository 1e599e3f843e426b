"""Tests of error budgets in the store: which minutes count, and the command that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, insert

from hopwatch.alerts import rule_config
from hopwatch.alerts.decision.budgets import BUDGET_US, PACE_US
from hopwatch.alerts.storage.budget_queries import query_budgets
from hopwatch.alerts.storage.objectives import StreamObjective, list_objectives
from hopwatch.cli.main import main
from hopwatch.monitor import settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store import dialect, schema, tables
from tests.support.workspace import CONFIGURATION, Workspace

NOW_US = 1_800_000_000_000_000
LAG = """
[[alerts.rules]]
kind = "burn_rate"
name = "quick"
of = "lag"
objective = 0.99
target = "500ms"
"""


@pytest.fixture
def connection(workspace: Workspace) -> Iterator[Connection]:
    """Yield a connection to a store of ``workspace``."""
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    with engine.execution_options(writes=True).begin() as opened:
        yield opened
    engine.dispose()


def load_objectives(workspace: Workspace, rules: str = "") -> list[StreamObjective]:
    """Return the objectives of a configuration."""
    workspace.configure(CONFIGURATION + rules)
    return list_objectives(rule_config.build_rules(settings.load(workspace.config, flags={}, environ={})).rules)


def add_minute(connection: Connection, start_us: int, total: int, bad: int, objective: str = "loss") -> None:
    """Let a minute of a stream count so."""
    row = {"stream": "orders", "objective": objective, "window_start_us": start_us, "total": total, "bad": bad}
    connection.execute(insert(tables.objective_minutes).values(row))


def test_a_budget_is_of_thirty_days_and_its_pace_of_one(workspace: Workspace, connection: Connection) -> None:
    """A minute on the edge of a span is in it, the one before is not."""
    add_minute(connection, NOW_US - BUDGET_US - 1, 1_000, 900)
    add_minute(connection, NOW_US - BUDGET_US, 1_000, 3)
    add_minute(connection, NOW_US - PACE_US - 1, 2_000, 4)
    add_minute(connection, NOW_US - PACE_US, 5_000, 6)
    (found,) = query_budgets(connection, load_objectives(workspace), "orders", NOW_US)
    assert (found.rule, found.counts, found.recent) == ("burn_rate", (8_000, 13), (5_000, 6))
    assert found.since_us == NOW_US - BUDGET_US


def test_each_objective_has_one_budget(workspace: Workspace, connection: Connection) -> None:
    """Pages and tickets of a rule spend the same."""
    add_minute(connection, NOW_US - 1, 1_000, 2)
    add_minute(connection, NOW_US - 1, 1_000, 5, "lag over 500000 us")
    loss, quick = query_budgets(connection, load_objectives(workspace, LAG), "orders", NOW_US)
    assert (loss.rule, loss.counts.bad, quick.rule, quick.counts.bad) == ("burn_rate", 2, "quick", 5)
    assert quick.left_ratio == pytest.approx(0.5)


def test_a_stream_without_a_rule_or_a_minute_has_no_figures(workspace: Workspace, connection: Connection) -> None:
    """No rule makes no budget, and no minute one of which nothing is known."""
    objectives = load_objectives(workspace)
    assert query_budgets(connection, objectives, "nix", NOW_US) == []
    (found,) = query_budgets(connection, objectives, "orders", NOW_US)
    assert (found.left_ratio, found.burn_rate, found.lasts_us, found.since_us) == (None, None, None, None)


def test_the_command_shows_budgets(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, or JSON; of one stream or of all."""
    load_objectives(workspace)
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    with engine.execution_options(writes=True).begin() as opened:
        add_minute(opened, SystemClock().now_us() - 60_000_000, 10_000, 4)
    engine.dispose()
    flags = ("--config", str(workspace.config))
    assert main(["alerts", "budgets", *flags]) == 0
    told = capsys.readouterr().out
    assert "orders, 99.9% arrive (burn_rate): 60.0% left, 4 of 10,000 bad, 10 may be; " in told
    assert main(["alerts", "budgets", "--stream", "orders", "--json", *flags]) == 0
    (found,) = json.loads(capsys.readouterr().out)["budgets"]
    assert (found["stream"], found["bad"], found["allowed"]) == ("orders", 4, pytest.approx(10))
    assert main(["alerts", "budgets", "--stream", "nix", *flags]) == 2
    assert "nix" in capsys.readouterr().err


def test_without_a_rule_the_command_says_so(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty answer would look like a budget that nothing is spent of."""
    workspace.configure(CONFIGURATION + "[alerts]\ndefaults = false\n")
    schema.prepare_store(dialect.create_engine(workspace.store_url))
    assert main(["alerts", "budgets", "--config", str(workspace.config)]) == 0
    assert "no rule of a burn rate is enabled" in capsys.readouterr().out
