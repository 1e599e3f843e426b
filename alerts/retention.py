"""What is old of alerts goes: what was told long ago, and minutes that no budget is summed from any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine, Select, delete, func, select

from hopwatch.alerts.events import Event
from hopwatch.alerts.outbox import Fate
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store import retention, schema, tables
from hopwatch.probes.contract.limits import WINDOW_US

ROWS_A_STEP: Final = 1_000
MINUTE_ROWS_A_STEP: Final = 10_000

_history, _outbox, _minutes = tables.alert_history.c, tables.alert_outbox.c, tables.objective_minutes.c
_incidents: Final = tables.alert_incidents.c
_OPEN: Final = (Fate.WAITING.value, Fate.STANDING.value)


def prune(engine: Engine, before_us: int, counts_before_us: int, clock: Clock) -> Iterator[int]:
    """Delete what was told before a moment, and minutes before another, some at a time; yields how many were told.

    What is yet to be sent, or sent again, stays; so does what was told of an incident that is open: it says who is to
    hear of its end.

    Raises:
        StoreError: the store fails; what was deleted before is deleted.
    """
    while gone := retention.run_and_rest(engine, clock, partial(_prune_told, before_us=before_us)):
        yield gone
    while retention.run_and_rest(engine, clock, partial(_prune_minutes, before_us=counts_before_us)):
        yield 0


def due(engine: Engine, before_us: int) -> int:
    """Return of how many notifications :func:`prune` would delete what was told; nothing is changed."""
    with schema.open_snapshot(engine) as connection:
        return int(connection.execute(select(func.count()).select_from(_told(before_us).subquery())).scalar_one())


def _told(before_us: int) -> Select[tuple[int]]:
    is_open = select(_outbox.number).where(_outbox.state.in_(_OPEN))
    later = tables.alert_history.alias("later")
    is_end = (later.c.key == _history.key) & (later.c.event == Event.RESOLVED.value)
    has_ended = select(later.c.number).where(is_end, later.c.number >= _history.number).exists()
    lasts = select(_incidents.key).where(_incidents.key == _history.key).exists() & ~has_ended
    return select(_history.number).where(_history.at_us < before_us, _history.number.not_in(is_open), ~lasts)


def _prune_told(connection: Connection, before_us: int) -> int:
    numbers = connection.execute(_told(before_us).order_by(_history.number).limit(ROWS_A_STEP)).scalars().all()
    if numbers:
        connection.execute(delete(tables.alert_outbox).where(_outbox.number.in_(numbers)))
        connection.execute(delete(tables.alert_history).where(_history.number.in_(numbers)))
    return len(numbers)


def _prune_minutes(connection: Connection, before_us: int) -> int:
    """Delete the oldest minutes of the first stream that has some, by the primary key."""
    oldest = select(_minutes.stream, _minutes.objective, _minutes.window_start_us)
    found = connection.execute(oldest.where(_minutes.window_start_us < before_us).limit(1)).first()
    if found is None:
        return 0
    until_us = min(before_us, found.window_start_us + MINUTE_ROWS_A_STEP * WINDOW_US)
    chosen = (_minutes.stream == found.stream) & (_minutes.objective == found.objective)
    return connection.execute(
        delete(tables.objective_minutes).where(chosen, _minutes.window_start_us < until_us)
    ).rowcount
