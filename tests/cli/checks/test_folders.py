"""Tests of the checks of places: spool, clock, a store in a file, work folder."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import pytest
from sqlalchemy import update

from hopwatch.cli.checks import Finding, Level, folders, stores
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store import dialect, schema
from servers.postgres import PASSWORD, USER, Postgres
from tests.support.clock import ManualClock

GIB = 1024**3


def _set_free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_bytes))


def _refuse(*_: object, **__: object) -> NoReturn:
    raise PermissionError(errno.EACCES, "Permission denied")


def _clocks(folder: Path) -> Finding:
    return folders.check_clocks(folder, SystemClock())


def _store(folder: Path) -> Finding:
    return stores.check_store(f"sqlite:///{folder}/hopwatch.db")


@pytest.mark.parametrize("check", [folders.check_spool, _clocks, _store, folders.check_workdir])
def test_a_place_that_is_in_order_is_left_as_it_was(check: Callable[[Path], Finding], tmp_path: Path) -> None:
    """OK, without advice, and no trace of the check remains."""
    (tmp_path / "orders.a.h-1.1790000000000000").mkdir()
    finding = check(tmp_path)
    assert (finding.level, finding.advice) == (Level.OK, "")
    assert [path.name for path in tmp_path.iterdir()] == ["orders.a.h-1.1790000000000000"]


def test_a_spool_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    """The monitor makes it, and the first probe does: what to start is told, and nothing is made."""
    finding = folders.check_spool(tmp_path / "none" / "spool")
    assert finding.level is Level.NOTE
    assert finding.message.startswith(f"the spool {tmp_path}/none/spool is not there yet, and can be made; ")
    assert finding.message.endswith("; no probe has written to it, and nothing can be seen before one does")
    assert finding.advice == f"start one with the sink spool:{tmp_path}/none/spool"
    assert list(tmp_path.iterdir()) == []


def test_a_spool_that_cannot_be_made_fails(tmp_path: Path) -> None:
    """A file stands where its parent has to."""
    (tmp_path / "file").touch()
    finding = folders.check_spool(tmp_path / "file" / "spool")
    assert (finding.level, finding.message) == (Level.FAIL, f"{tmp_path}/file cannot be written: Not a directory")


def test_an_empty_spool_is_told_with_what_to_start(tmp_path: Path) -> None:
    """An empty spool is a note with the sink to start a probe with."""
    finding = folders.check_spool(tmp_path)
    assert finding.level is Level.NOTE
    assert finding.message.endswith("; no probe has written to it, and nothing can be seen before one does")
    assert finding.advice == f"start one with the sink spool:{tmp_path}"


@pytest.mark.parametrize(
    ("free_bytes", "level"),
    [(GIB, Level.OK), (GIB - 1, Level.WARN), (64 << 20, Level.WARN), ((64 << 20) - 1, Level.FAIL)],
)
@pytest.mark.parametrize("check", [folders.check_spool, _store, folders.check_workdir])
def test_little_room_is_a_warning_and_none_a_failure(
    check: Callable[[Path], Finding],
    free_bytes: int,
    level: Level,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below 1 GiB somebody should look, below 64 MiB nothing works for long; the disk is told by the folder."""
    _set_free(monkeypatch, free_bytes)
    (tmp_path / "orders.a.h-1.1790000000000000").mkdir()
    finding = check(tmp_path)
    assert finding.level is level
    assert finding.message.endswith(" GiB free")
    assert (f"free some space on the disk of {tmp_path}" in finding.advice) == (level is not Level.OK)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-100.0, "the spool's file system is 100.0 s ahead of this machine"), (100.0, "100.0 s behind this machine")],
)
def test_clocks_that_are_apart_are_a_warning(seconds: float, told: str, tmp_path: Path) -> None:
    """A file server whose clock differs would shift every arrival time: which way, by how much, what to do."""
    clock = ManualClock(SystemClock().now_us())
    clock.advance(seconds)
    finding = folders.check_clocks(tmp_path, clock)
    assert finding.level is Level.WARN
    assert told in finding.message
    assert finding.advice == "let one time server set the clocks of this machine and of the file server"


