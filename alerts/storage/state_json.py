"""JSON of alert states and incidents in the store."""

from __future__ import annotations

import json
from typing import Final

from hopwatch.alerts.decision.episode import AlertEpisode, AlertSeries, AlertState, Phase
from hopwatch.alerts.decision.incidents import Incident
from hopwatch.alerts.decision.reading import Reading
from hopwatch.alerts.events import Severity, from_json

_INCIDENT_KEYS: Final = {
    **{name: name for name in ("rule", "severity", "stream", "opened_us")},
    "told_us": "notified_us",
    "told_total": "notified_total",
}
"""Names of the fields of an incident, by their keys in the stored JSON."""


def format_state(state: AlertState) -> str:
    """Format a state as JSON, without its series."""
    marks = [list(state.marks), [int(is_bad) for is_bad in state.marks.values()]]
    earlier = list(state.earlier.items())
    fields = [
        state.base,
        marks,
        state.run,
        state.worst,
        state.worst_us,
        state.incident_key,
        state.covered_at_us,
        earlier,
    ]
    return json.dumps(fields, separators=(",", ":"))


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
    return json.dumps({key: getattr(incident, name) for key, name in _INCIDENT_KEYS.items()})


def parse_incident(key: str, text: str, notification: str) -> Incident:
    """Return the incident that :func:`format_incident` wrote, with its notification."""
    fields = json.loads(text)
    values = {name: fields[stored] for stored, name in _INCIDENT_KEYS.items()}
    values["severity"] = Severity(values["severity"])
    return Incident(key, **values, notification=from_json(notification) if notification else None)


def _parse_episode(fields: list[object]) -> AlertEpisode:
    run = AlertEpisode(*fields)  # type: ignore[arg-type]  # as it was written
    return run._replace(phase=Phase(run.phase))


def _parse_reading(fields: list[object]) -> Reading:
    reading = Reading(*fields)  # type: ignore[arg-type]  # as it was written
    return reading._replace(lost_ids=tuple(reading.lost_ids))
