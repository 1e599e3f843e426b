"""Transactional outbox of notifications: durable, at least once, in order for each key and channel.

The transaction of a micro-batch inserts a row; the dispatcher queries due rows, sends them and records outcomes, each
in a transaction of its own. Killed between sending and recording, it sends again under the same key.

==========  =============================================================================================
waiting     to be sent at ``next_try_us``, after those that wait before it for the same key and channel
standing    was sent, and is sent again at ``next_try_us`` for as long as its incident lasts
sent        done
superseded  replaced by a newer notification for the same key and channel
silenced    not sent, as its incident began and ended within a silence
dead        given up
==========  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select, and_, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from hopwatch.alerts.events import AlertKind, Event, Notification, from_json, to_json
from hopwatch.alerts.storage.silences import query_silenced_rows
from hopwatch.monitor.store import dialect, schema, tables

MAX_DUE: Final = 100
MAX_ERROR: Final = 500
"""Characters of an error that are kept."""
MAX_WAIT_US: Final = 3_600_000_000
"""A row with a later ``next_try_us`` was written before the clock was set back, and is due."""


class DeliveryState(StrEnum):
    """State of a row of the outbox."""

    WAITING = "waiting"
    STANDING = "standing"
    SENT = "sent"
    SUPERSEDED = "superseded"
    SILENCED = "silenced"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class ChannelBacklog:
    """Rows that wait for a channel, and the watermark at which the oldest was decided, µs since 1970."""

    rows: int
    oldest_us: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification for one channel.

    ``tries`` counts the failures since it was last sent. ``is_again``: the channel accepted it before, and it is sent
    again because the incident lasts. ``is_acknowledged``: the incident is acknowledged.
    """

    number: int
    channel: str
    notification: Notification
    created_us: int
    tries: int
    is_again: bool
    is_acknowledged: bool


_OPEN: Final = (DeliveryState.WAITING.value, DeliveryState.STANDING.value)
_FRESH: Final = {"state": DeliveryState.WAITING.value, "next_try_us": 0, "tries": 0}
_outbox, _history, _incidents = tables.alert_outbox.c, tables.alert_history.c, tables.alert_incidents.c
# The dispatcher asks again and again: what does not change is built once.
_before, _ending = (tables.alert_outbox.alias(name) for name in ("before", "ending"))
_is_new = (_outbox.event == Event.FIRING.value) & (_outbox.state == DeliveryState.WAITING.value)
_is_first = ~(
    select(_before.c.number)
    .where(_before.c.key == _outbox.key, _before.c.channel == _outbox.channel)
    .where(_before.c.number < _outbox.number, _before.c.state == DeliveryState.WAITING.value)
    .exists()
)
_is_end = and_(
    *(_ending.c.key == _outbox.key, _ending.c.channel == _outbox.channel, _ending.c.number > _outbox.number),
    *(_ending.c.event == Event.RESOLVED.value, _ending.c.state == DeliveryState.WAITING.value),
)
_ENDED: Final = (
    select(_outbox.number, _outbox.channel, _outbox.key, _ending.c.number.label("ended"))
    .join(_ending, _is_end)
    .order_by(_outbox.number)
)
"""Notifications, each with every resolved one that waits behind it."""


def enqueue(connection: Connection, notifications: Iterable[Notification], channels: Sequence[Sequence[str]]) -> None:
    """Write notifications to history and outbox; ``channels`` are those of each notification.

    An update that is no news is not enqueued: the content of its incident has it already. A resolved notification goes
    through all channels of the firing one. The caller holds the transaction.
    """
    for notification, names in zip(notifications, channels, strict=True):
        if not notification.is_news:
            continue
        # Each channel that had the firing notification gets the resolved one, whatever the routes are by then.
        reached = _query_notified_channels(connection, notification.key) if notification.event is Event.RESOLVED else []
        number = _next_number(connection)
        row = {"number": number, "key": notification.key, "event": notification.event.value}
        content = {"at_us": notification.at_us, "notification": to_json(notification)}
        connection.execute(insert(tables.alert_history).values(row | content))
        for channel in dict.fromkeys([*names, *reached]):
            _supersede(connection, notification, channel)
            connection.execute(insert(tables.alert_outbox).values(_row(row, channel, notification.at_us)))


