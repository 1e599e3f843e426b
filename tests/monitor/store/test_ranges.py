"""Tests of ranges: what is read in pieces is what all of its windows say, and what was read is not read again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, update

from bench import windows
from bench.month import concluded
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.rollup import roll_up
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.results import CountsRollUp, RollUp, Status
from hopwatch.monitor.store import (
    dialect,
    digest_retention,
    fencing,
    pathway_versions,
    ranges,
    reader,
    rollups,
    schema,
    tables,
    writer,
)
from hopwatch.monitor.store.range_cache import MAX_PIECES
from hopwatch.monitor.store.range_plan import Ranges, plan_range
from hopwatch.monitor.store.ranges import RangeQuery, RangeResult
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.postgres import DATABASES

START_US = windows.START_US
PATHS = {"orders": ("a", "b", "c")}
RULES = windows.rules_of(PATHS)
ROLLED, HOURS = 26, 29
"""Hours that are rolled up, of so many in all, an hour in three empty: a day is whole, and the last hours are live."""


def everything(whole: RollUp | None) -> set[str]:
    """Choose all nodes."""
    del whole
    return set(PATHS["orders"])


def made(start_us: int, dice: np.random.Generator, pool: list[tdigest.Digest], **fields: object) -> Conclusion:
    """Return a window with digests of its own."""
    one = concluded("orders", PATHS["orders"], start_us, RULES["orders"], pool, dice)
    return one._replace(result=replace(one.result, **fields))  # type: ignore[arg-type]  # the fields of a window


def write(engine: Engine, conclusions: list[Conclusion]) -> None:
    """Write windows as a micro-batch does."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_conclusions(connection, conclusions, START_US)


def build_dice() -> np.random.Generator:
    """Return chance that is the same each time."""
    return np.random.default_rng(7)


def build_pool(dice: np.random.Generator) -> list[tdigest.Digest]:
    """Return digests of few values, which merge exactly however they are parted."""
    return [tdigest.build(dice.integers(0, 100, size=20)) for _ in range(9)]


@pytest.fixture
def dice() -> np.random.Generator:
    """Return chance that is the same each time."""
    return build_dice()


@pytest.fixture
def pool(dice: np.random.Generator) -> list[tdigest.Digest]:
    """Return digests of few values."""
    return build_pool(dice)


@pytest.fixture(scope="module", params=DATABASES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Yield a store with a window every seven minutes, most of its hours rolled up; the tests of this file read it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('filled')}/store.db"
    else:
        url = request.getfixturevalue("postgres_server").database()
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    fill(engine, dice := build_dice(), build_pool(dice))
    yield engine
    engine.dispose()


@pytest.fixture
def own(filled: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Yield a copy of the filled store, for a test that writes."""
    filled.dispose()
    name = str(filled.url.database)
    if filled.dialect.name == "sqlite":
        url = f"sqlite:///{shutil.copy(name, tmp_path)}"
    else:
        url = request.getfixturevalue("postgres_server").database(f'TEMPLATE "{name}"')
    engine = dialect.create_engine(url)
    yield engine
    engine.dispose()


def fill(engine: Engine, dice: np.random.Generator, pool: list[tdigest.Digest]) -> None:
    """Write a window every seven minutes, and roll up most of their hours."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, RULES)
    starts_us = [START_US + number * WINDOW_US for number in range(0, HOURS * 60, 7) if number // 60 % 3 != 1]
    all_made = [made(start_us, dice, pool) for start_us in starts_us]
    pending = {"status": Status.PROVISIONAL, "verdict": None}
    all_made[-1] = all_made[-1]._replace(result=replace(all_made[-1].result, **pending))  # type: ignore[arg-type]  # as above
    write(engine, all_made)
    with engine.execution_options(writes=True).begin() as connection:
        for hour in range(ROLLED):
            rollups.roll_up_hour(connection, "orders", START_US + hour * HOUR_US)


def read(engine: Engine, where: RangeQuery, kept: Memo | None = None) -> RangeResult:
    """Return a range with all nodes."""
    with schema.open_snapshot(engine) as connection:
        return ranges.read_range(connection, where, everything, kept or Memo(MAX_PIECES))


def the_slow_way(engine: Engine, from_us: int, to_us: int) -> RollUp | None:
    """Return the whole of a range of all of its windows, one by one."""
    with schema.open_snapshot(engine) as connection:
        config = pathway_versions.read_stream(connection, "orders")
        parts = reader.read_parts(connection, "orders", from_us, to_us)
    assert config is not None
    return roll_up(config.describe_span(from_us, to_us), "orders", from_us, parts).figures if parts else None


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 60), (13, 47), (59, 121), (60, 120), (100, 500), (0, 1440), (17, 1500), (1500, 1740), (1700, 1800), (0, 1740)],
)
def test_a_range_of_minutes_is_what_its_windows_say(filled: Engine, first: int, last: int) -> None:
    """A range has the same counts and percentiles as its windows, whatever part comes from days and hours."""
    where = RangeQuery("orders", START_US + first * WINDOW_US, START_US + last * WINDOW_US, WINDOW_US)
    found = read(filled, where)
    assert found.whole == the_slow_way(filled, where.from_us, where.to_us)
    with schema.open_snapshot(filled) as connection:
        assert list(found.steps) == reader.read_windows(connection, "orders", where.from_us, where.to_us)


