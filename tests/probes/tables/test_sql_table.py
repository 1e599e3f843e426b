"""Tests of a SQL table whose rows are read by a column that grows."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import (
    delete,
    insert,
)

from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.snapshots import SnapshotPlace
from hopwatch.probes.tables.sources import GrowingRows, open_table
from hopwatch.probes.tables.sql_table import SqlTable
from hopwatch.probes.tables.tap import TableTap
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.values import IdFormat
from hopwatch.testing import EPOCH_US, ManualClock
from tests.probes.tables.kept_table import Killed
from tests.probes.tables.sql_database import ORDERS, Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Return an empty table, and its tap."""
    return Database(tmp_path)


def test_rows_are_read_once_their_transactions_must_have_ended(database: Database) -> None:
    """Up to the greatest value of half a minute ago: a smaller one that was committed meanwhile is not missed."""
    database.write(1, 3)
    first_us = database.clock.us
    assert database.look() == []
    assert database.caught_up_us == 0
    database.write(2, 5)
    assert database.look(20) == []
    assert database.look(10) == [1, 2, 3]
    assert database.caught_up_us == first_us
    assert database.look(20) == [5]
    assert database.look(1) == []
    assert database.caught_up_us == database.clock.us


def test_a_kill_while_rows_are_sent_sends_the_same_again(database: Database) -> None:
    """The value that they go up to is kept before: rows that came meanwhile are of the next look."""
    database.write(1, 2)
    database.look()
    database.sink.left = 1
    with pytest.raises(Killed):
        database.look(30)
    database.write(3)
    database.sink.left = 9
    database.clock.advance(100)
    database.start()
    assert database.look() == [1, 2]
    assert database.caught_up_us == 0
    counted = {(batch.probe, batch.epoch_us, batch.seq) for batch in database.batches()}
    assert [seq for _, _, seq in sorted(counted)] == [0, 1, 2]
    assert database.batches()[-1].kind is BatchKind.BYE
    assert [*database.look(), *database.look(30)] == [3]


def test_values_that_begin_anew_are_a_gap_and_read(database: Database) -> None:
    """After TRUNCATE with RESTART IDENTITY rows have smaller values: all of them are read, even after a kill."""
    database.write(8, 9)
    database.look()
    assert database.look(30) == [8, 9]
    with database.engine.begin() as connection:
        connection.execute(delete(ORDERS))
    database.write(1, 2)
    assert database.look(1) == []
    database.sink.left = 2
    with pytest.raises(Killed):
        database.look(30)
    database.sink.left = 9
    database.start()
    before = len(database.batches())
    assert database.look() == [1, 2]
    (heard,) = database.place.heard
    assert heard.endswith("between 9 and 2 are kept no more: what they brought is unknown")
    assert len({batch.probe for batch in database.batches()[before:]}) == 2
    database.write(3)
    assert [*database.look(1), *database.look(30)] == [3]


def test_a_tap_may_begin_behind_the_rows_that_are_there(database: Database) -> None:
    """Without a state it begins behind the greatest value."""
    table = open_table(f"sql:{database.url}", database.clock, GrowingRows("orders", "n", 30))
    assert table.find_last() is None
    database.write(7)
    assert table.find_last() == SnapshotPlace("7", database.clock.us)


def test_columns_have_the_types_of_databases(database: Database) -> None:
    """Numbers without a fraction are integers, moments with a zone are moments, and those without need one."""
    made = datetime(2026, 11, 25, 10, tzinfo=UTC)
    with database.engine.begin() as connection:
        connection.execute(insert(ORDERS).values(n=1, price=Decimal(17), made=made.replace(tzinfo=None), share=0.5))
    table = SqlTable(database.url, "orders", "n", 0, database.clock)
    (batch,) = table.read_rows("[null, 1]", ["price", "made", "share", "text"])
    assert batch.to_pylist() == [{"price": 17, "made": made.replace(tzinfo=None), "share": 0.5, "text": None}]
    tap = TableTap(
        table, RowMapping("price", "made", IdFormat.INT), StampSide.IN, database.place.probe,
        BlockingSink(database.sink, database.place.around), database.place.around,
    )  # fmt: skip
    tap.start(from_start=True)
    with pytest.raises(MappingError, match=r"the times in made have no zone, such as .*: say it with --zone"):
        tap.step()


