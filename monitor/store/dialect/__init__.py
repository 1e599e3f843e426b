"""Database dialects, chosen by the URL of the store: engines, transactions, upserts, locks and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy
from sqlalchemy import URL, ColumnElement, Connection, Engine, Table
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import Insert

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store.dialect import postgres, sqlite
from hopwatch.monitor.store.dialect.lock import StoreLock

__all__ = [
    "StoreLock",
    "contains_bytes",
    "create_engine",
    "database_file",
    "has_table",
    "is_empty",
    "is_transient",
    "lock_store",
    "prepare_location",
    "redact_url",
    "translate_errors",
    "upsert",
    "upsert_rows",
]

_SHOWN_OPTIONS: Final = ("host", "port")
"""Query options of a URL that may be shown; others may hold a password."""


class _Dialect(Protocol):
    """Interface of a dialect module."""

    def create_engine(self, url: URL) -> Engine:
        """Return an engine whose transactions write with the execution option ``writes`` and read without it."""

    def insert(self, table: Table) -> sqlite.Upsert | postgres.Upsert:
        """Return an insert with support for ON CONFLICT."""

    def byte_position(self, part: bytes, column: ColumnElement[bytes]) -> ColumnElement[int]:
        """Return the position of some bytes in a column, counted from 1; 0 if it does not contain them."""

    def lock_store(self, url: URL, name: str) -> AbstractContextManager[StoreLock]:
        """Lock the store against a second monitor."""

    def is_dependency(self, error: DBAPIError) -> bool:
        """Return whether the database caused the error; otherwise it is a fault of Hopwatch."""

    def is_transient(self, error: DBAPIError) -> bool:
        """Return whether the same transaction may succeed on a retry."""

    def error_text(self, error: DBAPIError) -> str:
        """Return the message of the driver in one line."""

    def advice(self, error: DBAPIError) -> str:
        """Return advice about the error."""


_DIALECTS: Final[dict[str, _Dialect]] = {"sqlite": sqlite, "postgresql": postgres}


def create_engine(url: str) -> Engine:
    """Return an engine for ``url``; a transaction writes with the execution option ``writes`` and else only reads.

    One transaction writes at a time, others wait for it. One that reads sees the store as it was when it began.
    """
    made = make_url(url)
    return _dialect_of(made).create_engine(made)


def upsert(connection: Connection, table: Table) -> Insert:
    """Return an insert that overwrites the row of the same primary key."""
    return _build_upsert(connection.dialect.name, table)


@cache
def _build_upsert(dialect_name: str, table: Table) -> Insert:
    insert = _DIALECTS[dialect_name].insert(table)
    keys = [column.name for column in table.primary_key]
    values = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
    if not values:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=values)


def upsert_rows(connection: Connection, table: Table, rows: Sequence[Sequence[object]]) -> None:
    """Overwrite rows of a table, each with all values in the order of its columns; for thousands of rows.

    The driver gets them as they are: SQLAlchemy's own way costs more than the database's.
    """
    statement, names, processors = _compile_upsert(connection.dialect, table)
    if processors:
        rows = [
            [processors[place](value) if place in processors else value for place, value in enumerate(row)]
            for row in rows
        ]
    if connection.dialect.positional:
        connection.exec_driver_sql(statement, [tuple(row) for row in rows])
    else:
        connection.exec_driver_sql(statement, [dict(zip(names, row, strict=True)) for row in rows])


@lru_cache(maxsize=8)
def _compile_upsert(
    dialect: sqlalchemy.Dialect, table: Table
) -> tuple[str, list[str], dict[int, Callable[[Any], object]]]:
    """Return the statement, the names of its values, and what has to be done to those at some places."""
    columns = list(table.c)
    names = [column.name for column in columns]
    compiled = _build_upsert(dialect.name, table).compile(dialect=dialect, column_keys=names)
    found = ((place, column.type.bind_processor(dialect)) for place, column in enumerate(columns))
    return str(compiled), names, {place: processor for place, processor in found if processor is not None}


def contains_bytes(connection: Connection, column: ColumnElement[bytes], part: bytes) -> ColumnElement[bool]:
    """Return a condition: a column contains some bytes. The database searches, so that other rows are not sent."""
    return _DIALECTS[connection.dialect.name].byte_position(part, column) > 0


def database_file(url: str | URL) -> Path | None:
    """Return the file of a SQLite URL; None for a database in memory or on a server."""
    made = make_url(url)
    return sqlite.database_file(made) if made.get_backend_name() == "sqlite" else None


def prepare_location(url: str | URL) -> None:
    """Create the file of a SQLite database before it is opened, readable by its owner only.

    Raises:
        OSError: it cannot be made.
    """
    if (file := database_file(url)) is not None:
        sqlite.create_file(file)


def redact_url(url: str | URL) -> str:
    """Return the URL without its password and without query options that may be secret."""
    made = make_url(url)
    shown = {key: value for key, value in made.query.items() if key in _SHOWN_OPTIONS}
    return made.set(query=shown).render_as_string(hide_password=True)


@contextmanager
def lock_store(url: str) -> Iterator[StoreLock]:
    """Lock the store against a second monitor; the lock ends with the process, even after a crash.

    Raises:
        StoreTakenError: another monitor holds it.
        StoreError: the place cannot be written.
    """
    made = make_url(url)
    with _dialect_of(made).lock_store(made, redact_url(made)) as hold:
        yield hold


@contextmanager
def translate_errors(url: str | URL) -> Iterator[None]:
    """Translate errors of the driver into a StoreError of one line.

    Raises:
        StoreError: the database could not be opened, read or written.
    """
    made = make_url(url)
    try:
        yield
    except DBAPIError as error:
        dialect = _dialect_of(made)
        if not dialect.is_dependency(error):
            raise
        raise StoreError(
            f"the store {redact_url(made)} failed: {dialect.error_text(error)}; {dialect.advice(error)}"
        ) from error


def is_transient(url: str | URL, error: BaseException) -> bool:
    """Return whether the failed transaction may succeed on a retry."""
    return isinstance(error, DBAPIError) and _dialect_of(make_url(url)).is_transient(error)


def is_empty(connection: Connection) -> bool:
    """Return whether the database has no tables."""
    return not sqlalchemy.inspect(connection).get_table_names()


def has_table(connection: Connection, table: Table) -> bool:
    """Return whether the database has the table."""
    return sqlalchemy.inspect(connection).has_table(table.name)


def _dialect_of(url: URL) -> _Dialect:
    return _DIALECTS[url.get_backend_name()]
