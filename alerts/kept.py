"""States and incidents as text and back: how they are kept in the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from alerts.bads import Bads
from alerts.episode import BEGINNING_US, Phase, Run, Series, State
from alerts.events import Severity, from_json
from alerts.incidents import Incident
from alerts.reading import Reading


def state_text(state: State) -> str:
    """Return all of a state but its series, as JSON."""
    marks = [list(state.marks), [int(is_bad) for is_bad in state.marks.values()]]
    # The others are those of the marks.
    settled = [start for start in state.bads if start not in state.marks]
    columns = [_column(values) for values in state.bads.columns]
    told = [state.base, marks, state.run, [settled, *columns], state.told_as, state.covered_at_us]
    return json.dumps(told, separators=(",", ":"))


def state_of(series: Series, text: str) -> State:
    """Return the state that :func:`state_text` wrote."""
    told = json.loads(text)
    if len(told) == _BEFORE_BADS:
        return _settled(series, *told)
    base, (starts, marked), run, (settled, *columns), told_as, covered_at_us = told
    marks = dict(zip(starts, map(bool, marked), strict=True))
    bad_starts = (*settled, *sorted(start for start, is_bad in marks.items() if is_bad))
    values = [tuple(column) if len(column) == len(bad_starts) else (*column,) * len(bad_starts) for column in columns]
    if values:
        values[_IDS] = tuple(map(tuple, values[_IDS]))
    bads = Bads(bad_starts, tuple(values))
    return State(series, _run(base), marks, _run(run), bads, told_as, covered_at_us)


def _column(values: Sequence[Any]) -> Sequence[Any]:
    """Return what readings say in one field, once where all say the same."""
    return values[:1] if values.count(values[0]) == len(values) else values


_IDS: Final = Reading._fields.index("lost_ids")
_BEFORE_BADS: Final = 7
"""How many values were written when only the newest bad reading was kept."""


def _settled(series: Series, *told: Any) -> State:  # noqa: ANN401 - JSON
    """Return a state of which only the newest bad reading was kept: what it was is settled, as it was told."""
    _, _, run, worst, worst_us, told_as, covered_at_us = told
    bads = Bads.of({worst_us: _reading(worst)} if worst_us != BEGINNING_US else {})
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
