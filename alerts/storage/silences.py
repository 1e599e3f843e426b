"""Silences: spans of time in which notifications of an incident, of a stream or of all incidents are held back.

A silence holds back firing notifications that were not sent yet. Those of an incident that still fires when it ends
are sent then; an incident that began and ended meanwhile is not notified at all. What was sent before goes on: its end
is sent, and an Alertmanager is reminded of it. A heartbeat is never silenced: its absence is its message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, and_, delete, false, func, insert, or_, select, true, update
from sqlalchemy.sql.elements import ColumnElement

from hopwatch.alerts.events import AlertKind, from_json
from hopwatch.monitor.store import schema, tables

EVERYTHING: Final = "*"
"""Target of a silence of all incidents."""
_silences, _outbox, _incidents = tables.alert_silences.c, tables.alert_outbox.c, tables.alert_incidents.c


@dataclass(frozen=True, slots=True)
class Silence:
    """Silence of a target from one moment to another, µs since 1970 by the wall clock, and who asked for it and why.

    ``target`` is the key of an incident, the name of a stream, or ``*``. ``number`` is 0 until it is stored.
    """

    target: str
    from_us: int
    until_us: int
    by: str
    why: str
    number: int = 0

    def covers(self, key: str) -> bool:
        """Return whether it is one of an incident."""
        return self.target in {EVERYTHING, key, key.rpartition("/")[2]}


def add_silence(engine: Engine, silence: Silence) -> int:
    """Store a silence, and return its number.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        number = 1 + int(connection.execute(select(func.max(_silences.number))).scalar() or 0)
        row = {name: getattr(silence, name) for name in ("target", "from_us", "until_us", "by", "why")}
        connection.execute(insert(tables.alert_silences).values(row | {"number": number}))
    return number


def end_silence(engine: Engine, number: int, now_us: int) -> bool:
    """End a silence now, or forget one that has not begun; return False if there is none that lasts.

    Raises:
        StoreError: the store cannot be written.
    """
    lasts = (_silences.number == number) & (_silences.until_us > now_us)
    with schema.open_change(engine) as connection:
        # One that has not begun ends before it begins, and silences nothing.
        return connection.execute(update(tables.alert_silences).where(lasts).values(until_us=now_us)).rowcount > 0


def query_silences(connection: Connection, now_us: int) -> list[Silence]:
    """Return the silences that last, and those to come, by their numbers."""
    names = ("target", "from_us", "until_us", "by", "why", "number")
    query = select(*(_silences[name] for name in names)).where(_silences.until_us > now_us)
    return [Silence(**row) for row in connection.execute(query.order_by(_silences.number)).mappings()]


def find_silence(silences: Iterable[Silence], key: str, now_us: int) -> Silence | None:
    """Return the silence of an incident that lasts now, the longest; None without one."""
    active = [one for one in silences if one.from_us <= now_us < one.until_us and one.covers(key)]
    return max(active, key=lambda one: one.until_us, default=None)


def query_active(connection: Connection, now_us: int) -> list[Silence]:
    """Return the silences that last now."""
    return [one for one in query_silences(connection, now_us) if one.from_us <= now_us]


def prune_silences(connection: Connection, before_us: int) -> int:
    """Delete silences that ended before a time; return how many."""
    return connection.execute(delete(tables.alert_silences).where(_silences.until_us < before_us)).rowcount


def query_silenced_rows(connection: Connection, now_us: int) -> ColumnElement[bool]:
    """Return the condition that a row of the outbox is of an incident that is silenced now; heartbeats are none."""
    targets = {one.target for one in query_active(connection, now_us)}
    if not targets:
        return false()
    incidents = connection.execute(select(_incidents.key, _incidents.notification).where(_incidents.notification != ""))
    heartbeats = [key for key, text in incidents if from_json(text).kind is AlertKind.HEARTBEAT]
    # Compared letter for letter: LIKE of SQLite takes an upper-case letter for a lower-case one.
    suffixes = [f"/{target}" for target in sorted(targets) if "/" not in target]
    of_streams = [func.substr(_outbox.key, func.length(_outbox.key) - len(one) + 1) == one for one in suffixes]
    of_target = true() if EVERYTHING in targets else or_(_outbox.key.in_(sorted(targets)), *of_streams)
    return and_(of_target, _outbox.key.not_in(heartbeats))
