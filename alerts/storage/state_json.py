"""JSON of alert states and incidents in the store."""

from __future__ import annotations

import json

from hopwatch.alerts.decision.episode import AlertEpisode, AlertSeries, AlertState, Phase
from hopwatch.alerts.decision.incidents import Incident
from hopwatch.alerts.decision.reading import Reading
from hopwatch.alerts.events import Severity, from_json


def format_state(state: AlertState) -> str:
    """Format a state as JSON, without its series."""
    marks = [list(state.marks), [int(is_bad) for is_bad in state.marks.values()]]
    earlier = list(state.earlier.items())
    told = [state.base, marks, state.run, state.worst, state.worst_us, state.told_as, state.covered_at_us, earlier]
    return json.dumps(told, separators=(",", ":"))


def parse_state(series: AlertSeries, text: str) -> AlertState:
    """Return the state that :func:`format_state` wrote."""
    # A state that was written before has figures of the newest bad window alone.
    base, (starts, bads), run, worst, worst_us, told_as, covered_at_us, *more = json.loads(text)
    marks = dict(zip(starts, map(bool, bads), strict=True))
    earlier = {start: _parse_reading(reading) for start, reading in (more[0] if more else ())}
    return AlertState(
        series,
        _parse_episode(base),
        marks,
        _parse_episode(run),
        _parse_reading(worst),
        worst_us,
        told_as,
        covered_at_us,
        earlier,
    )


def format_incident(incident: Incident) -> str:
    """Format an incident as JSON, without its notification."""
    names = ("rule", "severity", "stream", "opened_us", "told_us", "told_total")
    return json.dumps({name: getattr(incident, name) for name in names})


def parse_incident(key: str, text: str, notification: str) -> Incident:
    """Return the incident that :func:`format_incident` wrote, with its notification."""
    told = json.loads(text)
    told["severity"] = Severity(told["severity"])
    return Incident(key, **told, notification=from_json(notification) if notification else None)


def _parse_episode(told: list[object]) -> AlertEpisode:
    run = AlertEpisode(*told)  # type: ignore[arg-type]  # as it was written
    return run._replace(phase=Phase(run.phase))


def _parse_reading(told: list[object]) -> Reading:
    reading = Reading(*told)  # type: ignore[arg-type]  # as it was written
    return reading._replace(lost_ids=tuple(reading.lost_ids))
