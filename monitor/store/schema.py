"""Schema version of a store: create its tables, migrate them, and refuse a version that does not fit.

Versions are numbers that count up, as text of four digits: so a program can tell an older store from a newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, create_mock_engine, insert, make_url, select

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store import dialect, tables
from hopwatch.monitor.store.tables import SCHEMA_VERSION

version_table: Final = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's own table: one row, the version that the store has."""
_VERSION: Final = select(version_table.c.version_num)

_KNOWN: Final = "hopwatch.is_store"
"""Mark of a connection to a database that was seen to be a store."""
_SCRIPTS: Final = "hopwatch.monitor.store:migrations"


def prepare_store(engine: Engine) -> None:
    """Create the tables of an empty database, at the newest version.

    Raises:
        StoreError: the database holds other tables, or a store of another version.
    """
    with suppress(OSError):  # the database says it better
        dialect.prepare_location(engine.url)
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        if dialect.is_empty(connection):
            for statement in _compile_tables(connection.engine.url.drivername):
                connection.exec_driver_sql(statement)
            connection.execute(insert(version_table).values(version_num=SCHEMA_VERSION))
        check_version(connection)


@cache
def _compile_tables(driver_name: str) -> tuple[str, ...]:
    """Return the statements that create all tables; in SQLite it takes longer to compile than to run them."""
    statements: list[str] = []
    url = make_url(f"{driver_name}://")
    spoken = url.get_dialect()()
    recorder = create_mock_engine(url, lambda clause, *_, **__: statements.append(str(clause.compile(dialect=spoken))))
    for metadata in (tables.metadata, version_table.metadata):
        metadata.create_all(recorder, checkfirst=False)
    return tuple(statements)


def migrate_store(engine: Engine) -> tuple[str, str]:
    """Migrate the store to the newest version in one transaction; return the old and the new version.

    Raises:
        StoreError: there are others' tables, or of a newer version than this program knows.
    """
    with suppress(OSError):  # the database says it better
        dialect.prepare_location(engine.url)
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        found = "" if dialect.is_empty(connection) else _read_version(connection)
        if found > SCHEMA_VERSION or not (found.isdigit() or not found):
            raise _unknown_version_error(connection, found)
        if found != SCHEMA_VERSION:
            _upgrade(connection)
        return found, SCHEMA_VERSION


def has_store(url: str) -> bool:
    """Return whether the store exists; nothing is created by this check.

    Raises:
        StoreError: the database cannot be opened.
    """
    file = dialect.database_file(url)
    if file is not None and not file.exists():
        return False
    engine = dialect.create_engine(url)
    try:
        with dialect.translate_errors(url), engine.begin() as connection:
            return not dialect.is_empty(connection)
    finally:
        engine.dispose()


def require_store(url: str) -> None:
    """Check that the store exists.

    Raises:
        StoreError: there is none yet, or the database cannot be opened.
    """
    if not has_store(url):
        raise _missing_error(dialect.redact_url(url))


@contextmanager
def open_snapshot(engine: Engine) -> Iterator[Connection]:
    """Open a read transaction: all queries see the same snapshot of the store.

    Raises:
        StoreError: the store cannot be read, or is of a version that this program does not know.
    """
    with dialect.translate_errors(engine.url), engine.begin() as connection:
        # To look for tables takes PostgreSQL as long as most questions: once a connection, and then the version alone.
        if not connection.info.get(_KNOWN) or connection.execute(_VERSION).scalar() != SCHEMA_VERSION:
            check_version(connection)
            connection.info[_KNOWN] = True
        yield connection


@contextmanager
def open_change(engine: Engine) -> Iterator[Connection]:
    """Open a write transaction of a store of this program's version; it is committed at the end.

    Raises:
        StoreError: the store cannot be written, or is of a version that this program does not know.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        check_version(connection)
        yield connection


def check_version(connection: Connection) -> None:
    """Check that the store has the schema version of this program.

    Raises:
        StoreError: it has another version, or no tables; the message says what to do.
    """
    if dialect.is_empty(connection):
        raise _missing_error(_store_name(connection))
    found = _read_version(connection)
    if found == SCHEMA_VERSION:
        return
    if found.isdigit() and found < SCHEMA_VERSION:
        what = f"the store {_store_name(connection)} has schema version {found}, this program needs {SCHEMA_VERSION}"
        raise StoreError(f"{what}: stop the monitor and run hopwatch store migrate")
    raise _unknown_version_error(connection, found)


def _read_version(connection: Connection) -> str:
    found = None
    if dialect.has_table(connection, version_table) and dialect.has_table(connection, tables.meta):
        found = connection.execute(_VERSION).scalar()
    if found is None:
        what = f"the database {_store_name(connection)} holds other tables than a store's"
        raise StoreError(f"{what}: name another store in [store] url")
    return str(found)


def _missing_error(name: str) -> StoreError:
    return StoreError(f"there is no store at {name} yet: start the monitor with hopwatch run, it makes one")


def _unknown_version_error(connection: Connection, found: str) -> StoreError:
    what = f"the store {_store_name(connection)} has schema version {found}, "
    what += f"this program knows none above {SCHEMA_VERSION}"
    return StoreError(f"{what}: use the newer program that wrote it, or name another store in [store] url")


def _store_name(connection: Connection) -> str:
    return dialect.redact_url(connection.engine.url)


def _upgrade(connection: Connection) -> None:
    # Alembic is slow to import, and of use here alone.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", _SCRIPTS)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
