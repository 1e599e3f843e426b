"""Queries of the alert history, for commands and the dashboard; they write nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from hopwatch.alerts.decision.episode import Phase
from hopwatch.alerts.events import Event, from_json
from hopwatch.alerts.storage.history import (
    Acknowledgement,
    ChannelDelivery,
    HistoryEntry,
    OpenIncident,
    UnnotifiedAlert,
)
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.monitor.store import tables

_incidents, _states, _history = tables.alert_incidents.c, tables.alert_states.c, tables.alert_history.c
_acknowledgements, _outbox = tables.alert_acknowledgements.c, tables.alert_outbox.c


def query_open_incidents(connection: Connection) -> list[OpenIncident]:
    """Return the incidents that are open, the oldest first."""
    joined = tables.alert_incidents.outerjoin(tables.alert_acknowledgements, _acknowledgements.key == _incidents.key)
    columns = (_incidents.notification, _incidents.opened_us, _acknowledgements.opened_us.label("of_us"))
    more = (_acknowledgements.at_us, _acknowledgements.by, _acknowledgements.note)
    query = select(*columns, *more).select_from(joined).order_by(_incidents.opened_us, _incidents.key)
    return [_build_open_incident(row) for row in connection.execute(query).mappings()]


def count_open_incidents(connection: Connection) -> int:
    """Count the open incidents; a heartbeat, which stands while all is well, does not count."""
    return sum(not incident.is_heartbeat for incident in query_open_incidents(connection))


def query_pending(connection: Connection) -> list[UnnotifiedAlert]:
    """Return the alerts that are bad for too short a time yet, in order of their series."""
    return _query_unnotified(connection, Phase.PENDING)


def query_covered(connection: Connection) -> list[UnnotifiedAlert]:
    """Return the alerts that fire without an incident, because another alert covers them, in order of their series."""
    return _query_unnotified(connection, Phase.FIRING)


def filter_by_stream(query: Select[Any], stream: str) -> Select[Any]:
    """Restrict a query to the notifications of one stream, and of storms, which may be of any stream."""
    of_key = (_history.key.endswith(f"/{own}", autoescape=True) for own in (stream, "*"))
    return query.where(or_(*of_key)) if stream else query


def query_history(connection: Connection, query: Select[Any]) -> list[HistoryEntry]:
    """Run a query of the history, and return the notifications with their deliveries."""
    rows = connection.execute(query).all()
    deliveries = _query_deliveries(connection, [row.number for row in rows])
    return [HistoryEntry(row.number, from_json(row.notification), tuple(deliveries[row.number])) for row in rows]


def select_newest(most: int) -> Select[Any]:
    """Build the query for the newest notifications."""
    return select(_history.number, _history.notification).order_by(_history.number.desc()).limit(most)


def select_in_range(from_us: int, to_us: int, most: int) -> Select[Any]:
    """Build the query for the newest notifications that were decided in ``[from_us, to_us)``."""
    return select_newest(most).where(_history.at_us >= from_us, _history.at_us < to_us)


def select_ends_after(at_us: int, most: int) -> Select[Any]:
    """Build the query for the first end of each incident from a time on: what began before lasted until then."""
    is_end = _history.event == Event.RESOLVED.value
    first = select(func.min(_history.number)).where(is_end, _history.at_us >= at_us).group_by(_history.key)
    return select_newest(most).where(_history.number.in_(first))


def select_beginnings(keys: Iterable[str]) -> Select[Any]:
    """Build the query for the newest notification of each open incident."""
    first = select(func.max(_history.number)).where(_history.key.in_(list(keys))).group_by(_history.key)
    return select(_history.number, _history.notification).where(_history.number.in_(first))


def _query_deliveries(connection: Connection, numbers: Collection[int]) -> dict[int, list[ChannelDelivery]]:
    names = ("channel", "state", "tries", "next_try_us", "last_error")
    query = select(_outbox.number, *(_outbox[name] for name in names)).where(_outbox.number.in_(numbers))
    deliveries: dict[int, list[ChannelDelivery]] = defaultdict(list)
    for number, channel, state, *more in connection.execute(query.order_by(_outbox.channel)):
        deliveries[number].append(ChannelDelivery(channel, DeliveryState(state), *more))
    return deliveries


def _query_unnotified(connection: Connection, phase: Phase) -> list[UnnotifiedAlert]:
    places = ("rule", "severity", "stream", "node", "since_us")
    of_phase = select(*(_states[name] for name in places)).where(_states.phase == phase.value, _states.told_as == "")
    return [UnnotifiedAlert(*row) for row in connection.execute(of_phase.order_by(*tables.alert_states.primary_key))]


def _build_open_incident(row: Any) -> OpenIncident:  # noqa: ANN401 - a row of the query above
    is_acknowledged = row["of_us"] == row["opened_us"]
    acknowledgement = Acknowledgement(row["by"], row["at_us"], row["note"]) if is_acknowledged else None
    return OpenIncident(from_json(row["notification"]), row["opened_us"], acknowledgement)
