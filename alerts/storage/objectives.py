"""Objectives of streams in the store: pages show budgets without the configuration of alerts, which holds secrets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from hopwatch.alerts.decision.rules import AlertRule, Objective
from hopwatch.monitor.store.writer import read_value, set_values

OBJECTIVES: Final = "objectives"
"""Name of the value in the store."""


class StreamObjective(NamedTuple):
    """Objective of a stream, and the rule of burn rates that watches it."""

    stream: str
    rule: str
    objective: Objective


def list_objectives(rules: Iterable[AlertRule]) -> list[StreamObjective]:
    """Return the objectives of all streams, in the order of the rules; each once."""
    found = [
        StreamObjective(stream, rule.name, rule.objective)
        for rule in rules
        if rule.objective is not None
        for stream in rule.thresholds
    ]
    return list(dict.fromkeys(found))


def save_objectives(connection: Connection, objectives: Sequence[StreamObjective]) -> None:
    """Write the objectives that are in force."""
    rows = [(one.stream, one.rule, one.objective.budget, one.objective.target_us) for one in objectives]
    set_values(connection, {OBJECTIVES: json.dumps(rows)})


def read_objectives(connection: Connection) -> list[StreamObjective]:
    """Read the objectives of the monitor that wrote last; none of one that had none, or is of an earlier version."""
    rows = json.loads(read_value(connection, OBJECTIVES) or "[]")
    return [StreamObjective(stream, rule, Objective(budget, target_us)) for stream, rule, budget, target_us in rows]
