"""JSON of alerts for commands, and the acknowledgement of an incident."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Engine, delete, select

from hopwatch.alerts.events import AlertKind, Notification, from_json, to_json
from hopwatch.alerts.storage import history_queries
from hopwatch.alerts.storage.history import Acknowledgement, ChannelDelivery, OpenIncident, UnnotifiedAlert
from hopwatch.alerts.storage.silences import EVERYTHING, Silence, find_silence, query_silences
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, schema, tables

Json = dict[str, Any]
MAX_SHOWN: Final = 1_000

_history = tables.alert_history.c
_acknowledgements = tables.alert_acknowledgements.c


def query_open_json(engine: Engine, now_us: int) -> Json:
    """Return open incidents, alerts that are bad for too short a time yet, the heartbeats apart, and silences.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        every = history_queries.query_open_incidents(connection)
        waiting = [_alert_to_json(one) for one in history_queries.query_pending(connection)]
        silences = query_silences(connection, now_us)
    beats = [one for one in every if _is_heartbeat(one)]
    incidents = [
        _incident_to_json(one) | {"silenced_until": _find_silence_end(one, silences, now_us)}
        for one in every
        if one not in beats
    ]
    return {
        "incidents": incidents,
        "pending": waiting,
        "heartbeats": [_incident_to_json(one) for one in beats],
        "silences": [silence_to_json(one, now_us) for one in silences],
    }


def query_history_json(engine: Engine, key: str | None, from_us: int | None, most: int) -> list[Json]:
    """Return the history of notifications, the newest first, with the delivery at each channel.

    Raises:
        StoreError: the store cannot be read.
    """
    query = history_queries.select_newest(min(most, MAX_SHOWN))
    query = query if key is None else query.where(_history.key == key)
    query = query if from_us is None else query.where(_history.at_us >= from_us)
    with schema.open_snapshot(engine) as connection:
        entries = history_queries.query_history(connection, query)
    return [
        notification_to_json(entry.notification)
        | {"channels": [_delivery_to_json(delivery) for delivery in entry.deliveries]}
        for entry in entries
    ]


def acknowledge_incident(engine: Engine, key: str, acknowledgement: Acknowledgement) -> Acknowledgement:
    """Acknowledge an incident; return its acknowledgement, which stays the first one while the incident lasts.

    Raises:
        ConfigurationError: no incident of this key is open, or it is a heartbeat's.
        StoreError: the store cannot be written.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        schema.check_version(connection)
        incidents = history_queries.query_open_incidents(connection)
        opened = {
            incident.notification.key: incident.opened_us for incident in incidents if not _is_heartbeat(incident)
        }
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
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        schema.check_version(connection)
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


def check_target(engine: Engine, target: str, streams: Collection[str]) -> None:
    """Check the target of a silence: a stream, the key of an incident that was ever notified, or ``*``.

    Raises:
        ConfigurationError: it is none, or a heartbeat's.
        StoreError: the store cannot be read.
    """
    if target == EVERYTHING or target in streams:
        return
    with schema.open_snapshot(engine) as connection:
        newest = select(_history.notification).where(_history.key == target).order_by(_history.number.desc()).limit(1)
        text = connection.execute(newest).scalar()
        incidents = history_queries.query_open_incidents(connection)
    known = [one for one in incidents if not _is_heartbeat(one)]
    if text is None:
        told = ", ".join([*sorted(streams), *sorted(one.notification.key for one in known)]) or "none"
        raise ConfigurationError(
            f"{target!r:.200} is no stream, and no incident of this key was ever open: {told}, or *"
        )
    if from_json(text).kind is AlertKind.HEARTBEAT:
        raise ConfigurationError(
            f"{target!r:.200} is the heartbeat, whose absence is its message: it is never silenced"
        )


def silence_to_json(silence: Silence, now_us: int) -> Json:
    """Return a silence as ``--json`` shows it."""
    times = {"from": format_iso(silence.from_us), "until": format_iso(silence.until_us)}
    named = {"number": silence.number, "target": silence.target, "by": silence.by, "why": silence.why}
    return named | times | {"is_active": silence.from_us <= now_us < silence.until_us}


def _is_heartbeat(incident: OpenIncident) -> bool:
    """Return whether it is the heartbeat, which stands while all is well and is no incident."""
    return incident.notification.kind is AlertKind.HEARTBEAT


def _describe_refusal(key: str, incidents: Sequence[OpenIncident]) -> str:
    """Describe why this key cannot be acknowledged."""
    if any(incident.notification.key == key for incident in incidents):
        return f"{key!r:.200} is the heartbeat, which stands while all is well, and no incident to acknowledge"
    return f"no incident {key!r:.200} is open"


def _is_acknowledgement_of(key: str, opened_us: int) -> tuple[ColumnElement[bool], ...]:
    """Build the condition of the acknowledgement of this incident, not of an earlier one with the same key."""
    return _acknowledgements.key == key, _acknowledgements.opened_us == opened_us


def notification_to_json(notification: Notification) -> Json:
    """Return a notification as ``--json`` shows it: times as ISO 8601, lags in µs."""
    document: Json = json.loads(to_json(notification))
    del document["is_news"], document["version"]
    for part in (document, *document["alerts"]):
        for name in ("since_us", "at_us", "window_start_us"):
            if name in part:
                part[name.removesuffix("_us")] = format_iso(part.pop(name))
    return document


def _delivery_to_json(delivery: ChannelDelivery) -> Json:
    document: Json = {"channel": delivery.channel, "state": delivery.state.value, "tries": delivery.tries}
    return document | {"last_error": delivery.last_error}


def _incident_to_json(incident: OpenIncident) -> Json:
    acknowledgement = acknowledgement_to_json(incident.acknowledgement) if incident.acknowledgement else None
    return notification_to_json(incident.notification) | {
        "opened": format_iso(incident.opened_us),
        "acknowledged": acknowledgement,
    }


def acknowledgement_to_json(acknowledgement: Acknowledgement) -> Json:
    """Return an acknowledgement as ``--json`` shows it."""
    return {"by": acknowledgement.by, "at": format_iso(acknowledgement.at_us), "note": acknowledgement.note}


def _find_silence_end(incident: OpenIncident, silences: Iterable[Silence], now_us: int) -> str | None:
    """Return the end of the silence of an incident that lasts longest; None without one."""
    found = find_silence(silences, incident.notification.key, now_us)
    return None if found is None else format_iso(found.until_us)


def _alert_to_json(alert: UnnotifiedAlert) -> Json:
    names = ("rule", "severity", "stream", "node")
    return {name: getattr(alert, name) for name in names} | {"since": format_iso(alert.since_us)}