def query_due(engine: Engine, now_us: int, most: int = MAX_DUE, channel: str | None = None) -> list[Delivery]:
    """Return the deliveries that are due, of one channel or all, the oldest first; ``now_us`` is the wall clock.

    A heartbeat is sent again only after the watermark has advanced: an unchanged one proves nothing.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        query = _select_due(now_us, query_silenced_rows(connection, now_us))
        query = query if channel is None else query.where(_outbox.channel == channel)
        rows = connection.execute(query.limit(most)).mappings()
        deliveries = [(_delivery(row), row["told_us"]) for row in rows]
    return [delivery for delivery, sent_us in deliveries if not _is_stale(delivery, sent_us)]


def mark_sent(engine: Engine, delivery: Delivery, again_at_us: int | None = None) -> None:
    """Record that a channel accepted a notification; it is sent again at ``again_at_us`` while the incident lasts.

    If a newer notification of the key waits, it is not sent again: it would contradict the newer one.
    """
    stands = again_at_us is not None and delivery.notification.event is Event.FIRING
    state = DeliveryState.STANDING if stands else DeliveryState.SENT
    _update_row(engine, delivery, state, next_try_us=again_at_us or 0, tries=0, last_error="")


def mark_failed(engine: Engine, delivery: Delivery, why: str, next_try_us: int) -> None:
    """Record that a delivery failed, and when it is tried again."""
    state = DeliveryState.STANDING if delivery.is_again else DeliveryState.WAITING
    values = {"next_try_us": next_try_us, "tries": delivery.tries + 1, "last_error": why[:MAX_ERROR]}
    _update_row(engine, delivery, state, told_us=None, **values)


def mark_dead(engine: Engine, delivery: Delivery, why: str) -> None:
    """Record that a delivery is given up."""
    _update_row(
        engine, delivery, DeliveryState.DEAD, told_us=None, tries=delivery.tries + 1, last_error=why[:MAX_ERROR]
    )


def enqueue_fallback(engine: Engine, delivery: Delivery, channel: str) -> bool:
    """Enqueue a notification and its waiting end for a fallback; return whether rows were added.

    It is idempotent, and adds nothing older than what the fallback already has of the incident: a firing notification
    after the resolved one would open the incident again.
    """
    of_key = (_outbox.key == delivery.notification.key) & (_outbox.channel == delivery.channel)
    query = select(_outbox.number, _outbox.key, _outbox.event, _outbox.created_us)
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        there = (_outbox.key == delivery.notification.key) & (_outbox.channel == channel)
        newest = int(connection.execute(select(func.max(_outbox.number)).where(there)).scalar() or 0)
        since = (_outbox.number >= delivery.number) & (_outbox.number > newest)
        rows = [
            dict(row) for row in connection.execute(query.where(of_key, since, _outbox.state.in_(_OPEN))).mappings()
        ]
        for row in rows:
            connection.execute(insert(tables.alert_outbox).values(_row(row, channel, row["created_us"])))
    return bool(rows)


def query_backlog(engine: Engine, now_us: int) -> tuple[set[str], dict[str, ChannelBacklog]]:
    """Return the channels that may have due deliveries, and the backlog of each; what is silenced is in neither.

    Raises:
        StoreError: the store cannot be read.
    """
    query = select(_outbox.channel, func.count(), func.min(_outbox.created_us)).group_by(_outbox.channel)
    with schema.open_snapshot(engine) as connection:
        silenced = query_silenced_rows(connection, now_us)
        due = set(connection.execute(select(_outbox.channel).where(*_is_due(now_us, silenced)).distinct()).scalars())
        rows = connection.execute(query.where(_outbox.state == DeliveryState.WAITING.value, ~_is_held(silenced)))
        return due, {channel: ChannelBacklog(int(count), int(oldest_us)) for channel, count, oldest_us in rows}


def query_ended_in_silence(engine: Engine, now_us: int) -> list[tuple[int, str]]:
    """Return (number, channel) of what is not to be sent, as its incident began and ended while it was silenced.

    The firing notification that is held back, and the resolved one behind it where the channel has heard nothing of the
    incident.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        silenced = query_silenced_rows(connection, now_us)
        rows = connection.execute(_ENDED.where(_is_held(silenced))).all()
        unheard = [row for row in rows if not _has_heard(connection, row.key, row.channel, row.ended)]
    return [*((row.number, row.channel) for row in rows), *((row.ended, row.channel) for row in unheard)]


def mark_silenced(engine: Engine, rows: Iterable[tuple[int, str]]) -> None:
    """Mark rows that wait, named by number and channel, as silenced."""
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        for number, channel in rows:
            is_row = (_outbox.number == number) & (_outbox.channel == channel)
            waits = is_row & (_outbox.state == DeliveryState.WAITING.value)
            silenced = update(tables.alert_outbox).where(waits).values(state=DeliveryState.SILENCED.value)
            connection.execute(silenced)