@pytest.mark.parametrize("step_us", [HOUR_US, DAY_US])
def test_hours_and_days_are_those_of_the_report(filled: Engine, step_us: int) -> None:
    """Those that are rolled up and those that are not yet; the whole is what they are made of."""
    where = RangeQuery("orders", START_US, START_US + 2 * DAY_US, step_us)
    found = read(filled, where)
    spans = {HOUR_US: rollups.read_hours, DAY_US: rollups.read_days}[step_us]
    with schema.open_snapshot(filled) as connection:
        assert list(found.steps) == spans(connection, "orders", where.from_us, where.to_us)
    assert found.whole == the_slow_way(filled, where.from_us, where.to_us)


def test_steps_have_no_counts(own: Engine) -> None:
    """No page shows them of a range: neither those of hours that are rolled up nor of those that are not yet."""
    column = tables.rollups.c
    counts = json.dumps([asdict(CountsRollUp("n", 3, 3, 0, 0, "a", 5, None, 2, None, None, None, None))])
    with own.execution_options(writes=True).begin() as connection:
        connection.execute(update(tables.rollups).where(column.start_us == START_US).values(counts=counts))
    for step_us in (HOUR_US, DAY_US):
        found = read(own, RangeQuery("orders", START_US, START_US + 2 * DAY_US, step_us))
        assert {one.counts for one in found.steps if isinstance(one, RollUp)} == {()}


def test_steps_have_the_nodes_that_were_chosen(filled: Engine) -> None:
    """By the whole, which has all of them; and end to end they say the same."""
    for step_us in (WINDOW_US, HOUR_US, DAY_US):
        where = RangeQuery("orders", START_US, START_US + 2 * DAY_US, step_us)
        with schema.open_snapshot(filled) as connection:
            found = ranges.read_range(connection, where, lambda _: {"b"}, Memo(MAX_PIECES))
        assert {tuple(node.node for node in one.nodes) for one in found.steps} == {("b",)}
        assert [one.lag_us for one in found.steps] == [one.lag_us for one in read(filled, where).steps]
        assert found.whole is not None
        assert [node.node for node in found.whole.nodes] == ["a", "b", "c"]


def test_what_is_kept_is_given_up_when_a_window_is_amended(
    own: Engine, dice: np.random.Generator, pool: list[tdigest.Digest]
) -> None:
    """One that is live and one that was rolled up, at once and once it is rolled up again."""
    kept = Memo(MAX_PIECES)
    where = RangeQuery("orders", START_US, START_US + HOURS * HOUR_US, WINDOW_US)
    for minute in (27 * 60 + 6, 7):
        read(own, where, kept)
        start_us = START_US + minute * WINDOW_US
        write(own, [made(start_us, dice, pool, revision=1, status=Status.AMENDED)])
        assert read(own, where, kept).whole == the_slow_way(own, where.from_us, where.to_us)
    with own.execution_options(writes=True).begin() as connection:
        rollups.roll_up_hour(connection, "orders", START_US)
    assert read(own, where, kept).whole == the_slow_way(own, where.from_us, where.to_us)


