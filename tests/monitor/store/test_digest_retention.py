"""Tests of digests that are dropped: of old hours alone, once nothing of them can change, and nothing else goes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from sqlalchemy import Engine, func, select, update

from bench import windows
from bench.month import concluded
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.store import digest_retention, fencing, reader, rollups, schema, tables, writer
from hopwatch.monitor.store.completeness_curve import read_arrivals
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import dump_tables, write_conclusions

HOURS: Final = 4
NODES: Final = ("a", "b", "c")
RULES: Final = windows.rules_of({"orders": NODES, "trades": NODES})
START_US: Final = windows.START_US


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """Return the engine of a store with four hours of two streams, rolled up, and judged for good."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, RULES)
    starts_us = [START_US + number * 10 * WINDOW_US for number in range(HOURS * 6)]
    dice = np.random.default_rng(7)
    pool = [tdigest.build(dice.integers(0, 10_000_000, size=20)) for _ in range(9)]
    for stream in RULES:
        made = [concluded(stream, NODES, start_us, RULES[stream], pool, dice) for start_us in starts_us]
        write_conclusions(engine, *made)
        with engine.execution_options(writes=True).begin() as connection:
            writer.drop_tallies(connection, [(stream, start_us) for start_us in starts_us])
            for hour in range(HOURS):
                rollups.roll_up_hour(connection, stream, START_US + hour * HOUR_US)
    return engine


def drop(engine: Engine, hours: float, most: int = 100) -> int:
    """Drop the digests of the hours that end by so many hours from the start."""
    with engine.execution_options(writes=True).begin() as connection:
        return digest_retention.drop_digests(connection, START_US + int(hours * HOUR_US), most)


def have_digests(engine: Engine, stream: str = "orders") -> list[int]:
    """Return the hours of which each minute has all digests; no hour has them in part."""
    column = tables.node_windows.c
    hour = (column.window_start_us - START_US) // HOUR_US
    sizes = (func.sum(func.length(column[f"{name}_digest"])) for name in tables.NODE_LAGS)
    with engine.connect() as connection:
        found = connection.execute(
            select(hour.label("hour"), *sizes).where(column.stream == stream).group_by("hour").order_by("hour")
        ).all()
    assert all(all(of_hour) or not any(of_hour) for _, *of_hour in found)
    return [at for at, *of_hour in found if any(of_hour)]


def strip_digests(dump: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables without digests, and without the mark of frozen hours."""
    for table in (tables.node_windows, tables.windows, tables.rollups):
        names = [column.name for column in table.c]
        kept = [at for at, name in enumerate(names) if "digest" not in name and name != "is_frozen"]
        if table is tables.rollups:
            kept = [at for at, name in enumerate(names) if name != "is_frozen"]
        dump[table.name] = [tuple(row[at] for at in kept) for row in dump[table.name]]
    return dump


def test_the_minutes_of_old_hours_lose_their_digests(engine: Engine) -> None:
    """An hour is old when it has ended by the time that is given; all figures, hours and days stay as they are."""
    before = strip_digests(dump_tables(engine))
    assert drop(engine, 2.9) == 4
    assert have_digests(engine) == have_digests(engine, "trades") == [2, 3]
    assert strip_digests(dump_tables(engine)) == before
    assert drop(engine, 2.9) == 0
    with schema.open_snapshot(engine) as connection:
        assert [len(part.lags) for part in reader.read_parts(connection, "orders", START_US, START_US + HOUR_US)]
        assert {
            lags.lag_out_us.count
            for part in reader.read_parts(connection, "orders", START_US, START_US + HOUR_US)
            for lags in part.lags
        } == {0}


def test_the_oldest_hours_go_first_and_some_at_once(engine: Engine) -> None:
    """A store of a year has thousands of them, and a micro-batch no time for all."""
    assert drop(engine, HOURS, 3) == 3
    assert (have_digests(engine), have_digests(engine, "trades")) == ([2, 3], [1, 2, 3])
    assert drop(engine, HOURS, 3) == 3
    assert drop(engine, HOURS, 3) == 2
    assert have_digests(engine) == []


def test_an_hour_that_may_change_keeps_its_digests(engine: Engine) -> None:
    """One window that is live, or an hour that has to be rolled up again; they hold up no other hour."""
    column = tables.windows.c
    with engine.execution_options(writes=True).begin() as connection:
        live = (column.stream == "orders") & (column.window_start_us == START_US + 10 * WINDOW_US)
        connection.execute(update(tables.windows).where(live).values(is_live=True))
        rollups.mark_stale(connection, [("orders", START_US + HOUR_US)])
    assert drop(engine, HOURS, 1) == 1
    assert drop(engine, HOURS) == 5
    assert have_digests(engine) == [0, 1]
    assert have_digests(engine, "trades") == []


def test_an_hour_without_digests_is_not_built_again(engine: Engine) -> None:
    """A mark of it is taken away, and its figures stay."""
    drop(engine, HOURS)
    with schema.open_snapshot(engine) as connection:
        before = (
            rollups.read_hours(connection, "orders", None, None),
            rollups.read_days(connection, "orders", None, None),
        )
    with engine.execution_options(writes=True).begin() as connection:
        rollups.mark_stale(connection, [("orders", START_US)])
        assert rollups.read_live_hours(connection, "orders") == []
        rollups.roll_up_hour(connection, "orders", START_US)
    with schema.open_snapshot(engine) as connection:
        after = (
            rollups.read_hours(connection, "orders", None, None),
            rollups.read_days(connection, "orders", None, None),
        )
    assert after == before


def test_the_completeness_curve_is_of_windows_with_digests(engine: Engine) -> None:
    """Of the others it is not known when their messages came."""

    def read_hours() -> set[int]:
        with schema.open_snapshot(engine) as connection:
            found = list(read_arrivals(connection, "orders", START_US, START_US + HOURS * HOUR_US, 0))
        return {(one.start_us - START_US) // HOUR_US for one in found}

    before = read_hours()
    assert before == {0, 1, 2, 3}
    drop(engine, 2)
    assert read_hours() == {2, 3}