def _has_heard(connection: Connection, key: str, channel: str, ended: int) -> bool:
    """Return whether a channel was sent a firing notification of the incident that ended with a number."""
    before = select(func.max(_history.number)).where(
        _history.key == key, _history.number < ended, _history.event == Event.RESOLVED.value
    )
    since = int(connection.execute(before).scalar() or 0)
    of_incident = (_outbox.key == key) & (_outbox.channel == channel) & (_outbox.number > since)
    sent = of_incident & (_outbox.number < ended) & (_outbox.event == Event.FIRING.value) & (_outbox.told_us > 0)
    return connection.execute(select(_outbox.number).where(sent).limit(1)).first() is not None


def count_by_state(connection: Connection) -> dict[tuple[str, str], int]:
    """Count the rows by channel and state."""
    query = select(_outbox.channel, _outbox.state, func.count()).group_by(_outbox.channel, _outbox.state)
    return {(channel, state): int(count) for channel, state, count in connection.execute(query)}


def catch_up_channels(
    engine: Engine, routes: Callable[[Notification], Sequence[str]], channels: Container[str]
) -> None:
    """Enqueue open incidents for channels that are new or gave them up, and ends that were given up.

    For a monitor that starts: its configuration may have changed since an incident began or ended.

    Raises:
        StoreError: the store fails.
    """
    opened = select(_incidents.key, _incidents.notification).where(_incidents.notification != "")
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        # This comes first: an incident may have begun again since.
        _retry_dead_ends(connection, channels)
        for key, text in connection.execute(opened.order_by(_incidents.key)).all():
            notification = from_json(text)
            for channel in dict.fromkeys(routes(notification)):
                if channel in channels:
                    _enqueue_open(connection, notification, key, channel)


def _retry_dead_ends(connection: Connection, channels: Container[str]) -> None:
    """Retry resolved notifications that were given up, at channels that had the firing one and nothing since."""
    same = tables.alert_outbox.alias("same")
    of_same = (same.c.key == _outbox.key) & (same.c.channel == _outbox.channel)
    before = select(func.max(_history.number)).where(
        _history.key == _outbox.key, _history.number < _outbox.number, _history.event == Event.RESOLVED.value
    )
    since = (same.c.number < _outbox.number) & (same.c.number > func.coalesce(before.scalar_subquery(), 0))
    heard = select(same.c.number).where(of_same, since, same.c.state == DeliveryState.SENT.value).exists()
    newer = select(same.c.number).where(of_same, same.c.number > _outbox.number).exists()
    is_end = (_outbox.event == Event.RESOLVED.value) & (_outbox.state == DeliveryState.DEAD.value)
    ends = connection.execute(select(_outbox.number, _outbox.channel).where(is_end, heard, ~newer)).all()
    for number, channel in ends:
        if channel in channels:
            of_end = (_outbox.number == number) & (_outbox.channel == channel)
            connection.execute(update(tables.alert_outbox).where(of_end).values(_FRESH))