@pytest.mark.parametrize("step_us", [WINDOW_US, HOUR_US, DAY_US])
def test_what_is_kept_is_given_up_when_only_a_node_says_something_else(
    own: Engine, dice: np.random.Generator, pool: list[tdigest.Digest], step_us: int
) -> None:
    """The figures of the stream are as before, and so is the number of its windows; what is read is that of a node."""
    kept = Memo(MAX_PIECES)
    where = RangeQuery("orders", START_US, START_US + 2 * DAY_US, step_us)
    before = read(own, where, kept)
    with schema.open_snapshot(own) as connection:
        (part,) = reader.read_parts(connection, "orders", START_US, START_US + WINDOW_US)
    first, second, third = part.figures.nodes
    repeated = replace(second, duplicates_in=second.duplicates_in + 5)
    amended = made(START_US, dice, pool, revision=1, status=Status.AMENDED)
    said = replace(part.figures, revision=1, status=Status.AMENDED, nodes=(first, repeated, third))
    write(own, [amended._replace(result=said, tally=replace(amended.tally, lags=part.lags))])
    with own.execution_options(writes=True).begin() as connection:
        rollups.roll_up_hour(connection, "orders", START_US)
    after = read(own, where, kept)
    assert after == read(own, where)
    assert before.whole is not None
    assert after.whole is not None
    assert after.whole.nodes[1].duplicates_in == before.whole.nodes[1].duplicates_in + 5
    assert replace(after.whole, nodes=()) == replace(before.whole, nodes=())


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """Yield the statements that reach the database meanwhile."""
    statements: list[str] = []

    def note(_: Connection, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


def test_no_digest_is_read_twice(filled: Engine) -> None:
    """Of what did not change only what says so is read again."""
    kept = Memo(MAX_PIECES)
    where = RangeQuery("orders", START_US, START_US + HOURS * HOUR_US, WINDOW_US)
    with counted(filled) as first:
        found = read(filled, where, kept)
    with counted(filled) as again:
        assert read(filled, where, kept) == found
    assert sum("digest" in statement for statement in first) == 2
    assert not any("digest" in statement for statement in again)


def test_so_many_pieces_are_kept_at_most(filled: Engine) -> None:
    """The one that was used longest ago goes."""
    kept = Memo(2)
    for minute in range(0, 60, 10):
        at_us = START_US + minute * WINDOW_US
        read(filled, RangeQuery("orders", at_us, at_us + 10 * WINDOW_US, WINDOW_US), kept)
    assert len(kept._slots) == 2


MOMENTS = st.integers(0, 5 * 24 * 60).map(lambda minute: minute * WINDOW_US)


@given(MOMENTS, MOMENTS, st.sampled_from([WINDOW_US, HOUR_US, DAY_US]), st.sets(st.integers(0, 120), max_size=9))
def test_a_plan_has_each_moment_once(first_us: int, last_us: int, step_us: int, hours: set[int]) -> None:
    """Windows, hours and days are the range; of an hour that is live nothing but windows is read."""
    from_us, to_us = sorted((first_us, last_us))
    live_us = {hour * HOUR_US for hour in hours}
    plan = plan_range(from_us, to_us, step_us, live_us)
    read_of = [*minutes(plan.windows), *minutes(plan.hours), *minutes(plan.days)]
    if step_us >= HOUR_US:
        from_us, to_us = (-(-at_us // HOUR_US) * HOUR_US for at_us in (from_us, to_us))
    assert sorted(read_of) == list(range(from_us, to_us, WINDOW_US))
    assert not {at_us // HOUR_US * HOUR_US for at_us in (*minutes(plan.hours), *minutes(plan.days))} & live_us


def minutes(of: Ranges) -> list[int]:
    """Return the minutes of ranges."""
    return [at_us for begin, end in of for at_us in range(begin, end, WINDOW_US)]


@pytest.fixture(params=[0, 5, 24])
def thinned(own: Engine, request: pytest.FixtureRequest) -> tuple[Engine, int]:
    """Return a store whose oldest hours have lost their digests, and where the first hour begins that has them."""
    until_us = START_US + int(request.param) * HOUR_US
    with own.execution_options(writes=True).begin() as connection:
        connection.execute(update(tables.windows).values(is_live=False))
        digest_retention.drop_digests(connection, until_us, HOURS)
    return own, until_us


def drop_lags(whole: RollUp) -> RollUp:
    """Return a range as it is when nothing is known of its lags."""
    nodes = tuple(
        replace(node, lag_in_us=None, lag_out_us=None, inside_us=None, process_duration_p95_us=None, displacement=None)
        for node in whole.nodes
    )
    return replace(whole, lag_us=None, nodes=nodes)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 60), (13, 47), (55, 190), (180, 240), (100, 500), (0, 1440), (17, 1500), (1500, 1740)]
)
def test_a_range_with_a_part_of_an_hour_without_digests_has_no_lag(
    filled: Engine, thinned: tuple[Engine, int], first: int, last: int
) -> None:
    """Counts and steps are as before, and so are the lags of a range that takes such hours whole."""
    engine, has_digests_us = thinned
    where = RangeQuery("orders", START_US + first * WINDOW_US, START_US + last * WINDOW_US, WINDOW_US)
    before, after = read(filled, where), read(engine, where)
    assert after.steps == before.steps
    parts = plan_range(where.from_us, where.to_us, WINDOW_US, ()).windows
    with schema.open_snapshot(engine) as connection:
        read_starts_us = [
            one.window_start_us
            for begin_us, end_us in parts
            for one in reader.read_windows(connection, "orders", begin_us, min(end_us, has_digests_us))
        ]
    assert before.whole is not None
    assert after.whole == (drop_lags(before.whole) if read_starts_us else before.whole)


def test_hours_and_days_keep_their_lags(filled: Engine, thinned: tuple[Engine, int]) -> None:
    """Each has digests of its own."""
    engine, _ = thinned
    for step_us in (HOUR_US, DAY_US):
        where = RangeQuery("orders", START_US, START_US + 2 * DAY_US, step_us)
        assert read(engine, where) == read(filled, where)


def test_what_was_read_before_digests_were_dropped_stays_known(own: Engine) -> None:
    """A sum that is kept in memory is as right as it was."""
    kept = Memo(MAX_PIECES)
    where = RangeQuery("orders", START_US, START_US + 50 * WINDOW_US, WINDOW_US)
    before = read(own, where, kept)
    with own.execution_options(writes=True).begin() as connection:
        connection.execute(update(tables.windows).values(is_live=False))
        digest_retention.drop_digests(connection, START_US + HOUR_US, HOURS)
    assert read(own, where, kept).whole == before.whole
    assert before.whole is not None
    assert read(own, where).whole == drop_lags(before.whole)
