"""Minutes of the self-test in the store: as they were injected, and the outcome of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, select, update

from hopwatch.monitor.selftest.comparison import ProblemKind, SelftestOutcome, SelftestProblem
from hopwatch.monitor.selftest.minute import InjectedMinute, format_minute, parse_minute
from hopwatch.monitor.selftest.summary import ProblemMinute, SelftestSummary
from hopwatch.monitor.store import schema, tables, writer

KEPT_US: Final = 7 * 86_400_000_000
"""How long minutes are kept."""
MAX_AGE_US: Final = 3_600_000_000
"""Age of a minute, by the watermark, up to which it is compared."""
MAX_PROBLEM_MINUTES: Final = 20
"""Minutes with problems that are listed, the newest ones."""
_SINCE: Final = "selftest_since"
_minutes = tables.selftest_minutes.c


def record_minute(engine: Engine, minute: InjectedMinute) -> None:
    """Store a minute that was injected, and delete those that are too old.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        connection.execute(delete(tables.selftest_minutes).where(_minutes.window_start_us == minute.start_us))
        row = {"window_start_us": minute.start_us, "injected": format_minute(minute), "is_exact": minute.is_exact}
        connection.execute(insert(tables.selftest_minutes).values(row))
        connection.execute(delete(tables.selftest_minutes).where(_minutes.window_start_us < minute.start_us - KEPT_US))


def record_start(engine: Engine, now_us: int) -> None:
    """Record that the monitor begins to inject; the bounds of minutes before may be open: their probes are gone.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        connection.execute(update(tables.selftest_minutes).where(_minutes.checked_us.is_(None)).values(is_exact=False))
        writer.set_values(connection, {_SINCE: str(now_us)})


def record_end(engine: Engine) -> None:
    """Record that the monitor does not inject.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        writer.delete_value(connection, _SINCE)


def read_start_us(connection: Connection) -> int | None:
    """Return when the monitor began to inject; None where it does not."""
    since = writer.read_value(connection, _SINCE)
    return None if since is None else int(since)


def read_unchecked(connection: Connection, before_us: int) -> list[InjectedMinute]:
    """Return the minutes that are not compared yet and start at a moment, or not long before it."""
    is_recent = _minutes.window_start_us.between(before_us - MAX_AGE_US, before_us)
    wanted = select(_minutes.injected, _minutes.is_exact).where(is_recent, _minutes.checked_us.is_(None))
    rows = connection.execute(wanted.order_by(_minutes.window_start_us))
    return [parse_minute(row.injected, is_exact=row.is_exact) for row in rows]


def write_outcome(connection: Connection, start_us: int, outcome: SelftestOutcome, checked_us: int) -> None:
    """Store the outcome of a minute."""
    problems = json.dumps([[problem.kind.value, problem.text] for problem in outcome.problems])
    row = {"lost": outcome.lost, "found": outcome.found, "false": outcome.false, "problems": problems}
    connection.execute(
        update(tables.selftest_minutes)
        .where(_minutes.window_start_us == start_us)
        .values(row | {"checked_us": checked_us, "is_failed": bool(outcome.problems)})
    )


def read_summary(connection: Connection, from_us: int) -> SelftestSummary:
    """Return the outcomes of the minutes that start at a moment or later."""
    is_checked = _minutes.checked_us.is_not(None), _minutes.window_start_us >= from_us
    sums = (func.coalesce(func.sum(_minutes[name]), 0) for name in ("lost", "found", "false"))
    minutes, lost, found, false = connection.execute(select(func.count(), *sums).where(*is_checked)).one()
    failed = select(func.count()).where(*is_checked, _minutes.is_failed)
    newest = select(_minutes.window_start_us).where(_minutes.checked_us.is_not(None))
    newest = newest.order_by(_minutes.window_start_us.desc()).limit(1)
    return SelftestSummary(
        int(minutes),
        int(connection.execute(failed).scalar_one()),
        int(lost),
        int(found),
        int(false),
        connection.execute(newest).scalar(),
        read_start_us(connection),
        _read_problems(connection, _minutes.window_start_us >= from_us, most=MAX_PROBLEM_MINUTES),
    )


def read_failures(connection: Connection, from_us: int, to_us: int) -> Sequence[ProblemMinute]:
    """Return the minutes that were compared in ``[from_us, to_us)`` and failed, the newest first."""
    when = (
        # By the primary key first: this is asked at each trigger.
        _minutes.window_start_us.between(from_us - MAX_AGE_US, to_us),
        _minutes.checked_us >= from_us,
        _minutes.checked_us < to_us,
    )
    return _read_problems(connection, *when)


def _read_problems(
    connection: Connection, *when: ColumnElement[bool], most: int | None = None
) -> tuple[ProblemMinute, ...]:
    wanted = select(_minutes.window_start_us, _minutes.problems).where(_minutes.is_failed, *when)
    rows = connection.execute(wanted.order_by(_minutes.window_start_us.desc()).limit(most))
    return tuple(
        ProblemMinute(start_us, tuple(SelftestProblem(ProblemKind(kind), told) for kind, told in json.loads(text)))
        for start_us, text in rows
    )
