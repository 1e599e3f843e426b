"""Tests of PostgreSQL as a store: the lock of a monitor, connections that die, and words for what goes wrong."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InternalError, OperationalError

from hopwatch.cli.checks import stores
from hopwatch.cli.checks.finding import Level
from hopwatch.monitor.errors import StoreError, StoreTakenError
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.store import dialect, reader, schema, writer
from hopwatch.monitor.store.writer import Changes
from servers.postgres import PASSWORD, USER, Postgres
from tests.monitor.store.store_process import another_monitor, failed
from tests.support.conclusions import dump_tables


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    return postgres.database()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """Yield the engine of an empty store."""
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    yield engine
    engine.dispose()


def database_of(url: str) -> str:
    """Return the name of the database behind a URL."""
    return str(make_url(url).database)


# The lock of a monitor


def test_a_second_monitor_is_refused(url: str) -> None:
    """As long as another process holds the store, and no longer."""
    with another_monitor(url) as process:
        assert failed(dialect.lock_store(url).__enter__) == (
            f"another monitor writes to the store {dialect.redact_url(url)}: "
            "stop it first, or name another store in [store] url"
        )
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    with dialect.lock_store(url):
        pass


def test_a_lock_is_released_before_its_session_ends(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has much to do lets go of a closed connection later than the program ends."""
    with monkeypatch.context() as patch, dialect.lock_store(url):
        for name in ("invalidate", "close"):
            patch.setattr(Connection, name, lambda _: None)
    with dialect.lock_store(url):
        pass


def test_kill_9_of_the_holder_frees_the_store(url: str, postgres: Postgres) -> None:
    """The server lets go of a session whose process is gone."""
    with another_monitor(url) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        sessions = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database_of(url)}'"  # noqa: S608 - made here
        while postgres.ask(sessions) != [(0,)]:
            pass
        with dialect.lock_store(url):
            pass


def test_a_monitor_of_another_store_is_none_of_ours(url: str, postgres: Postgres) -> None:
    """Neither in another database, nor in another schema of this one."""
    postgres.ask("CREATE SCHEMA other", database_of(url))
    other = f"{url}?options=-csearch_path%3Dother"
    with dialect.lock_store(url), dialect.lock_store(other), dialect.lock_store(postgres.database()):
        assert failed(dialect.lock_store(other).__enter__).startswith("another monitor writes to the store ")
        schema.prepare_store(dialect.create_engine(other))
        assert not schema.has_store(url)


def test_a_hold_is_renewed_when_its_connection_was_ended(url: str, postgres: Postgres) -> None:
    """And is then as good as before."""
    with dialect.lock_store(url) as hold:
        hold.renew()
        assert postgres.end_connections(database_of(url)) == 1
        with dialect.lock_store(url):
            hold.check_place()
            with pytest.raises(StoreTakenError):
                hold.renew()
        hold.renew()
        assert failed(dialect.lock_store(url).__enter__).startswith("another monitor writes to the store ")


# Connections that die


def test_connections_that_died_in_the_pool_are_replaced(engine: Engine, url: str, postgres: Postgres) -> None:
    """A restart of the server between two reports is not noticed."""
    reader.read_report(engine)
    assert postgres.end_connections(database_of(url)) == 1
    assert reader.read_report(engine)["streams"] == []


def test_a_transaction_whose_connection_dies_is_undone_and_may_be_tried_again(
    engine: Engine, url: str, postgres: Postgres
) -> None:
    """A transaction whose connection dies is rolled back, and can be tried again."""
    before = dump_tables(engine)

    def write() -> None:
        with engine.execution_options(writes=True).begin() as connection:
            writer.write_changes(connection, Changes(0, streams={"orders": (0, 0)}))
            postgres.end_connections(database_of(url))
            writer.set_values(connection, {"x": "y"})

    with pytest.raises(OperationalError) as caught:
        write()
    assert dialect.is_transient(url, caught.value)
    assert dump_tables(engine) == before


