"""States and incidents as text and back: how they are kept in the store."""

from __future__ import annotations

import json

from hopwatch.alerts.episode import Phase, Run, Series, State
from hopwatch.alerts.events import Severity, from_json
from hopwatch.alerts.incidents import Incident
from hopwatch.alerts.reading import Reading


def state_text(state: State) -> str:
    """Return all of a state but its series, as JSON."""
    marks = [list(state.marks), [int(is_bad) for is_bad in state.marks.values()]]
    earlier = list(state.earlier.items())
    told = [state.base, marks, state.run, state.worst, state.worst_us, state.told_as, state.covered_at_us, earlier]
    return json.dumps(told, separators=(",", ":"))


def state_of(series: Series, text: str) -> State:
    """Return the state that :func:`state_text` wrote."""
    # A state that was written before has figures of the newest bad window alone.
    base, (starts, bads), run, worst, worst_us, told_as, covered_at_us, *more = json.loads(text)
    marks = dict(zip(starts, map(bool, bads), strict=True))
    earlier = {start: _reading(reading) for start, reading in (more[0] if more else ())}
    return State(series, _run(base), marks, _run(run), _reading(worst), worst_us, told_as, covered_at_us, earlier)


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
