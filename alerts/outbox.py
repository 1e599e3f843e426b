"""The outbox: what is to be sent to whom, durable, at least once, in order for each key and channel.

A row is put in the transaction that decides; whoever delivers asks what is due, sends it, and says what came of it,
each in a transaction of its own. Killed between sending and saying so, it sends again, under the same key.

==========  =============================================================================================
waiting     to be sent at ``next_try_us``, once all that waits before it for the same key and channel is
standing    was sent, and is sent again at ``next_try_us`` for as long as its incident lasts
sent        done
superseded  something newer for the same key and channel stands in its place
dead        given up
==========  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from hopwatch.alerts.events import Event, Kind, Notification, from_json, to_json
from hopwatch.monitor.store import dialect, schema, tables

MOST_DUE: Final = 100
MOST_ERROR: Final = 500
"""Characters of what went wrong that are kept."""
LONGEST_WAIT_US: Final = 3_600_000_000
"""What is to be sent later than that was noted by a clock that was put back since, and is due."""


class Fate(StrEnum):
    """What has become of a row."""

    WAITING = "waiting"
    STANDING = "standing"
    SENT = "sent"
    SUPERSEDED = "superseded"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many rows wait for a channel, and when the oldest of them was decided, µs since 1970 by the watermark."""

    rows: int
    oldest_us: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification for one channel.

    ``tries`` counts those that failed since it was last sent. ``is_again`` says that the channel has had it before, and
    that it is sent again because the incident lasts; ``is_acknowledged`` that somebody has taken the incident on.
    """

    number: int
    channel: str
    notification: Notification
    created_us: int
    tries: int
    is_again: bool
    is_acknowledged: bool


_OPEN: Final = (Fate.WAITING.value, Fate.STANDING.value)
_ANEW: Final = {"state": Fate.WAITING.value, "next_try_us": 0, "tries": 0}
_outbox, _history, _incidents = tables.alert_outbox.c, tables.alert_history.c, tables.alert_incidents.c


def put(connection: Connection, notifications: Iterable[Notification], channels: Sequence[Sequence[str]]) -> None:
    """Write what is to be told into history and outbox; ``channels`` are those of each notification.

    What is no news is not told: it is in the content of its incident already. An end goes through all channels that
    its beginning went through. The caller holds the transaction.
    """
    for notification, of_notification in zip(notifications, channels, strict=True):
        if not notification.is_news:
            continue
        # Whoever was told of a beginning is told of its end, whatever the routes say by then.
        reached = _reached(connection, notification.key) if notification.event is Event.RESOLVED else []
        number = _next_number(connection)
        row = {"number": number, "key": notification.key, "event": notification.event.value}
        told = {"at_us": notification.at_us, "notification": to_json(notification)}
        connection.execute(insert(tables.alert_history).values(row | told))
        for channel in dict.fromkeys([*of_notification, *reached]):
            _supersede(connection, notification, channel)
            connection.execute(insert(tables.alert_outbox).values(_row(row, channel, notification.at_us)))


def due(engine: Engine, now_us: int, most: int = MOST_DUE, channel: str | None = None) -> list[Delivery]:
    """Return what is to be sent now, through one channel or all, the oldest first; ``now_us`` is the wall clock.

    A heartbeat is sent again only when the monitor has come further since: a standing one proves nothing.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = _due(now_us) if channel is None else _due(now_us).where(_outbox.channel == channel)
    with schema.open_snapshot(engine) as connection:
        found = connection.execute(wanted.limit(most)).mappings()
        deliveries = [(_delivery(row), row["told_us"]) for row in found]
    return [delivery for delivery, told_us in deliveries if not _is_stale(delivery, told_us)]


def sent(engine: Engine, delivery: Delivery, again_at_us: int | None = None) -> None:
    """Note that a channel has taken a notification; it is sent again at ``again_at_us`` while the incident lasts.

    What something newer waits behind is sent no more: a beginning that came late would stand against its own end.
    """
    stands = again_at_us is not None and delivery.notification.event is Event.FIRING
    state = Fate.STANDING if stands else Fate.SENT
    _note(engine, delivery, state, next_try_us=again_at_us or 0, tries=0, last_error="")


def failed(engine: Engine, delivery: Delivery, why: str, next_try_us: int) -> None:
    """Note that a channel has not taken it, and when it is tried again."""
    state = Fate.STANDING if delivery.is_again else Fate.WAITING
    what = {"next_try_us": next_try_us, "tries": delivery.tries + 1, "last_error": why[:MOST_ERROR]}
    _note(engine, delivery, state, told_us=None, **what)


def give_up(engine: Engine, delivery: Delivery, why: str) -> None:
    """Note that a channel will never take it: it is refused for what it is."""
    _note(engine, delivery, Fate.DEAD, told_us=None, tries=delivery.tries + 1, last_error=why[:MOST_ERROR])


