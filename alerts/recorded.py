"""Reads what is on record of alerts, for whoever shows it; nothing is written here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from hopwatch.alerts.episode import Phase
from hopwatch.alerts.events import Event, Kind, from_json
from hopwatch.alerts.outbox import Fate
from hopwatch.alerts.record import Open, Sending, Taken, Told, Untold
from hopwatch.monitor.store import tables

_incidents, _states, _history = tables.alert_incidents.c, tables.alert_states.c, tables.alert_history.c
_acknowledgements, _outbox = tables.alert_acknowledgements.c, tables.alert_outbox.c


def open_incidents(connection: Connection) -> list[Open]:
    """Return the incidents that are open, the oldest first."""
    joined = tables.alert_incidents.outerjoin(tables.alert_acknowledgements, _acknowledgements.key == _incidents.key)
    columns = (_incidents.notification, _incidents.opened_us, _acknowledgements.opened_us.label("of_us"))
    more = (_acknowledgements.at_us, _acknowledgements.by, _acknowledgements.note)
    wanted = select(*columns, *more).select_from(joined).order_by(_incidents.opened_us, _incidents.key)
    return [_open(row) for row in connection.execute(wanted).mappings()]


def firing(connection: Connection) -> int:
    """Return how many incidents are open; a heartbeat, which stands for as long as all is well, is none."""
    return sum(one.notification.kind is not Kind.HEARTBEAT for one in open_incidents(connection))


def pending(connection: Connection) -> list[Untold]:
    """Return the alerts that are bad for too short a time yet, in order of their series."""
    return _untold(connection, Phase.PENDING)


def covered(connection: Connection) -> list[Untold]:
    """Return the alerts that fire and are not told, because another stands for them, in order of their series."""
    return _untold(connection, Phase.FIRING)


def of_stream(wanted: Select[Any], stream: str) -> Select[Any]:
    """Return what asks for the notifications of one stream alone, and of storms, which may be of any."""
    of_key = (_history.key.endswith(f"/{own}", autoescape=True) for own in (stream, "*"))
    return wanted.where(or_(*of_key)) if stream else wanted


def told(connection: Connection, wanted: Select[Any]) -> list[Told]:
    """Return what a query for numbers and notifications of the history finds, and how each channel took it."""
    rows = connection.execute(wanted).all()
    taken = _sendings(connection, [row.number for row in rows])
    return [Told(row.number, from_json(row.notification), tuple(taken[row.number])) for row in rows]


def newest(most: int) -> Select[Any]:
    """Return what asks for the newest notifications."""
    return select(_history.number, _history.notification).order_by(_history.number.desc()).limit(most)


def in_range(from_us: int, to_us: int, most: int) -> Select[Any]:
    """Return what asks for the newest notifications that were decided in ``[from_us, to_us)``."""
    return newest(most).where(_history.at_us >= from_us, _history.at_us < to_us)


def ends_after(at_us: int, most: int) -> Select[Any]:
    """Return what asks for the first end of each incident from a moment on: what had begun before lasted until then."""
    is_end = _history.event == Event.RESOLVED.value
    first = select(func.min(_history.number)).where(is_end, _history.at_us >= at_us).group_by(_history.key)
    return newest(most).where(_history.number.in_(first))


def beginnings(keys: Iterable[str]) -> Select[Any]:
    """Return what asks for the newest notification of incidents that are open."""
    first = select(func.max(_history.number)).where(_history.key.in_(list(keys))).group_by(_history.key)
    return select(_history.number, _history.notification).where(_history.number.in_(first))


def _sendings(connection: Connection, numbers: Collection[int]) -> dict[int, list[Sending]]:
    names = ("channel", "state", "tries", "next_try_us", "last_error")
    wanted = select(_outbox.number, *(_outbox[name] for name in names)).where(_outbox.number.in_(numbers))
    found: dict[int, list[Sending]] = defaultdict(list)
    for number, channel, state, *more in connection.execute(wanted.order_by(_outbox.channel)):
        found[number].append(Sending(channel, Fate(state), *more))
    return found


def _untold(connection: Connection, phase: Phase) -> list[Untold]:
    places = ("rule", "severity", "stream", "node", "since_us")
    of_phase = select(*(_states[name] for name in places)).where(_states.phase == phase.value, _states.told_as == "")
    return [Untold(*row) for row in connection.execute(of_phase.order_by(*tables.alert_states.primary_key))]


def _open(row: Any) -> Open:  # noqa: ANN401 - a row of the query above
    is_taken = row["of_us"] == row["opened_us"]
    taken = Taken(row["by"], row["at_us"], row["note"]) if is_taken else None
    return Open(from_json(row["notification"]), row["opened_us"], taken)
