"""Tests of a SQL table in a real PostgreSQL, to which transactions write that stay open for longer than the grace."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from hopwatch.probes.tables.sources import GrowingRows
from hopwatch.testing import EPOCH_US
from servers.postgres import Postgres
from tests.probes.tables.sql_database import ORDERS, Database


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    return postgres.database()


def begin(url: str, *statements: str) -> Connection:
    """Return a session of its own that has an open transaction, in which statements were run."""
    session = create_engine(url).connect()
    for statement in statements:
        session.execute(text(statement))
    return session


def order(number: int, table: str = "orders") -> str:
    """Return the statement that writes a row."""
    return f"INSERT INTO {table} (n, id, at) VALUES ({number}, {number}, {EPOCH_US + number})"  # noqa: S608 - names of this test


def test_a_transaction_that_outlives_the_grace_is_waited_for(tmp_path: Path, url: str) -> None:
    """Nothing behind the number that it took is read, nor complete, until it ends; then all rows count once."""
    database = Database(tmp_path, url)
    late = begin(url, order(2))
    database.write(1, 3)
    assert [*database.look(), *database.look(30), *database.look(600)] == []
    assert database.caught_up_us == 0
    told = f"a transaction that writes to {database.tap._table.name} is open for more than 30 s"
    assert database.place.heard == [f"{told}: it is read no further until that has ended"]
    late.commit()
    assert database.look(1) == [1, 2, 3]
    database.write(4)
    assert [*database.look(1), *database.look(30)] == [4]
    assert database.look(1) == []
    assert database.caught_up_us == database.clock.us
    assert len(database.place.heard) == 1


def test_nothing_is_complete_while_the_next_row_is_on_its_way(tmp_path: Path, url: str) -> None:
    """All rows that can be seen were read, but one is written: the tap has read up to the look before it began."""
    database = Database(tmp_path, url)
    database.write(1)
    assert [*database.look(), *database.look(30), *database.look(1)] == [1]
    before_us = database.clock.us
    assert database.caught_up_us == before_us
    late = begin(url, order(2))
    assert [*database.look(20), *database.look(40), *database.look(60)] == []
    assert database.caught_up_us == before_us
    late.commit()
    assert database.look(1) == []
    assert database.caught_up_us == before_us
    after_us = database.clock.us
    assert database.look(30) == [2]
    assert database.caught_up_us == after_us


def test_who_writes_elsewhere_is_not_waited_for(tmp_path: Path, url: str, postgres: Postgres) -> None:
    """A long transaction of another table, one that only reads, and one of another database hold nothing up."""
    database = Database(tmp_path, url)
    database.write(1)
    elsewhere = begin(postgres.database(), "CREATE TABLE orders (n int)", "INSERT INTO orders VALUES (1)")
    other = begin(url, "CREATE TABLE other (n int)", "INSERT INTO other VALUES (1)", "SELECT * FROM orders")
    assert [*database.look(), *database.look(30)] == [1]
    for session in (elsewhere, other):
        session.rollback()


def test_a_prepared_transaction_is_waited_for(tmp_path: Path, url: str) -> None:
    """The session is gone, and the name is another one, but the number is the same."""
    database = Database(tmp_path, url)
    late = begin(url, order(2))
    database.write(1, 3)
    assert database.look() == []
    late.execute(text("PREPARE TRANSACTION 'two'"))
    late.close()
    assert database.look(60) == []
    with create_engine(url).connect().execution_options(isolation_level="AUTOCOMMIT") as session:
        session.execute(text("COMMIT PREPARED 'two'"))
    assert database.look(1) == [1, 2, 3]


SEEN = GrowingRows("seen", "n", 30)
COLUMNS = "n int, id int, at bigint"
ELSEWHERE = {
    "a view": ("CREATE VIEW seen AS SELECT n, id, at FROM orders", "orders"),
    "partitions": (
        f"CREATE TABLE seen ({COLUMNS}) PARTITION BY RANGE (n); CREATE TABLE part PARTITION OF seen DEFAULT",
        "part",
    ),
    "children": (f"CREATE TABLE seen ({COLUMNS}); CREATE TABLE child () INHERITS (seen)", "child"),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_rows_of_other_tables_are_waited_for(tmp_path: Path, url: str, kind: str) -> None:
    """Those of a view, of partitions and of tables that inherit are written to tables of other names."""
    made, written = ELSEWHERE[kind]
    with create_engine(url).begin() as session:
        ORDERS.metadata.create_all(session)
        session.execute(text(made))
    database = Database(tmp_path, url, SEEN)
    late = begin(url, order(2, written))
    begin(url, order(1, written), order(3, written)).commit()
    assert [*database.look(), *database.look(60)] == []
    late.commit()
    assert database.look(1) == [1, 2, 3]


def test_a_name_may_need_quotes(tmp_path: Path, url: str) -> None:
    """A table in a schema, with capitals and a blank, is waited for by its own name."""
    with create_engine(url).begin() as session:
        session.execute(text(f'CREATE SCHEMA "Shop"; CREATE TABLE "Shop"."All orders" ({COLUMNS})'))
    database = Database(tmp_path, url, GrowingRows("Shop.All orders", "n", 30))
    late = begin(url, order(2, '"Shop"."All orders"'))
    begin(url, order(3, '"Shop"."All orders"')).commit()
    assert [*database.look(), *database.look(60)] == []
    late.commit()
    assert database.look(1) == [2, 3]


def test_a_moment_may_be_that_at_which_a_transaction_began(tmp_path: Path, url: str) -> None:
    """One that writes to another table first has rows later on whose moment is before those that are there."""
    with create_engine(url).begin() as session:
        ORDERS.metadata.create_all(session)
        session.execute(text("ALTER TABLE orders ALTER made SET DEFAULT now()"))
    database = Database(tmp_path, url, GrowingRows("orders", "made", 30))
    late = begin(url, "CREATE TABLE other (n int)", "INSERT INTO other VALUES (1)")
    database.write(1)
    assert [*database.look(), *database.look(60)] == []
    late.execute(text(order(2)))
    late.commit()
    assert database.look(1) == [2, 1]
