"""Alert states in the store, read and written in the transaction of the micro-batch, and fenced with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, func, select

from hopwatch.alerts.decision.episode import BEGINNING_US, AlertSeries, AlertState
from hopwatch.alerts.decision.evaluation import AlertSnapshot
from hopwatch.alerts.decision.incidents import Incident
from hopwatch.alerts.decision.inputs import DeferredMessages, LagPoint, ObjectiveCounts
from hopwatch.alerts.events import to_json
from hopwatch.alerts.storage import state_json
from hopwatch.monitor.store import dialect, selftest, tables, writer

Json = dict[str, Any]
ObjectiveKey = tuple[str, str, int]
"""Stream, objective, start of the window in µs."""

_BEGUN, _CLOCK = "alerts_begun_us", "alerts_clock_us"
_SERIES: Final = AlertSeries._fields


def read_snapshot(connection: Connection) -> AlertSnapshot:
    """Read the snapshot of alerts that the last micro-batch wrote."""
    column = tables.alert_states.c
    query = select(*(column[name] for name in _SERIES), column.state)
    states = {
        series: state_json.parse_state(series, row.state)
        for row in connection.execute(query)
        for series in [AlertSeries(*(getattr(row, name) for name in _SERIES))]
    }
    incidents = {
        row.key: state_json.parse_incident(row.key, row.incident, row.notification)
        for row in connection.execute(select(tables.alert_incidents))
    }
    begun = writer.read_value(connection, _BEGUN)
    return AlertSnapshot(states, incidents, int(begun or 0), read_clock_us(connection))


def read_clock_us(connection: Connection) -> int:
    """Read the time up to which alerts were evaluated last."""
    clock = writer.read_value(connection, _CLOCK)
    return BEGINNING_US if clock is None else int(clock)


def write_snapshot(connection: Connection, before: AlertSnapshot, after: AlertSnapshot) -> None:
    """Write the difference between two snapshots."""
    changed = [state for series, state in after.states.items() if before.states.get(series) != state]
    _upsert(connection, tables.alert_states, [_state_row(state) for state in changed])
    _delete(connection, tables.alert_states, [series._asdict() for series in before.states.keys() - after.states])
    opened = [one for key, one in after.incidents.items() if before.incidents.get(key) != one]
    _upsert(connection, tables.alert_incidents, [_incident_row(incident) for incident in opened])
    closed = [{"key": key} for key in before.incidents.keys() - after.incidents]
    for table in (tables.alert_incidents, tables.alert_acknowledgements):
        _delete(connection, table, closed)
    if (before.begun_us, before.clock_us) != (after.begun_us, after.clock_us):
        writer.set_values(connection, {_BEGUN: str(after.begun_us), _CLOCK: str(after.clock_us)})


def write_counts(connection: Connection, counts: Mapping[ObjectiveKey, ObjectiveCounts | None]) -> None:
    """Write the counts of windows for objectives; a window that became unknown loses its row."""
    known = {key: counted for key, counted in counts.items() if counted is not None}
    rows = [_objective(key) | counted._asdict() for key, counted in known.items()]
    _upsert(connection, tables.objective_minutes, rows)
    _delete(connection, tables.objective_minutes, [_objective(key) for key in counts.keys() - known])


_minutes = tables.objective_minutes.c
# Built once: a stream with trouble needs four of them in each micro-batch.
_SUMS: Final = select(func.sum(_minutes.total), func.sum(_minutes.bad)).where(
    _minutes.stream == bindparam("stream"),
    _minutes.objective == bindparam("objective"),
    _minutes.window_start_us >= bindparam("from_us"),
    _minutes.window_start_us < bindparam("to_us"),
)


_windows = tables.windows.c
_DEFERRED: Final = select(func.sum(_windows.deferred), func.min(_windows.window_start_us)).where(
    _windows.stream == bindparam("stream"),
    _windows.window_start_us >= bindparam("from_us"),
    _windows.window_start_us < bindparam("to_us"),
    _windows.deferred > 0,
)
_nodes = tables.node_windows.c
_LAGS: Final = (
    select(
        _nodes.node,
        _nodes.window_start_us,
        _nodes.lag_in_us_p95,
        _nodes.lag_out_us_p95,
        _nodes.lag_in_us_count,
        _nodes.lag_out_us_count,
    )
    .where(
        _nodes.stream == bindparam("stream"),
        _nodes.window_start_us >= bindparam("from_us"),
        _nodes.window_start_us < bindparam("to_us"),
    )
    .order_by(_nodes.window_start_us)
)


class StoredPastWindows:
    """Queries about other windows in the store; see :class:`alerts.decision.inputs.PastWindows`."""

    def __init__(self, connection: Connection) -> None:
        """Read over the connection of the micro-batch's transaction."""
        self._connection = connection
        self._last_us: dict[str, int] | None = None
        self._last_bad_us: dict[tuple[str, str], int] | None = None
        self._lags: tuple[tuple[str, int, int], dict[str, list[LagPoint]]] | None = None

    def sum_counts(self, stream: str, objective: str, from_us: int, to_us: int) -> ObjectiveCounts:
        """Return the sums over the windows that start in ``[from_us, to_us)``."""
        parameters = {"stream": stream, "objective": objective, "from_us": from_us, "to_us": to_us}
        total, bad = self._connection.execute(_SUMS, parameters).one()
        return ObjectiveCounts(int(total or 0), int(bad or 0))

    def find_last_bad_us(self, stream: str, objective: str) -> int | None:
        """Return the start of the newest window in which a message was bad; none where there is none."""
        if self._last_bad_us is None:
            column = tables.objective_minutes.c
            key = column.stream, column.objective
            newest = func.max(column.window_start_us).label("newest")
            rows = self._connection.execute(select(*key, newest).where(column.bad > 0).group_by(*key))
            self._last_bad_us = {(row.stream, row.objective): row.newest for row in rows}
        return self._last_bad_us.get((stream, objective))

    def sum_deferred(self, stream: str, from_us: int, to_us: int) -> DeferredMessages:
        """Return the messages that wait for a later try in the windows that start in ``[from_us, to_us)``."""
        parameters = {"stream": stream, "from_us": from_us, "to_us": to_us}
        count, oldest_us = self._connection.execute(_DEFERRED, parameters).one()
        return DeferredMessages(int(count or 0), oldest_us)

    def read_lags(self, stream: str, from_us: int, to_us: int) -> Mapping[str, Sequence[LagPoint]]:
        """Return the lags of each node in the windows that start in ``[from_us, to_us)``, in order of time."""
        asked = stream, from_us, to_us
        if self._lags is None or self._lags[0] != asked:
            found: dict[str, list[LagPoint]] = defaultdict(list)
            parameters = {"stream": stream, "from_us": from_us, "to_us": to_us}
            for node, start_us, in_us, out_us, *stamps in self._connection.execute(_LAGS, parameters):
                found[node].append(LagPoint(start_us, in_us, out_us, max(one or 0 for one in stamps)))
            self._lags = asked, found
        return self._lags[1]

    def count_set_aside(self, from_us: int, to_us: int) -> int:
        """Return how many records set aside arrived in ``[from_us, to_us)``."""
        arrival_us = tables.set_aside.c.arrival_us
        query = select(func.count()).where(arrival_us >= from_us, arrival_us < to_us)
        return int(self._connection.execute(query).scalar_one())

    def find_selftest_failures(self, from_us: int, to_us: int) -> Sequence[str]:
        """Return a problem of each minute of the self-test that failed in ``[from_us, to_us)``, the newest first."""
        return [one.problems[0].text for one in selftest.read_failures(self._connection, from_us, to_us)]

    def find_last_window_us(self, stream: str) -> int | None:
        """Return the start of the newest window in which a batch of the stream fell; none before the first."""
        if self._last_us is None:
            column = tables.streams.c
            rows = self._connection.execute(select(column.stream, column.last_start_us))
            self._last_us = {row.stream: row.last_start_us for row in rows}
        return self._last_us.get(stream)


def _state_row(state: AlertState) -> Json:
    columns = {"phase": state.run.phase.value, "since_us": state.run.since_us, "told_as": state.incident_key}
    return state.series._asdict() | columns | {"state": state_json.format_state(state)}


def _incident_row(incident: Incident) -> Json:
    notification = to_json(incident.notification) if incident.notification else ""
    columns = {"incident": state_json.format_incident(incident), "notification": notification}
    return {"key": incident.key, "opened_us": incident.opened_us} | columns


def _objective(key: ObjectiveKey) -> Json:
    return dict(zip(("stream", "objective", "window_start_us"), key, strict=True))


def _upsert(connection: Connection, table: Table, rows: Iterable[Json]) -> None:
    batch = list(rows)
    if batch:
        connection.execute(dialect.upsert(connection, table), batch)


def _delete(connection: Connection, table: Table, keys: Iterable[Json]) -> None:
    """Delete rows by their primary keys."""
    batch = [{f"of_{name}": value for name, value in key.items()} for key in keys]
    if batch:
        matches = (column == bindparam(f"of_{column.name}") for column in table.primary_key)
        connection.execute(delete(table).where(*matches), batch)
