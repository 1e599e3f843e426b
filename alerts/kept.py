"""States and incidents as text and back: how they are kept in the store."""

from __future__ import annotations

import json
from typing import Any, Final

from alerts.episode import BEGINNING_US, Phase, Run, Series, State
from alerts.events import Severity, from_json
from alerts.incidents import Incident
from alerts.reading import Reading


def state_text(state: State) -> str:
    """Return all of a state but its series, as JSON."""
    marks = [list(state.marks), [int(is_bad) for is_bad in state.marks.values()]]
    bads = [list(state.bads), list(state.bads.values())]
    told = [state.base, marks, state.run, bads, state.told_as, state.covered_at_us]
    return json.dumps(told, separators=(",", ":"))


def state_of(series: Series, text: str) -> State:
    """Return the state that :func:`state_text` wrote."""
    told = json.loads(text)
    if len(told) == _BEFORE_BADS:
        return _settled(series, *told)
    base, (starts, marked), run, (bad_starts, readings), told_as, covered_at_us = told
    marks = dict(zip(starts, map(bool, marked), strict=True))
    bads = dict(zip(bad_starts, map(_reading, readings), strict=True))
    return State(series, _run(base), marks, _run(run), bads, told_as, covered_at_us)


_BEFORE_BADS: Final = 7
"""How many values were written when only the newest bad reading was kept."""


def _settled(series: Series, *told: Any) -> State:  # noqa: ANN401 - JSON
    """Return a state of which only the newest bad reading was kept: what it was is settled, as it was told."""
    _, _, run, worst, worst_us, told_as, covered_at_us = told
    bads = {worst_us: _reading(worst)} if worst_us != BEGINNING_US else {}
    return State(series, _run(run), {}, _run(run), bads, told_as, covered_at_us)


def incident_text(incident: Incident) -> str:
    """Return all of an incident but what it says, as JSON."""
    names = ("rule", "severity", "stream", "opened_us", "told_us", "told_total")
    return json.dumps({name: getattr(incident, name) for name in names})


def incident_of(key: str, text: str, notification: str) -> Incident:
    """Return the incident that :func:`incident_text` wrote, with what it says."""
    told = json.loads(text)
    told["severity"] = Severity(told["severity"])
    return Incident(key, **told, notification=from_json(notification) if notification else None)


def _run(told: list[object]) -> Run:
    run = Run(*told)  # type: ignore[arg-type]  # as it was written
    return run._replace(phase=Phase(run.phase))


def _reading(told: list[object]) -> Reading:
    reading = Reading(*told)  # type: ignore[arg-type]  # as it was written
    return reading._replace(lost_ids=tuple(reading.lost_ids))