def _enqueue_open(connection: Connection, notification: Notification, key: str, channel: str) -> None:
    """Enqueue an open incident for a channel that has not had its firing notification."""
    ended = _query_last_end(connection, key)
    of_channel = (_outbox.key == key) & (_outbox.channel == channel) & (_outbox.number > ended)
    newest = select(_outbox.number, _outbox.state).where(of_channel).order_by(_outbox.number.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is not None and row.state == DeliveryState.DEAD.value:
        connection.execute(update(tables.alert_outbox).where(of_channel, _outbox.number == row.number).values(_FRESH))
    if row is not None:
        return
    identity = {"key": key, "event": Event.FIRING.value}
    last = select(func.max(_history.number)).where(_history.key == key, _history.number > ended)
    number = connection.execute(last).scalar()
    if number is None:
        # The incident has lasted so long that its history is pruned.
        number = _next_number(connection)
        content = {"at_us": notification.at_us, "notification": to_json(notification)}
        connection.execute(insert(tables.alert_history).values(identity | content | {"number": number}))
    fresh = _row(identity | {"number": number}, channel, notification.at_us)
    connection.execute(insert(tables.alert_outbox).values(fresh))


def _row(row: dict[str, Any], channel: str, created_us: int) -> dict[str, Any]:
    # It is due at once by any clock: the watermark may be far behind the wall clock.
    fresh = {"state": DeliveryState.WAITING.value, "created_us": created_us, "next_try_us": 0, "tries": 0, "told_us": 0}
    return row | {"channel": channel, "last_error": ""} | fresh


def _next_number(connection: Connection) -> int:
    newest = (select(func.max(_history.number)), select(func.max(_outbox.number)))
    return 1 + max(int(connection.execute(query).scalar() or 0) for query in newest)


def _query_notified_channels(connection: Connection, key: str) -> list[str]:
    """Return the channels that were notified of the open incident of a key, fallbacks included."""
    since = _outbox.number > _query_last_end(connection, key)
    query = select(_outbox.channel).where(_outbox.key == key, since).distinct()
    return list(connection.execute(query.order_by(_outbox.channel)).scalars())


def _query_last_end(connection: Connection, key: str) -> int:
    """Return the number of the last end of a key, 0 before the first."""
    over = select(func.max(_history.number)).where(_history.key == key, _history.event == Event.RESOLVED.value)
    return int(connection.execute(over).scalar() or 0)


def _supersede(connection: Connection, notification: Notification, channel: str) -> None:
    """Mark the rows that a newer notification replaces.

    A firing notification that was not sent yet stays before the resolved one; a new firing one replaces both.
    """
    of_key = (_outbox.key == notification.key) & (_outbox.channel == channel)
    standing = of_key & (_outbox.state == DeliveryState.STANDING.value)
    connection.execute(update(tables.alert_outbox).where(standing).values(state=DeliveryState.SENT.value))
    if notification.event is Event.FIRING:
        waiting = of_key & (_outbox.state == DeliveryState.WAITING.value)
        connection.execute(update(tables.alert_outbox).where(waiting).values(state=DeliveryState.SUPERSEDED.value))


def _select_due(now_us: int, silenced: ColumnElement[bool]) -> Select[Any]:
    acknowledged = tables.alert_acknowledgements.c
    query = select(
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
    return query.select_from(joined).where(*_is_due(now_us, silenced)).order_by(_outbox.number, _outbox.channel)


def _is_due(now_us: int, silenced: ColumnElement[bool]) -> tuple[ColumnElement[bool], ...]:
    is_time = (_outbox.next_try_us <= now_us) | (_outbox.next_try_us > now_us + MAX_WAIT_US)
    return _outbox.state.in_(_OPEN), is_time, _is_first, ~_is_held(silenced)


def _is_held(silenced: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a row of an incident that is silenced is held back: it was not sent yet."""
    return _is_new & silenced


def _delivery(row: Any) -> Delivery:  # noqa: ANN401 - a row of the query above
    # An incident that still fires is sent with its current content, under the same key.
    lasts = row["says"] and row["event"] == Event.FIRING.value
    notification = from_json(row["says"] if lasts else row["said"])
    is_acknowledged = row["acknowledged_us"] is not None and row["acknowledged_us"] == row["opened_us"]
    return Delivery(
        number=row["number"],
        channel=row["channel"],
        notification=replace(notification, is_news=True),
        created_us=row["created_us"],
        tries=row["tries"],
        is_again=row["state"] == DeliveryState.STANDING.value,
        is_acknowledged=is_acknowledged,
    )


def _is_stale(delivery: Delivery, sent_us: int) -> bool:
    is_heartbeat = delivery.notification.kind is AlertKind.HEARTBEAT
    return is_heartbeat and delivery.is_again and delivery.notification.at_us <= sent_us


def _update_row(engine: Engine, delivery: Delivery, state: DeliveryState, **columns: Any) -> None:  # noqa: ANN401 - columns
    """Update the state of a row, unless a newer one has replaced it meanwhile."""
    changes = {"told_us": delivery.notification.at_us} | columns
    values = {"state": state.value} | {name: value for name, value in changes.items() if value is not None}
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        if state is DeliveryState.STANDING and _has_newer(connection, delivery):
            values["state"] = DeliveryState.SENT.value
        connection.execute(update(tables.alert_outbox).where(_is_open(delivery)).values(values))


def _has_newer(connection: Connection, delivery: Delivery) -> bool:
    newer = (_outbox.key == delivery.notification.key) & (_outbox.channel == delivery.channel)
    query = select(_outbox.number).where(newer, _outbox.number > delivery.number)
    return connection.execute(query.limit(1)).first() is not None


def _is_open(delivery: Delivery) -> ColumnElement[bool]:
    expected = DeliveryState.STANDING if delivery.is_again else DeliveryState.WAITING
    is_row = (_outbox.number == delivery.number) & (_outbox.channel == delivery.channel)
    return is_row & (_outbox.state == expected.value)