def hand_over(engine: Engine, delivery: Delivery, channel: str) -> bool:
    """Send it through another channel too, and the end that waits behind it; return whether there was anything to do.

    Once only, however often this is asked for, and not where it has something newer of the incident: who took over
    before has heard of the end by itself, and what came behind that would open again what is over.
    """
    of_key = (_outbox.key == delivery.notification.key) & (_outbox.channel == delivery.channel)
    wanted = select(_outbox.number, _outbox.key, _outbox.event, _outbox.created_us)
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        there = (_outbox.key == delivery.notification.key) & (_outbox.channel == channel)
        newest = int(connection.execute(select(func.max(_outbox.number)).where(there)).scalar() or 0)
        since = (_outbox.number >= delivery.number) & (_outbox.number > newest)
        rows = [
            dict(row) for row in connection.execute(wanted.where(of_key, since, _outbox.state.in_(_OPEN))).mappings()
        ]
        for row in rows:
            connection.execute(insert(tables.alert_outbox).values(_row(row, channel, row["created_us"])))
    return bool(rows)


def look(engine: Engine, now_us: int) -> tuple[set[str], dict[str, Waiting]]:
    """Return which channels something may be due for, and what waits for each.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = select(_outbox.channel, func.count(), func.min(_outbox.created_us)).group_by(_outbox.channel)
    with schema.open_snapshot(engine) as connection:
        found = set(connection.execute(select(_outbox.channel).where(*_is_due(now_us)).distinct()).scalars())
        rows = connection.execute(wanted.where(_outbox.state == Fate.WAITING.value))
        return found, {channel: Waiting(int(count), int(oldest_us)) for channel, count, oldest_us in rows}


def census(connection: Connection) -> dict[tuple[str, str], int]:
    """Return how many rows there are, by channel and state."""
    wanted = select(_outbox.channel, _outbox.state, func.count()).group_by(_outbox.channel, _outbox.state)
    return {(channel, state): int(count) for channel, state, count in connection.execute(wanted)}


def catch_up(engine: Engine, routes: Callable[[Notification], Sequence[str]], channels: Container[str]) -> None:
    """Let channels that are new, or that gave something up, be told of the incidents that are open.

    And of the end of those that they were told of. For a monitor that starts: its configuration may be another one than
    that under which an incident began, or ended.

    Raises:
        StoreError: the store fails.
    """
    opened = select(_incidents.key, _incidents.notification).where(_incidents.notification != "")
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        # First of all: an incident may have begun anew since.
        _tell_ends(connection, channels)
        for key, told in connection.execute(opened.order_by(_incidents.key)).all():
            notification = from_json(told)
            for channel in dict.fromkeys(routes(notification)):
                if channel in channels:
                    _enrol(connection, notification, key, channel)


def _tell_ends(connection: Connection, channels: Container[str]) -> None:
    """Try anew what was given up of an end, where a channel has heard of the beginning and of nothing since."""
    same = tables.alert_outbox.alias("same")
    of_same = (same.c.key == _outbox.key) & (same.c.channel == _outbox.channel)
    before = select(func.max(_history.number)).where(
        _history.key == _outbox.key, _history.number < _outbox.number, _history.event == Event.RESOLVED.value
    )
    since = (same.c.number < _outbox.number) & (same.c.number > func.coalesce(before.scalar_subquery(), 0))
    heard = select(same.c.number).where(of_same, since, same.c.state == Fate.SENT.value).exists()
    newer = select(same.c.number).where(of_same, same.c.number > _outbox.number).exists()
    is_end = (_outbox.event == Event.RESOLVED.value) & (_outbox.state == Fate.DEAD.value)
    ends = connection.execute(select(_outbox.number, _outbox.channel).where(is_end, heard, ~newer)).all()
    for number, channel in ends:
        if channel in channels:
            of_end = (_outbox.number == number) & (_outbox.channel == channel)
            connection.execute(update(tables.alert_outbox).where(of_end).values(_ANEW))


def _enrol(connection: Connection, notification: Notification, key: str, channel: str) -> None:
    """Tell a channel of an incident that is open, if it has not had its beginning."""
    ended = _ended(connection, key)
    of_channel = (_outbox.key == key) & (_outbox.channel == channel) & (_outbox.number > ended)
    newest = select(_outbox.number, _outbox.state).where(of_channel).order_by(_outbox.number.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is not None and row.state == Fate.DEAD.value:
        connection.execute(update(tables.alert_outbox).where(of_channel, _outbox.number == row.number).values(_ANEW))
    if row is not None:
        return
    told = {"key": key, "event": Event.FIRING.value}
    last = select(func.max(_history.number)).where(_history.key == key, _history.number > ended)
    number = connection.execute(last).scalar()
    if number is None:
        # All that was told of it is pruned, so long does it last.
        number = _next_number(connection)
        said = {"at_us": notification.at_us, "notification": to_json(notification)}
        connection.execute(insert(tables.alert_history).values(told | said | {"number": number}))
    fresh = _row(told | {"number": number}, channel, notification.at_us)
    connection.execute(insert(tables.alert_outbox).values(fresh))


def _row(row: dict[str, Any], channel: str, created_us: int) -> dict[str, Any]:
    # It is due at once, on whatever clock: the watermark may be far behind that of the wall.
    fresh = {"state": Fate.WAITING.value, "created_us": created_us, "next_try_us": 0, "tries": 0, "told_us": 0}
    return row | {"channel": channel, "last_error": ""} | fresh


def _next_number(connection: Connection) -> int:
    newest = (select(func.max(_history.number)), select(func.max(_outbox.number)))
    return 1 + max(int(connection.execute(one).scalar() or 0) for one in newest)


def _reached(connection: Connection, key: str) -> list[str]:
    """Return the channels that the incident of a key which is open went through, those that took over included."""
    since = _outbox.number > _ended(connection, key)
    wanted = select(_outbox.channel).where(_outbox.key == key, since).distinct()
    return list(connection.execute(wanted.order_by(_outbox.channel)).scalars())


def _ended(connection: Connection, key: str) -> int:
    """Return the number of the last end of a key, 0 before the first."""
    over = select(func.max(_history.number)).where(_history.key == key, _history.event == Event.RESOLVED.value)
    return int(connection.execute(over).scalar() or 0)


def _supersede(connection: Connection, notification: Notification, channel: str) -> None:
    """Take what a newer notification stands for out of the way.

    A beginning that was not sent yet stays before its end, so that nobody misses it; a new beginning stands for both.
    """
    of_key = (_outbox.key == notification.key) & (_outbox.channel == channel)
    standing = of_key & (_outbox.state == Fate.STANDING.value)
    connection.execute(update(tables.alert_outbox).where(standing).values(state=Fate.SENT.value))
    if notification.event is Event.FIRING:
        waiting = of_key & (_outbox.state == Fate.WAITING.value)
        connection.execute(update(tables.alert_outbox).where(waiting).values(state=Fate.SUPERSEDED.value))


def _due(now_us: int) -> Select[Any]:
    acknowledged = tables.alert_acknowledgements.c
    wanted = select(
        *(_outbox[name] for name in ("number", "channel", "event", "state", "created_us", "tries", "told_us")),
        _history.notification.label("said"),
        _incidents.notification.label("says"),
        _incidents.opened_us,
        acknowledged.opened_us.label("acknowledged_us"),
    )
    joined = (
        tables.alert_outbox.join(tables.alert_history, _history.number == _outbox.number)
        .outerjoin(tables.alert_incidents, _incidents.key == _outbox.key)
        .outerjoin(tables.alert_acknowledgements, acknowledged.key == _outbox.key)
    )
    return wanted.select_from(joined).where(*_is_due(now_us)).order_by(_outbox.number, _outbox.channel)


def _is_due(now_us: int) -> tuple[ColumnElement[bool], ...]:
    before = tables.alert_outbox.alias("before")
    same = (before.c.key == _outbox.key) & (before.c.channel == _outbox.channel)
    waits = same & (before.c.number < _outbox.number) & (before.c.state == Fate.WAITING.value)
    is_time = (_outbox.next_try_us <= now_us) | (_outbox.next_try_us > now_us + LONGEST_WAIT_US)
    return _outbox.state.in_(_OPEN), is_time, ~select(before.c.number).where(waits).exists()


def _delivery(row: Any) -> Delivery:  # noqa: ANN401 - a row of the query above
    # What still fires says what it says now, under the same key.
    lasts = row["says"] and row["event"] == Event.FIRING.value
    notification = from_json(row["says"] if lasts else row["said"])
    is_acknowledged = row["acknowledged_us"] is not None and row["acknowledged_us"] == row["opened_us"]
    return Delivery(
        number=row["number"],
        channel=row["channel"],
        notification=replace(notification, is_news=True),
        created_us=row["created_us"],
        tries=row["tries"],
        is_again=row["state"] == Fate.STANDING.value,
        is_acknowledged=is_acknowledged,
    )


def _is_stale(delivery: Delivery, told_us: int) -> bool:
    is_heartbeat = delivery.notification.kind is Kind.HEARTBEAT
    return is_heartbeat and delivery.is_again and delivery.notification.at_us <= told_us


def _note(engine: Engine, delivery: Delivery, state: Fate, **what: Any) -> None:  # noqa: ANN401 - columns
    """Write what has become of a row, unless something newer stands in its place meanwhile."""
    told = {"told_us": delivery.notification.at_us} | what
    values = {"state": state.value} | {name: value for name, value in told.items() if value is not None}
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        if state is Fate.STANDING and _is_followed(connection, delivery):
            values["state"] = Fate.SENT.value
        connection.execute(update(tables.alert_outbox).where(_is_open(delivery)).values(values))


def _is_followed(connection: Connection, delivery: Delivery) -> bool:
    newer = (_outbox.key == delivery.notification.key) & (_outbox.channel == delivery.channel)
    wanted = select(_outbox.number).where(newer, _outbox.number > delivery.number)
    return connection.execute(wanted.limit(1)).first() is not None


def _is_open(delivery: Delivery) -> ColumnElement[bool]:
    expected = Fate.STANDING if delivery.is_again else Fate.WAITING
    is_row = (_outbox.number == delivery.number) & (_outbox.channel == delivery.channel)
    return is_row & (_outbox.state == expected.value)
