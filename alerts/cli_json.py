"""JSON of alerts for commands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import Engine, select

from hopwatch.alerts.events import AlertKind, Notification, from_json, to_json
from hopwatch.alerts.storage import history_queries
from hopwatch.alerts.storage.history import Acknowledgement, ChannelDelivery, OpenIncident, UnnotifiedAlert
from hopwatch.alerts.storage.silences import EVERYTHING, Silence, find_silence, query_silences
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import schema, tables

Json = dict[str, Any]
MAX_SHOWN: Final = 1_000

_history = tables.alert_history.c


def query_open_json(engine: Engine, now_us: int) -> Json:
    """Return open incidents, alerts that are bad for too short a time yet, the heartbeats apart, and silences.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        every = history_queries.query_open_incidents(connection)
        waiting = [_alert_to_json(one) for one in history_queries.query_pending(connection)]
        silences = query_silences(connection, now_us)
    beats = [one for one in every if one.is_heartbeat]
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
    known = [one for one in incidents if not one.is_heartbeat]
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
