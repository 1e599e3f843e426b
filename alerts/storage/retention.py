"""Retention of alerts: delete old notifications, and counts of windows that no burn rate needs any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine, Select, delete, func, select

from hopwatch.alerts.events import Event
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.alerts.storage.silences import prune_silences
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store import retention, schema, tables
from hopwatch.probes.contract.limits import WINDOW_US

ROWS_PER_STEP: Final = 1_000
WINDOW_ROWS_PER_STEP: Final = 10_000

_history, _outbox, _minutes = tables.alert_history.c, tables.alert_outbox.c, tables.objective_minutes.c
_incidents: Final = tables.alert_incidents.c
_OPEN: Final = (DeliveryState.WAITING.value, DeliveryState.STANDING.value)


def prune_alerts(engine: Engine, before_us: int, counts_before_us: int, clock: Clock) -> Iterator[int]:
    """Delete notifications before one time, and window counts before another, in steps; yields notifications per step.

    Notifications that are still to be sent stay, and so do those of an open incident: they say which channels get the
    resolved one.

    Raises:
        StoreError: the store fails; what was deleted before is deleted.
    """
    while gone := retention.run_and_rest(engine, clock, partial(_prune_history, before_us=before_us)):
        yield gone
    retention.run_and_rest(engine, clock, partial(prune_silences, before_us=before_us))
    while retention.run_and_rest(engine, clock, partial(_prune_windows, before_us=counts_before_us)):
        yield 0


def count_prunable(engine: Engine, before_us: int) -> int:
    """Count the notifications that :func:`prune_alerts` would delete; nothing is changed."""
    with schema.open_snapshot(engine) as connection:
        return int(
            connection.execute(select(func.count()).select_from(_select_prunable(before_us).subquery())).scalar_one()
        )


def _select_prunable(before_us: int) -> Select[tuple[int]]:
    is_open = select(_outbox.number).where(_outbox.state.in_(_OPEN))
    later = tables.alert_history.alias("later")
    is_end = (later.c.key == _history.key) & (later.c.event == Event.RESOLVED.value)
    has_ended = select(later.c.number).where(is_end, later.c.number >= _history.number).exists()
    lasts = select(_incidents.key).where(_incidents.key == _history.key).exists() & ~has_ended
    return select(_history.number).where(_history.at_us < before_us, _history.number.not_in(is_open), ~lasts)


def _prune_history(connection: Connection, before_us: int) -> int:
    numbers = (
        connection.execute(_select_prunable(before_us).order_by(_history.number).limit(ROWS_PER_STEP)).scalars().all()
    )
    if numbers:
        connection.execute(delete(tables.alert_outbox).where(_outbox.number.in_(numbers)))
        connection.execute(delete(tables.alert_history).where(_history.number.in_(numbers)))
    return len(numbers)


def _prune_windows(connection: Connection, before_us: int) -> int:
    """Delete the oldest window counts of the first stream that has some, by the primary key."""
    oldest = select(_minutes.stream, _minutes.objective, _minutes.window_start_us)
    first = connection.execute(oldest.where(_minutes.window_start_us < before_us).limit(1)).first()
    if first is None:
        return 0
    until_us = min(before_us, first.window_start_us + WINDOW_ROWS_PER_STEP * WINDOW_US)
    of_objective = (_minutes.stream == first.stream) & (_minutes.objective == first.objective)
    return connection.execute(
        delete(tables.objective_minutes).where(of_objective, _minutes.window_start_us < until_us)
    ).rowcount