@pytest.mark.parametrize(
    ("check", "room", "name"),
    [
        (_clocks, folders, "NamedTemporaryFile"),
        (_store, stores, "TemporaryDirectory"),
        (folders.check_workdir, folders, "NamedTemporaryFile"),
    ],
)
def test_a_place_that_cannot_be_written_fails(
    check: Callable[[Path], Finding], room: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder and the reason of the operating system are told."""
    monkeypatch.setattr(room, name, _refuse)
    finding = check(tmp_path)
    assert (finding.level, finding.message) == (Level.FAIL, f"{tmp_path} cannot be written: Permission denied")
    assert finding.advice == f"make {tmp_path} a folder that this user can write, or name another in the configuration"


def test_a_store_and_a_work_folder_are_made_where_their_parents_can_be(tmp_path: Path) -> None:
    """Folders that are not there yet are no fault: the nearest one above is checked."""
    finding = stores.check_store(f"sqlite:///{tmp_path}/a/b/hopwatch.db")
    assert (finding.level, "is not there yet, and can be made" in finding.message) == (Level.OK, True)
    finding = folders.check_workdir(tmp_path / "a" / "b")
    assert (finding.level, "is not there yet, and can be made" in finding.message) == (Level.OK, True)


def test_a_work_folder_below_a_file_fails(tmp_path: Path) -> None:
    """A file stands where a folder has to."""
    (tmp_path / "file").touch()
    finding = folders.check_workdir(tmp_path / "file" / "work")
    assert (finding.level, finding.message) == (Level.FAIL, f"{tmp_path}/file cannot be written: Not a directory")


def test_a_store_that_is_there_and_free(tmp_path: Path) -> None:
    """A store that exists and is free is opened for writing and left as it was."""
    schema.prepare_store(dialect.create_engine(f"sqlite:///{tmp_path}/hopwatch.db"))
    finding = _store(tmp_path)
    assert finding.level is Level.OK
    assert finding.message.startswith(f"the store {tmp_path}/hopwatch.db can be read and written; ")


def test_an_empty_store_can_become_one(tmp_path: Path) -> None:
    """A monitor that was stopped at its start leaves such a file."""
    (tmp_path / "hopwatch.db").touch()
    finding = _store(tmp_path)
    assert finding.level is Level.OK
    assert finding.message.startswith(f"the store {tmp_path}/hopwatch.db has no tables yet, and they can be made; ")


def test_a_store_of_another_program_fails(tmp_path: Path) -> None:
    """Before the monitor would refuse it."""
    sqlite3.connect(tmp_path / "hopwatch.db").execute("CREATE TABLE t (x)").connection.close()
    finding = _store(tmp_path)
    told = f"the database sqlite:///{tmp_path}/hopwatch.db holds other tables than a store's"
    assert (finding.level, finding.message) == (Level.FAIL, told)
    assert finding.advice == "name another store in [store] url"


def test_a_store_that_another_program_holds_fails(tmp_path: Path) -> None:
    """A lock is told as a lock, with what to do."""
    holder = sqlite3.connect(tmp_path / "hopwatch.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    finding = _store(tmp_path)
    holder.close()
    told = f"the store {tmp_path}/hopwatch.db cannot be written: database is locked"
    assert (finding.level, finding.message) == (Level.FAIL, told)
    assert finding.advice.startswith("end the program that holds it")


def test_a_store_that_is_no_database_fails(tmp_path: Path) -> None:
    """A foreign file in its place is not touched."""
    (tmp_path / "hopwatch.db").write_text("a foreign file, longer than a hundred bytes: " + "." * 100)
    finding = _store(tmp_path)
    told = f"the store {tmp_path}/hopwatch.db cannot be written: file is not a database"
    assert (finding.level, finding.message) == (Level.FAIL, told)


def test_a_file_system_without_a_write_ahead_log_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network share SQLite falls back to another log, in which readers would block the monitor."""
    monkeypatch.setattr(stores, "_read_journal_mode", lambda _: "delete")
    finding = _store(tmp_path)
    told = f"SQLite cannot keep a write-ahead log in {tmp_path}, only 'delete'"
    assert (finding.level, finding.message) == (Level.FAIL, told)
    assert finding.advice == "keep the store on a local disk, not on a network share"


# A store on a server


def test_an_empty_database_on_a_server_can_become_a_store(postgres: Postgres) -> None:
    """An empty database is in order, and is left as it was."""
    url = postgres.database()
    finding = stores.check_store(url)
    assert (finding.level, finding.advice) == (Level.OK, "")
    assert finding.message.startswith(
        f"the store {dialect.redact_url(url)} has no tables yet, and they can be made; PostgreSQL "
    )
    assert not schema.has_store(url)


def test_a_store_on_a_server_is_in_order(postgres: Postgres) -> None:
    """Its version is told, and no password."""
    url = postgres.database()
    schema.prepare_store(dialect.create_engine(url))
    finding = stores.check_store(url)
    assert finding.level is Level.OK
    assert finding.message.startswith(f"the store {dialect.redact_url(url)} can be read and written; PostgreSQL ")


def test_a_server_that_does_not_answer_fails(postgres: Postgres) -> None:
    """A server that fails is reported with the address that was tried and the server's error."""
    url = postgres.url("nowhere")
    finding = stores.check_store(url)
    assert finding.level is Level.FAIL
    assert finding.message.startswith(f"the store {dialect.redact_url(url)} failed: ")
    assert finding.message.endswith('FATAL: database "nowhere" does not exist')
    assert finding.advice == "make it with createdb, or correct its name in [store] url"


def test_a_user_who_may_not_make_tables_fails(postgres: Postgres) -> None:
    """A role that may only log in."""
    url = postgres.database()
    postgres.ask("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    try:
        finding = stores.check_store(url.replace(f"{USER}:{PASSWORD}", "guest:guest"))
    finally:
        postgres.ask("DROP ROLE guest")
    assert finding.level is Level.FAIL
    assert finding.message.endswith("cannot be written by this user")
    assert finding.advice == (
        "name the primary, and a user who may make tables or owns them, and whose transactions may write"
    )


def test_a_store_on_a_server_of_another_version_fails(postgres: Postgres) -> None:
    """With the command that helps."""
    url = postgres.database()
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(schema.version_table).values(version_num="0000"))
    engine.dispose()
    finding = stores.check_store(url)
    assert (finding.level, finding.advice) == (Level.FAIL, "stop the monitor and run hopwatch store migrate")
