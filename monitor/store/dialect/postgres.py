"""PostgreSQL dialect: one writer at a time, snapshot reads, and a session lock for the monitor."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import sqlalchemy
from sqlalchemy import URL, ColumnElement, Connection, Engine, Table, event, func
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import NullPool

from hopwatch.monitor.errors import StoreError, StoreTakenError
from hopwatch.monitor.store.dialect.lock import StoreLock

LOCK_TIMEOUT_S: Final = 30
CONNECT_TIMEOUT_S: Final = 10
Upsert = postgresql.Insert
_ENCODING: Final = "UTF8"

MAX_CONNECTIONS: Final = 15
"""Connections of one engine. They stay open: to open one takes as long as to read several windows."""
_CONNECTION: Final[dict[str, Any]] = {
    "application_name": "hopwatch",
    "connect_timeout": CONNECT_TIMEOUT_S,
    # A host that is gone without a word is noticed within a minute, on this side and on the server's.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SESSION: Final = "; ".join(
    (
        "SET tcp_keepalives_idle = 30",
        "SET tcp_keepalives_interval = 10",
        "SET tcp_keepalives_count = 3",
        f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'",
        # Whatever the database has as its defaults: what is read after a lock has to be what its last holder left.
        "SET default_transaction_isolation = 'read committed'",
    )
)
# A lock of this kind is known in its database alone; two stores in one database are in schemas of their own.
_LOCK_KEY: Final = "hashtextextended('hopwatch {} ' || current_schema(), 0)"
_WRITE_LOCK: Final = f"SELECT pg_advisory_xact_lock({_LOCK_KEY.format('transaction')})"
_MONITOR_LOCK: Final = f"SELECT pg_try_advisory_lock({_LOCK_KEY.format('monitor')})"
_MONITOR_UNLOCK: Final = "SELECT pg_advisory_unlock_all()"
_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

_DISK_FULL, _TOO_MANY, _NO_RIGHT, _READ_ONLY, _LOCKED = "53100", "53300", "42501", "25006", "55P03"
_CANCELED: Final = "57014"
_NO_DISK, _IDLE, _IO, _NO_TABLE = "58030", "25P03", "58P01", "42P01"
_TRANSIENT_CLASSES: Final = frozenset({"08", "40", "53", "57"})
"""SQLSTATE classes: the connection, a rollback that another transaction forced, resources, an operator."""
_TRANSIENT: Final = frozenset({_LOCKED, _IDLE, _NO_DISK, _IO})
_DAMAGED: Final = "XX"
"""SQLSTATE class of internal server errors, such as damaged files."""
_DEPENDENCY_CODES: Final = frozenset({_NO_RIGHT, _READ_ONLY, _NO_TABLE, *_TRANSIENT})

_UNREACHABLE: Final = "check that the server is up, and host and port in [store] url, then start again"
_LOGIN: Final = "correct user and password in [store] url, in PGPASSWORD or in ~/.pgpass"
_ADVICE: Final[dict[str, str]] = {
    _DISK_FULL: "free some disk space on the database's machine and start again, nothing is lost",
    _TOO_MANY: "end other programs' connections or raise max_connections, and start again",
    _NO_RIGHT: "grant this user what it lacks: the monitor makes tables, and reads and writes them",
    _READ_ONLY: (
        "name the primary in [store] url, or set default_transaction_read_only off for this user: neither a "
        "standby nor such a session can be written"
    ),
    _CANCELED: "raise statement_timeout for this user, with ALTER ROLE, if that is what ended it, and start again",
    _LOCKED: "end the program that holds the tables, or try again",
    _NO_TABLE: "run the monitor once, it makes the tables",
}
_ADVICE_BY_WORDS: Final[dict[str, str]] = {
    r"password authentication failed|no password supplied|role \".*\" does not exist": _LOGIN,
    r"pg_hba\.conf entry": "let this user and this machine in, in the server's pg_hba.conf",
    r"database \".*\" does not exist": "make it with createdb, or correct its name in [store] url",
    r"too many|connection slots": _ADVICE[_TOO_MANY],
    r"does not support SSL|SSL error|sslmode|certificate": (
        "correct sslmode and the certificates that [store] url or PGSSLMODE name, or let the server speak SSL"
    ),
}
"""Advice by message: a refused connection has no SQLSTATE."""


def create_engine(url: URL) -> Engine:
    """Return an engine for ``url``: a transaction either writes, one at a time, or reads in one snapshot.

    Connections that died in the pool are replaced before they are used.
    """
    made = _plain_engine(url, pool_pre_ping=True, pool_size=MAX_CONNECTIONS, max_overflow=0, pool_use_lifo=True)

    @event.listens_for(made, "begin")
    def _on_begin(connection: Connection) -> None:
        # As with SQLite's BEGIN IMMEDIATE: writers queue here, so that none sees half of another's work.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql(_WRITE_LOCK if writes else _SNAPSHOT)

    return made


def _plain_engine(url: URL, **options: Any) -> Engine:  # noqa: ANN401 - the options of the library's engine
    arguments = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    made = sqlalchemy.create_engine(url, connect_args=arguments, **options)

    # Inserted first: with SQL_ASCII texts come as bytes, and the library's own setup fails on them.
    @event.listens_for(made, "connect", insert=True)
    def _on_connect(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's own
        encoding = connection.info.parameter_status("server_encoding")
        # Poolers may not pass it on: an unknown encoding is accepted.
        if encoding not in (None, _ENCODING):
            database = connection.info.dbname
            what = f"the database {database} has the encoding {encoding}, which cannot hold every name and id"
            advice = f"make one with createdb --template template0 --encoding {_ENCODING}, and name it in [store] url"
            raise StoreError(f"{what}: {advice}")
        connection.execute(_SESSION)
        connection.commit()

    return made


def insert(table: Table) -> Upsert:
    """Return an insert with support for ON CONFLICT."""
    return postgresql.insert(table)


def byte_position(part: bytes, column: ColumnElement[bytes]) -> ColumnElement[int]:
    """Return the position of some bytes in a column, counted from 1; 0 if it does not contain them."""
    # With the name of its schema it is called as any function is; without one it has a syntax of its own.
    return func.pg_catalog.position(column, part)


class _SessionLock:
    """Advisory lock in its own connection; it ends with the connection."""

    def __init__(self, url: URL, name: str) -> None:
        self._engine = _plain_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self._name = name
        self._connection: Connection | None = None
        self._turn = threading.Lock()

    def renew(self) -> None:
        """Acquire the lock, again if its connection died; may be called from any thread."""
        with self._turn:
            self._renew()

    def check_place(self) -> None:
        """Do nothing: a server has no file to check."""

    def _renew(self) -> None:
        if self._connection is not None and not self._is_dead(self._connection):
            return
        self._connection = None
        connection = self._engine.connect()
        if not connection.exec_driver_sql(_MONITOR_LOCK).scalar():
            connection.close()
            raise StoreTakenError(self._name)
        self._connection = connection

    @staticmethod
    def _is_dead(connection: Connection) -> bool:
        try:
            connection.exec_driver_sql("SELECT 1")
        except DBAPIError:
            connection.invalidate()
            connection.close()
            return True
        return False

    def release(self) -> None:
        """Release the lock, and close its connection."""
        if self._connection is not None:
            # A server that has much to do lets go of a closed connection later than we end, and a program that comes
            # behind us would be refused. Of a connection that died there is nothing to release.
            with suppress(DBAPIError):
                self._connection.exec_driver_sql(_MONITOR_UNLOCK)
            self._connection.invalidate()
            self._connection.close()


@contextmanager
def lock_store(url: URL, name: str) -> Iterator[StoreLock]:
    """Lock the store against a second monitor, as long as the connection of the lock lasts.

    Raises:
        StoreTakenError: another monitor holds it.
    """
    hold = _SessionLock(url, name)
    hold.renew()
    try:
        yield hold
    finally:
        hold.release()


def is_dependency(error: DBAPIError) -> bool:
    """Return whether the server, the network or missing privileges caused the error."""
    code = _sqlstate(error)
    return (
        isinstance(error, OperationalError | InterfaceError) or code in _DEPENDENCY_CODES or code.startswith(_DAMAGED)
    )


def is_transient(error: DBAPIError) -> bool:
    """Return whether the error is about the connection, a restart, resources, or another transaction."""
    code = _sqlstate(error)
    if error.connection_invalidated or code in _TRANSIENT:
        return True
    return code[:2] in _TRANSIENT_CLASSES if code else isinstance(error, OperationalError | InterfaceError)


def error_text(error: DBAPIError) -> str:
    """Return the message of the driver in one line."""
    return " ".join(str(error.orig).split())


def advice(error: DBAPIError) -> str:
    """Return advice about the error."""
    code, words = _sqlstate(error), error_text(error)
    if code in _ADVICE:
        return _ADVICE[code]
    if code.startswith(_DAMAGED):
        return "look into the server's log; bring back a copy of the database together with the working folder"
    if code:
        return "start again once it is mended, nothing is lost"
    return next((what for pattern, what in _ADVICE_BY_WORDS.items() if re.search(pattern, words)), _UNREACHABLE)


def _sqlstate(error: DBAPIError) -> str:
    """Return the SQLSTATE of the server; empty if the error is not from the server."""
    return str(getattr(error.orig, "sqlstate", None) or "")