@pytest.mark.parametrize(("column", "value"), [("made", datetime(2026, 1, 1)), ("text", "b"), ("price", Decimal(4))])  # noqa: DTZ001 - as databases have it
def test_a_column_may_grow_in_other_ways(database: Database, column: str, value: object) -> None:
    """Moments, texts and decimals without a fraction grow, too; their rows are found again by them."""
    with database.engine.begin() as connection:
        connection.execute(insert(ORDERS).values({"n": 1, "at": EPOCH_US, column: value}))
    table = SqlTable(database.url, "orders", column, 0, database.clock)
    (snapshot,) = table.find_new(None).snapshots
    assert [batch.num_rows for batch in table.read_rows(snapshot.added[0], ["n", "at"])] == [1]
    again = table.find_new(None, snapshot.place)
    assert again.snapshots == [snapshot]
    assert again.read_through_us == 0
    assert table.find_new(snapshot.place).snapshots == ()


def test_a_column_of_another_kind_does_not_grow(database: Database) -> None:
    """Fractions are not the same again when they are written down."""
    with database.engine.begin() as connection:
        connection.execute(insert(ORDERS).values(n=1, share=0.5))
    table = SqlTable(database.url, "orders", "share", 0, database.clock)
    with pytest.raises(TapUsageError, match="a column that grows has integers, texts or moments, got float: name ano"):
        table.find_last()


@pytest.mark.parametrize(
    ("address", "rows", "told"),
    [
        ("sql:{}", GrowingRows("orders", "m"), "orders at .* has no column 'm': name one of n, id, .* with --grows"),
        ("sql:{}", GrowingRows("others", "n"), "there is no table 'others' at .*: name another with --table"),
        ("sql:{}", GrowingRows("orders"), "is named with --table, and the column that grows with --grows"),
        ("sql:nothing", GrowingRows("orders", "n"), "a SQL database is sql:URL as SQLAlchemy has it, got 'nothing'"),
        ("sqlite:///x", GrowingRows("orders"), "got one at 'sqlite': put sql: before the URL of a database"),
        ("delta:/x", GrowingRows("orders"), "--table and --grows are for a table at sql:, got one at 'delta'"),
        (
            "hudi:/x",
            GrowingRows(),
            "a table is delta:PATH, iceberg:CATALOG/NAMESPACE.TABLE, parquet:DIR or sql:URL, got 'hudi",
        ),
        ("iceberg:shop", GrowingRows(), "an Iceberg table is iceberg:CATALOG/NAMESPACE.TABLE, got 'iceberg:shop'"),
    ],
)
def test_a_table_that_cannot_be_is_a_mistake(database: Database, address: str, rows: GrowingRows, told: str) -> None:
    """The error tells which part of it is wrong."""
    with pytest.raises(TapUsageError, match=told):
        open_table(address.format(database.url), database.clock, rows)


@pytest.mark.parametrize("address", ["delta:{}/nothing", "iceberg:nowhere/shop.orders", "sql:sqlite:////nowhere/x.db"])
def test_a_table_that_is_not_there_is_told(tmp_path: Path, address: str) -> None:
    """In one line, by what its library says; without the address of a database, which may hold a password."""
    rows = GrowingRows("orders", "n") if address.startswith("sql") else GrowingRows()
    shown = "sql:" if address.startswith("sql") else address.format(tmp_path)
    with pytest.raises(TapSourceError, match=f"^the table {shown} cannot be read: .+$"):
        open_table(address.format(tmp_path), ManualClock(), rows)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """SQLite itself would make an empty database of a path that is mistyped."""
    told = f"the table sql: cannot be read: there is no file '{tmp_path}/typo.db': name that of a database"
    with pytest.raises(TapSourceError, match=f"^{re.escape(told)}$"):
        open_table(f"sql:sqlite:///{tmp_path}/typo.db", ManualClock(), GrowingRows("orders", "n"))
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.delitem(sys.modules, "hopwatch.probes.tables.delta_table", raising=False)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    told = r"a table at delta: needs deltalake, which is not installed: pip install 'hopwatch\[tables\]'"
    with pytest.raises(TapUsageError, match=told):
        open_table("delta:/x", ManualClock())
    monkeypatch.setitem(sys.modules, "MySQLdb", None)
    told = "a table at sql: needs MySQLdb, which is not installed: install the driver that its URL names"
    with pytest.raises(TapUsageError, match=told):
        open_table("sql:mysql://u@h/x", ManualClock(), GrowingRows("orders", "seq"))
