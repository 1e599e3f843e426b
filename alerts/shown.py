"""What commands show of alerts, and the one thing that a person may write: who has taken an incident on."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import Engine, Select, select

from alerts.episode import Phase
from alerts.events import from_json, to_json
from monitor.errors import ConfigurationError
from monitor.results import iso
from monitor.store import dialect, schema, tables

Json = dict[str, Any]
MOST_SHOWN: Final = 1_000

_incidents, _states, _history = tables.alert_incidents.c, tables.alert_states.c, tables.alert_history.c
_acknowledgements, _outbox = tables.alert_acknowledgements.c, tables.alert_outbox.c


def standing(engine: Engine) -> Json:
    """Return the incidents that are open, and the alerts that are bad for too short a time yet.

    Raises:
        StoreError: the store cannot be read.
    """
    places = ("rule", "severity", "stream", "node", "since_us")
    of_phase = select(*(_states[name] for name in places)).where(_states.phase == Phase.PENDING.value)
    pending = of_phase.order_by(*tables.alert_states.primary_key)
    with schema.reading(engine) as connection:
        incidents = [_incident(row) for row in connection.execute(_open_incidents()).mappings()]
        waiting = [_place(row) for row in connection.execute(pending).mappings()]
    return {"incidents": incidents, "pending": waiting}


def history(engine: Engine, key: str | None, from_us: int | None, most: int) -> list[Json]:
    """Return what was told, the newest first, and how each channel took it.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = (
        select(_history.number, _history.notification).order_by(_history.number.desc()).limit(min(most, MOST_SHOWN))
    )
    wanted = wanted if key is None else wanted.where(_history.key == key)
    wanted = wanted if from_us is None else wanted.where(_history.at_us >= from_us)
    with schema.reading(engine) as connection:
        told = {row.number: shown(row.notification) | {"channels": []} for row in connection.execute(wanted)}
        names = ("number", "channel", "state", "tries", "last_error")
        sendings = select(*(_outbox[name] for name in names)).where(_outbox.number.in_(told)).order_by(_outbox.channel)
        for row in connection.execute(sendings).mappings():
            told[row["number"]]["channels"].append({name: row[name] for name in names[1:]})
    return list(told.values())


def acknowledge(engine: Engine, key: str, by: str, note: str, now_us: int) -> None:
    """Note that somebody has taken an incident on; it lasts as long as the incident.

    Raises:
        ConfigurationError: no incident of this key is open.
        StoreError: the store cannot be written.
    """
    with dialect.errors_named(engine.url), engine.execution_options(writes=True).begin() as connection:
        schema.check(connection)
        opened = {row.key: row.opened_us for row in connection.execute(select(_incidents.key, _incidents.opened_us))}
        if key not in opened:
            known = ", ".join(sorted(opened)) or "none"
            raise ConfigurationError(f"no incident {key!r:.200} is open; open are: {known}")
        row = {"key": key, "opened_us": opened[key], "at_us": now_us, "by": by, "note": note}
        connection.execute(dialect.upsert(connection, tables.alert_acknowledgements), [row])


def shown(text: str) -> Json:
    """Return a notification as ``--json`` shows it: moments as ISO 8601, lags in µs."""
    told: Json = json.loads(to_json(from_json(text)))
    del told["is_news"], told["version"]
    for one in (told, *told["alerts"]):
        for name in ("since_us", "at_us", "window_start_us"):
            if name in one:
                one[name.removesuffix("_us")] = iso(one.pop(name))
    return told


def _open_incidents() -> Select[Any]:
    joined = tables.alert_incidents.outerjoin(tables.alert_acknowledgements, _acknowledgements.key == _incidents.key)
    columns = (_incidents.notification, _incidents.opened_us, _acknowledgements.opened_us.label("of_us"))
    more = (_acknowledgements.at_us, _acknowledgements.by, _acknowledgements.note)
    return select(*columns, *more).select_from(joined).order_by(_incidents.opened_us, _incidents.key)


def _incident(row: Any) -> Json:  # noqa: ANN401 - a row of the query above
    taken = (
        {"by": row["by"], "at": iso(row["at_us"]), "note": row["note"]} if row["of_us"] == row["opened_us"] else None
    )
    return shown(row["notification"]) | {"opened": iso(row["opened_us"]), "acknowledged": taken}


def _place(row: Any) -> Json:  # noqa: ANN401 - a row of alert_states
    return {name: row[name] for name in ("rule", "severity", "stream", "node")} | {"since": iso(row["since_us"])}