# What is kept, as it came


def test_a_nul_in_a_name_is_kept(engine: Engine) -> None:
    """A probe may call itself anything; a text of PostgreSQL holds no NUL, and the mark for it may be meant itself."""
    names = ["a\0b", "\0", "\u24000", "\u2400", "\u24002", "\0\u2400\0", "ü\U0001f600"]
    places = [SetAside(name, 0, number, 0, "bad_crc", name[::-1]) for number, name in enumerate(names)]
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(0, set_aside=places))
    assert {(row[0], row[5]) for row in dump_tables(engine)["set_aside"]} == {(name, name[::-1]) for name in names}


# What goes wrong, in words


def test_a_server_that_is_down_is_told() -> None:
    """The error about a server that is down has its address and what to check, in one line."""
    url = "postgresql+psycopg://watch:secret@127.0.0.1:1/db"
    told = failed(lambda: schema.prepare_store(dialect.create_engine(url)))
    assert told.startswith(
        "the store postgresql+psycopg://watch:***@127.0.0.1:1/db failed: connection failed: "
        'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    )
    assert told.endswith("; check that the server is up, and host and port in [store] url, then start again")
    assert "\n" not in told


WRONG = {
    "password": (
        {"password": "hopwatcher"},
        f'FATAL: password authentication failed for user "{USER}"',
        "correct user and password in [store] url, in PGPASSWORD or in ~/.pgpass",
    ),
    "no password": (
        {"password": None},
        "fe_sendauth: no password supplied",
        "correct user and password in [store] url, in PGPASSWORD or in ~/.pgpass",
    ),
    "database": (
        {"database": "nowhere"},
        'FATAL: database "nowhere" does not exist',
        "make it with createdb, or correct its name in [store] url",
    ),
    "encryption": (
        {"query": {"sslmode": "require"}},
        "server does not support SSL, but SSL was required",
        "correct sslmode and the certificates that [store] url or PGSSLMODE name, or let the server speak SSL",
    ),
}


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_name_is_refused(postgres: Postgres, encoding: str) -> None:
    """Before anything is made or read, with what to do."""
    url = postgres.database(f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    told = f"the database {database_of(url)} has the encoding {encoding}, which cannot hold every name and id: "
    told += "make one with createdb --template template0 --encoding UTF8, and name it in [store] url"
    assert failed(dialect.lock_store(url).__enter__) == told
    assert failed(lambda: schema.has_store(url)) == told
    assert stores.check_store(url).message + ": " + stores.check_store(url).advice == told


def test_a_user_who_may_only_read_is_told(postgres: Postgres, url: str) -> None:
    """The administrator's default_transaction_read_only, by doctor too."""
    postgres.ask(f"ALTER DATABASE {database_of(url)} SET default_transaction_read_only = on")
    assert failed(lambda: schema.prepare_store(dialect.create_engine(url))).endswith(
        "standby nor such a session can be written"
    )
    found = stores.check_store(url)
    assert (found.level, found.message) == (
        Level.FAIL,
        f"the store {dialect.redact_url(url)} cannot be written by this user",
    )


def test_a_statement_that_takes_too_long_for_the_server_is_told(postgres: Postgres, url: str) -> None:
    """The administrator's statement_timeout holds for the store; what ends by it may be tried again."""
    postgres.ask(f"ALTER DATABASE {database_of(url)} SET statement_timeout = '100ms'")
    engine = dialect.create_engine(url)
    told = "canceling statement due to statement timeout; raise statement_timeout"
    with pytest.raises(StoreError, match=told), dialect.translate_errors(url), engine.begin() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(60)")
    engine.dispose()


@pytest.mark.parametrize(("part", "what", "advice"), WRONG.values(), ids=WRONG)
def test_a_connection_that_is_refused_is_told(part: dict[str, Any], what: str, advice: str, url: str) -> None:
    """The error about a refused connection has the server's message and what to do."""
    wrong = make_url(url)._replace(**part).render_as_string(hide_password=False)
    with pytest.raises(StoreError) as caught, dialect.translate_errors(wrong), dialect.lock_store(wrong):
        pass
    told = str(caught.value)
    assert told.startswith(f"the store {dialect.redact_url(wrong)} failed: connection failed: ")
    assert told.endswith(f"{what}; {advice}")
    assert PASSWORD not in told
    assert "hopwatcher" not in told


def test_pgpassword_gives_the_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store uses PGPASSWORD, as PostgreSQL's own programs do."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    schema.prepare_store(dialect.create_engine(url.replace(f":{PASSWORD}", "")))
    assert schema.has_store(url)


@pytest.mark.usefixtures("engine")
def test_a_store_that_may_not_be_read_is_told(url: str, postgres: Postgres) -> None:
    """A role without rights is told what it lacks."""
    postgres.ask("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    try:
        told = failed(
            lambda: reader.read_report(dialect.create_engine(url.replace(f"{USER}:{PASSWORD}", "guest:guest")))
        )
    finally:
        postgres.ask("DROP ROLE guest")
    assert told.endswith(
        "failed: permission denied for table alembic_version; "
        "grant this user what it lacks: the monitor makes tables, and reads and writes them"
    )


ERRORS = {
    psycopg.errors.DiskFull: (True, "free some disk space on the database's machine and start again, nothing is lost"),
    psycopg.errors.TooManyConnections: (
        True,
        "end other programs' connections or raise max_connections, and start again",
    ),
    psycopg.errors.LockNotAvailable: (True, "end the program that holds the tables, or try again"),
    psycopg.errors.DeadlockDetected: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.SerializationFailure: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.AdminShutdown: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.CannotConnectNow: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.IoError: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.ReadOnlySqlTransaction: (
        False,
        (
            "name the primary in [store] url, or set default_transaction_read_only off for this user: neither a "
            "standby nor such a session can be written"
        ),
    ),
    psycopg.errors.QueryCanceled: (
        True,
        "raise statement_timeout for this user, with ALTER ROLE, if that is what ended it, and start again",
    ),
    psycopg.errors.InsufficientPrivilege: (
        False,
        "grant this user what it lacks: the monitor makes tables, and reads and writes them",
    ),
    psycopg.errors.DataCorrupted: (
        False,
        "look into the server's log; bring back a copy of the database together with the working folder",
    ),
    psycopg.errors.IdleInTransactionSessionTimeout: (True, "start again once it is mended, nothing is lost"),
    psycopg.errors.UndefinedTable: (False, "run the monitor once, it makes the tables"),
}


@pytest.mark.parametrize(("error", "expected"), ERRORS.items())
def test_what_the_server_says_is_told_with_advice(error: type[psycopg.Error], expected: tuple[bool, str]) -> None:
    """An error of the server has advice, and is transient if it passes by itself."""
    is_passing, advice = expected
    url = "postgresql+psycopg://watch@host/db"
    wrapped = _wrapped(error("odd\nHINT:  look"))
    assert dialect.is_transient(url, wrapped) is is_passing
    with pytest.raises(StoreError) as caught, dialect.translate_errors(url):
        raise wrapped
    assert str(caught.value) == f"the store {url} failed: odd HINT: look; {advice}"


def _wrapped(error: psycopg.Error) -> DBAPIError:
    kind = OperationalError if isinstance(error, psycopg.OperationalError) else InternalError
    return kind("SELECT 1", {}, error)


def test_a_fault_of_ours_is_never_tried_again(engine: Engine, url: str) -> None:
    """Nor is it laid on the server."""
    with pytest.raises(DBAPIError) as caught, dialect.translate_errors(url), engine.begin() as connection:
        connection.execute(text("SELECT gone"))
    assert not dialect.is_transient(url, caught.value)
