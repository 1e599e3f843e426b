"""Acknowledgement of an incident: who takes care of it, until it ends."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Engine, delete, select

from hopwatch.alerts.storage import history_queries
from hopwatch.alerts.storage.history import Acknowledgement, OpenIncident
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.store import dialect, schema, tables

_acknowledgements = tables.alert_acknowledgements.c


def acknowledge_incident(engine: Engine, key: str, acknowledgement: Acknowledgement) -> Acknowledgement:
    """Acknowledge an incident; return its acknowledgement, which stays the first one while the incident lasts.

    Raises:
        ConfigurationError: no incident of this key is open, or it is a heartbeat's.
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        incidents = history_queries.query_open_incidents(connection)
        opened = {incident.notification.key: incident.opened_us for incident in incidents if not incident.is_heartbeat}
        if key not in opened:
            known = ", ".join(sorted(opened)) or "none"
            raise ConfigurationError(f"{_describe_refusal(key, incidents)}; open are: {known}")
        first = connection.execute(
            select(_acknowledgements.by, _acknowledgements.at_us, _acknowledgements.note).where(
                *_is_acknowledgement_of(key, opened[key])
            )
        ).first()
        if first is not None:
            return Acknowledgement(*first)
        row = {
            "key": key,
            "opened_us": opened[key],
            "at_us": acknowledgement.at_us,
            "by": acknowledgement.by,
            "note": acknowledgement.note,
        }
        connection.execute(dialect.upsert(connection, tables.alert_acknowledgements), [row])
    return acknowledgement


def unacknowledge_incident(engine: Engine, key: str) -> Acknowledgement:
    """Take back the acknowledgement of an incident that is open; return what it was.

    Raises:
        ConfigurationError: no incident of this key is open and acknowledged.
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        incidents = history_queries.query_open_incidents(connection)
        taken = {one.notification.key: one for one in incidents if one.acknowledgement is not None}
        if key not in taken:
            known = ", ".join(sorted(taken)) or "none"
            raise ConfigurationError(f"no incident {key!r:.200} is open and acknowledged; acknowledged are: {known}")
        is_it = _is_acknowledgement_of(key, taken[key].opened_us)
        connection.execute(delete(tables.alert_acknowledgements).where(*is_it))
    found = taken[key].acknowledgement
    assert found is not None  # noqa: S101 - those without were left out
    return found


def _describe_refusal(key: str, incidents: Sequence[OpenIncident]) -> str:
    """Describe why this key cannot be acknowledged."""
    if any(incident.notification.key == key for incident in incidents):
        return f"{key!r:.200} is the heartbeat, which stands while all is well, and no incident to acknowledge"
    return f"no incident {key!r:.200} is open"


def _is_acknowledgement_of(key: str, opened_us: int) -> tuple[ColumnElement[bool], ...]:
    """Build the condition of the acknowledgement of this incident, not of an earlier one with the same key."""
    return _acknowledgements.key == key, _acknowledgements.opened_us == opened_us
