"""All that differs between databases, chosen by the store's URL: engines, transactions, upserts, locks, errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

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
]

_SHOWN_OPTIONS: Final = ("host", "port")
"""What of a URL's query may be shown; a password may stand there too."""


class _Dialect(Protocol):
    """What a module of this package has; each says more of its own."""

    def create_engine(self, url: URL) -> Engine:
        """Return an engine whose transactions write with the execution option ``writes`` and read without it."""

    def insert(self, table: Table) -> sqlite.Upsert | postgres.Upsert:
        """Return an insert that knows what to do on a conflict."""

    def byte_position(self, part: bytes, column: ColumnElement[bytes]) -> ColumnElement[int]:
        """Return where some bytes begin in those of a column, counted from 1; 0 where it does not hold them."""

    def lock_store(self, url: URL, name: str) -> AbstractContextManager[StoreLock]:
        """Hold the store against a second monitor."""

    def is_dependency(self, error: DBAPIError) -> bool:
        """Return whether the database is at fault; what is not is a fault of ours."""

    def is_transient(self, error: DBAPIError) -> bool:
        """Return whether the same transaction may succeed a little later."""

    def error_text(self, error: DBAPIError) -> str:
        """Return the driver's words in one line."""

    def advice(self, error: DBAPIError) -> str:
        """Return what to do about it."""


_DIALECTS: Final[dict[str, _Dialect]] = {"sqlite": sqlite, "postgresql": postgres}


def create_engine(url: str) -> Engine:
    """Return an engine for ``url``; a transaction writes with the execution option ``writes`` and else only reads.

    One transaction writes at a time, others wait for it. One that reads sees the store as it was when it began.
    """
    made = make_url(url)
    return _dialect_of(made).create_engine(made)


def upsert(connection: Connection, table: Table) -> Insert:
    """Return an insert that overwrites the row of the same primary key."""
    insert = _DIALECTS[connection.dialect.name].insert(table)
    keys = [column.name for column in table.primary_key]
    values = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
    if not values:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=values)


def contains_bytes(connection: Connection, column: ColumnElement[bytes], part: bytes) -> ColumnElement[bool]:
    """Return a condition: the bytes of a column hold these somewhere. The database looks, and sends no others."""
    return _DIALECTS[connection.dialect.name].byte_position(part, column) > 0


def database_file(url: str | URL) -> Path | None:
    """Return the file behind a SQLite URL, none for a database in memory or on a server."""
    made = make_url(url)
    return sqlite.database_file(made) if made.get_backend_name() == "sqlite" else None


def prepare_location(url: str | URL) -> None:
    """Make what a database needs before it is opened: of a file an empty one that nobody else may read.

    Raises:
        OSError: it cannot be made.
    """
    if (file := database_file(url)) is not None:
        sqlite.create_file(file)


def redact_url(url: str | URL) -> str:
    """Return the URL as it may be shown: without password, and without all that its query may hide."""
    made = make_url(url)
    shown = {key: value for key, value in made.query.items() if key in _SHOWN_OPTIONS}
    return made.set(query=shown).render_as_string(hide_password=True)


@contextmanager
def lock_store(url: str) -> Iterator[StoreLock]:
    """Hold the store against a second monitor; the lock dies with the process, however it dies.

    Raises:
        StoreTakenError: another monitor holds it.
        StoreError: the place cannot be written.
    """
    made = make_url(url)
    with _dialect_of(made).lock_store(made, redact_url(made)) as hold:
        yield hold


@contextmanager
def translate_errors(url: str | URL) -> Iterator[None]:
    """Turn the driver's errors into one line that says what and where.

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
    """Return whether a transaction that failed so may succeed a little later."""
    return isinstance(error, DBAPIError) and _dialect_of(make_url(url)).is_transient(error)


def is_empty(connection: Connection) -> bool:
    """Return whether no table was made yet."""
    return not sqlalchemy.inspect(connection).get_table_names()


def has_table(connection: Connection, table: Table) -> bool:
    """Return whether the table was made."""
    return sqlalchemy.inspect(connection).has_table(table.name)


def _dialect_of(url: URL) -> _Dialect:
    return _DIALECTS[url.get_backend_name()]
