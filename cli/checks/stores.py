"""Checks of the store: it can be opened and written, or created, and has the right schema version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import sqlalchemy
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.cli.checks.folders import TRIAL_PREFIX, check_space, find_nearest_folder, unwritable_finding
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.kernel.verdict import ID_TYPE_QUESTION
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, reader, schema
from hopwatch.monitor.store.rollups import HOUR_US

_LOCK_TIMEOUT_S: Final = 1
_IS_WRITTEN: Final = "NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'"
_MAY_CREATE: Final = f"SELECT {_IS_WRITTEN} AND has_schema_privilege(current_schema(), 'CREATE')"
_MAY_WRITE: Final = f"SELECT {_IS_WRITTEN} AND has_table_privilege('windows', 'INSERT')"


def check_store(url: str) -> Finding:
    """Check the store, a file or a server."""
    return _check_server(url) if dialect.database_file(url) is None else _check_file(url)


def check_ids(url: str, streams: Iterable[str]) -> Finding | None:
    """Check that all nodes use the same message ids, by the last judged hour of each stream.

    None without a store, which has its own check.
    """
    engine = dialect.create_engine(url)
    try:
        if not schema.has_store(url):
            return None
        with schema.open_snapshot(engine) as connection:
            found = reader.find_newest_reason(connection, streams, ID_TYPE_QUESTION, HOUR_US)
    except StoreError as error:
        return replace(store_error_finding(error), check="ids")
    finally:
        engine.dispose()
    if found is None:
        return Finding("ids", Level.OK, "in the last hour that was judged no probe has ids that only it knows")
    stream, start_us, reason = found
    told = f"{stream}, window {format_iso(start_us)}: {reason.removesuffix(f': {ID_TYPE_QUESTION}')}"
    advice = "give a message one id at all nodes: 7 and '7' are two ids, a UUID and its text too"
    return Finding("ids", Level.WARN, told, advice)


def _check_server(url: str) -> Finding:
    """Check that the database answers, is empty or holds a store, and can be written by this user."""
    name, engine = dialect.redact_url(url), dialect.create_engine(url)
    try:
        with dialect.translate_errors(url), engine.begin() as connection:
            is_empty = dialect.is_empty(connection)
            if not is_empty:
                schema.check_version(connection)
            may_write = connection.exec_driver_sql(_MAY_CREATE if is_empty else _MAY_WRITE).scalar()
            version = connection.exec_driver_sql("SHOW server_version").scalar()
    except StoreError as error:
        return store_error_finding(error)
    finally:
        engine.dispose()
    if not may_write:
        advice = "name the primary, and a user who may make tables or owns them, and whose transactions may write"
        return Finding("store", Level.FAIL, f"the store {name} cannot be written by this user", advice)
    told = "has no tables yet, and they can be made" if is_empty else "can be read and written"
    return Finding("store", Level.OK, f"the store {name} {told}; PostgreSQL {version}")


def store_error_finding(error: StoreError) -> Finding:
    """Convert an error of the store to a finding: message and advice."""
    words = str(error)
    what, _, advice = words.rpartition("; " if "; " in words else ": ")
    return Finding("store", Level.FAIL, what, advice)


def _check_file(url: str) -> Finding:
    """Check that the store's file can be opened and written, or created, with a write-ahead log."""
    file = Path(make_url(url).database or "")
    folder = find_nearest_folder(file.parent)
    try:
        with TemporaryDirectory(dir=folder, prefix=TRIAL_PREFIX) as scratch:
            mode = _read_journal_mode(Path(scratch) / "trial.db")
    except OSError as error:
        return unwritable_finding("store", folder, error)
    if mode != "wal":
        told = f"SQLite cannot keep a write-ahead log in {folder}, only {mode!r}"
        return Finding("store", Level.FAIL, told, "keep the store on a local disk, not on a network share")
    if not file.exists():
        return check_space("store", f"the store {file} is not there yet, and can be made", folder)
    try:
        _open_for_writing(url)
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error
        advice = "end the program that holds it, make it writable for this user, or name another file in [store] url"
        return Finding("store", Level.FAIL, f"the store {file} cannot be written: {reason}", advice)
    if not schema.has_store(url):
        return check_space("store", f"the store {file} has no tables yet, and they can be made", folder)
    return _check_version(url) or check_space("store", f"the store {file} can be read and written", folder)


def _check_version(url: str) -> Finding | None:
    """Check the schema version; None if it is right."""
    engine = dialect.create_engine(url)
    try:
        with schema.open_snapshot(engine):
            return None
    except StoreError as error:
        return store_error_finding(error)
    finally:
        engine.dispose()


def _read_journal_mode(file: Path) -> str:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar())


def _open_for_writing(url: str) -> None:
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args={"timeout": _LOCK_TIMEOUT_S})
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        connection.exec_driver_sql("ROLLBACK")
