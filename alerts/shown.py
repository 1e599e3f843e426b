"""What commands show of alerts, and the one thing that a person may write: who has taken an incident on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Engine, select

from hopwatch.alerts import recorded
from hopwatch.alerts.events import Kind, Notification, to_json
from hopwatch.alerts.record import Open, Sending, Taken, Untold
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import iso
from hopwatch.monitor.store import dialect, schema, tables

Json = dict[str, Any]
MOST_SHOWN: Final = 1_000

_history = tables.alert_history.c
_taken = tables.alert_acknowledgements.c


def standing(engine: Engine) -> Json:
    """Return the incidents that are open, the alerts that are bad for too short a time yet, and apart the heartbeats.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        every = recorded.open_incidents(connection)
        waiting = [_place(one) for one in recorded.pending(connection)]
    beats = [one for one in every if _is_heartbeat(one)]
    incidents = [_incident(one) for one in every if one not in beats]
    return {"incidents": incidents, "pending": waiting, "heartbeats": [_incident(one) for one in beats]}


def history(engine: Engine, key: str | None, from_us: int | None, most: int) -> list[Json]:
    """Return what was told, the newest first, and how each channel took it.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = recorded.newest(min(most, MOST_SHOWN))
    wanted = wanted if key is None else wanted.where(_history.key == key)
    wanted = wanted if from_us is None else wanted.where(_history.at_us >= from_us)
    with schema.open_snapshot(engine) as connection:
        told = recorded.told(connection, wanted)
    return [shown(one.notification) | {"channels": [_sent(sending) for sending in one.sendings]} for one in told]


def acknowledge(engine: Engine, key: str, taken: Taken) -> Taken:
    """Note who has taken an incident on, and return who has: it is the first, for as long as the incident lasts.

    Raises:
        ConfigurationError: no incident of this key is open, or it is a heartbeat's.
        StoreError: the store cannot be written.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        schema.check_version(connection)
        every = recorded.open_incidents(connection)
        opened = {one.notification.key: one.opened_us for one in every if not _is_heartbeat(one)}
        if key not in opened:
            known = ", ".join(sorted(opened)) or "none"
            raise ConfigurationError(f"{_why_not(key, every)}; open are: {known}")
        first = connection.execute(select(_taken.by, _taken.at_us, _taken.note).where(*_of(key, opened[key]))).first()
        if first is not None:
            return Taken(*first)
        row = {"key": key, "opened_us": opened[key], "at_us": taken.at_us, "by": taken.by, "note": taken.note}
        connection.execute(dialect.upsert(connection, tables.alert_acknowledgements), [row])
    return taken


def _is_heartbeat(one: Open) -> bool:
    """Return whether it stands for as long as all is well, which is no incident."""
    return one.notification.kind is Kind.HEARTBEAT


def _why_not(key: str, every: Sequence[Open]) -> str:
    """Return why nobody can take on what has this key."""
    if any(one.notification.key == key for one in every):
        return f"{key!r:.200} is the heartbeat, which stands while all is well, and no incident to take on"
    return f"no incident {key!r:.200} is open"


def _of(key: str, opened_us: int) -> tuple[ColumnElement[bool], ...]:
    """Return what holds of the acknowledgement of an incident, and of none before it under the same key."""
    return _taken.key == key, _taken.opened_us == opened_us


def shown(notification: Notification) -> Json:
    """Return a notification as ``--json`` shows it: moments as ISO 8601, lags in µs."""
    told: Json = json.loads(to_json(notification))
    del told["is_news"], told["version"]
    for one in (told, *told["alerts"]):
        for name in ("since_us", "at_us", "window_start_us"):
            if name in one:
                one[name.removesuffix("_us")] = iso(one.pop(name))
    return told


def _sent(sending: Sending) -> Json:
    told: Json = {"channel": sending.channel, "state": sending.fate.value, "tries": sending.tries}
    return told | {"last_error": sending.last_error}


def _incident(one: Open) -> Json:
    told = taken_on(one.taken) if one.taken else None
    return shown(one.notification) | {"opened": iso(one.opened_us), "acknowledged": told}


def taken_on(taken: Taken) -> Json:
    """Return who has taken an incident on as ``--json`` shows it."""
    return {"by": taken.by, "at": iso(taken.at_us), "note": taken.note}


def _place(one: Untold) -> Json:
    names = ("rule", "severity", "stream", "node")
    return {name: getattr(one, name) for name in names} | {"since": iso(one.since_us)}
