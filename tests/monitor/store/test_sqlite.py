"""Tests of SQLite as a store: one writer at a time, and words for what goes wrong."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import Engine, event, text

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store import dialect, reader, schema, writer
from hopwatch.monitor.store.dialect import sqlite
from hopwatch.monitor.store.writer import Changes
from tests.monitor.store.store_process import another_monitor, failed
from tests.support.file_permissions import without_root

WRITERS = 8
EACH = 12


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet."""
    return f"sqlite:///{tmp_path}/store.db"


# Writers


def test_a_store_that_another_program_creates_is_waited_for(url: str, tmp_path: Path) -> None:
    """A dashboard beside the first start of a monitor fails neither: SQLite itself refuses at once, and waits not."""
    creator = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    creator.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.2, creator.close)
    end.start()
    assert not schema.has_store(url)
    end.join()


def test_commits_survive_a_loss_of_power(engine: Engine) -> None:
    """A write-ahead log, synced with each commit."""
    with engine.begin() as connection:
        pragmas = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 2]


# The lock


def test_a_second_monitor_is_refused(url: str, tmp_path: Path) -> None:
    """As long as another process holds the store, and no longer."""
    with another_monitor(url) as process:
        assert failed(dialect.lock_store(url).__enter__) == (
            f"another monitor writes to the store {tmp_path}/store.db: "
            "stop it first, or name another store in [store] url"
        )
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    with dialect.lock_store(url):
        pass


def test_kill_9_of_the_holder_frees_the_store(url: str) -> None:
    """The lock dies with the process; the file that it was on is no lock."""
    with another_monitor(url) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with dialect.lock_store(url):
            pass


def test_a_monitor_of_another_store_is_none_of_ours(url: str) -> None:
    """The lock is beside the file."""
    with another_monitor(url.replace("store.db", "other.db")), dialect.lock_store(url):
        pass


def test_the_folder_of_a_store_is_made(tmp_path: Path) -> None:
    """The folder of a store is made when the store is locked."""
    with dialect.lock_store(f"sqlite:///{tmp_path}/new/deep/store.db"):
        assert (tmp_path / "new/deep/store.db.lock").exists()


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "deleted": (lambda folder: (folder / "store.db").unlink(), "store.db", "deleted"),
    "replaced": (
        lambda folder: (folder / "backup.db").rename(folder / "store.db"),
        "store.db",
        "replaced by another file",
    ),
    "its lock deleted": (lambda folder: (folder / "store.db.lock").unlink(), "store.db.lock", "deleted"),
    "its folder gone": (lambda folder: folder.rename(folder.with_name("away")), "store.db", "deleted"),
}


@pytest.mark.parametrize(("change", "name", "what"), CHANGES.values(), ids=CHANGES)
def test_a_store_whose_file_is_another_is_held_no_more(
    change: Callable[[Path], object], name: str, what: str, tmp_path: Path
) -> None:
    """SQLite itself would go on writing to a file that nobody can open any more."""
    folder = tmp_path / "var"
    folder.mkdir()
    url = f"sqlite:///{folder}/store.db"
    schema.prepare_store(dialect.create_engine(url))
    schema.prepare_store(dialect.create_engine(f"sqlite:///{folder}/backup.db"))
    with dialect.lock_store(url) as hold:
        hold.renew()
        hold.renew()
        change(folder)
        with pytest.raises(StoreError) as caught:
            hold.renew()
    assert str(caught.value) == (
        f"the store's file {folder}/{name} was {what} under the running monitor, which deletes no segment any more: "
        "bring it back and start again, or pass --begin-anew"
    )


def test_a_store_that_cannot_be_looked_at_is_not_held(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk fails, say: nobody knows whether it is still the same."""
    schema.prepare_store(dialect.create_engine(url))
    with dialect.lock_store(url) as hold:
        hold.renew()

        def fail(*_: object, **__: object) -> NoReturn:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(Path, "stat", fail)
        told = failed(hold.renew)
    assert told == (
        f"the store's file {tmp_path}/store.db cannot be looked at: Input/output error; mend that, and start again"
    )


def test_a_store_is_for_its_user_alone(url: str, tmp_path: Path) -> None:
    """The file, what SQLite puts beside it, and the lock; one that was opened to others stays so."""
    engine = dialect.create_engine(url)
    with dialect.lock_store(url):
        schema.prepare_store(engine)
        with engine.begin():
            found = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
        assert found == dict.fromkeys(("store.db", "store.db-shm", "store.db-wal", "store.db.lock"), "0o600")
    (tmp_path / "store.db").chmod(0o640)
    schema.prepare_store(engine)
    schema.migrate_store(engine)
    assert oct((tmp_path / "store.db").stat().st_mode & 0o777) == "0o640"


def test_a_migrated_store_is_for_its_user_alone(url: str, tmp_path: Path) -> None:
    """A migrated store is readable by its user alone."""
    schema.migrate_store(dialect.create_engine(url))
    assert oct((tmp_path / "store.db").stat().st_mode & 0o777) == "0o600"


def test_a_store_in_memory_needs_no_lock() -> None:
    """Nobody else can write to it."""
    with dialect.lock_store("sqlite:///:memory:"), dialect.lock_store("sqlite://"):
        assert dialect.database_file("sqlite://") is None


def test_a_folder_that_cannot_be_written_takes_no_lock(open_folder: Path) -> None:
    """The message names the lock and what to do."""
    with without_root():
        told = failed(dialect.lock_store(f"sqlite:///{open_folder}/store.db").__enter__)
    assert told == (
        f"the store's lock {open_folder}/store.db.lock cannot be written: Permission denied; "
        "make the folder writable for this user"
    )


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    """A file in the place of the folder is an error that names the file."""
    (tmp_path / "var").write_text("")
    told = failed(dialect.lock_store(f"sqlite:///{tmp_path}/var/store.db").__enter__)
    assert "var/store.db.lock cannot be written: File exists; make the folder writable" in told


# What goes wrong, in words


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    """The folders above a new store are made."""
    schema.prepare_store(dialect.create_engine(f"sqlite:///{tmp_path}/a/b/store.db"))
    assert (tmp_path / "a" / "b" / "store.db").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A folder that cannot be made is an error with the store's URL and what to check."""
    (tmp_path / "none").write_text("")
    url = f"sqlite:///{tmp_path}/none/store.db"
    assert failed(lambda: schema.prepare_store(dialect.create_engine(url))) == (
        f"the store {url} failed: unable to open database file; "
        "check that the folder is there and writable for this user"
    )


def test_a_store_that_cannot_be_written_is_told(open_folder: Path) -> None:
    """A file without the right to write."""
    url = f"sqlite:///{open_folder}/store.db"
    schema.prepare_store(dialect.create_engine(url))
    let_others_read(open_folder)
    with without_root():
        told = failed(lambda: _write(dialect.create_engine(url)))
    assert told == (
        f"the store {url} failed: attempt to write a readonly database; "
        "make the file and its folder writable for this user"
    )


def let_others_read(folder: Path) -> None:
    """Give everybody the right to read a store, which is made for its user alone."""
    for file in folder.glob("store.db*"):
        file.chmod(0o644)


def _write(engine: Engine) -> None:
    with dialect.translate_errors(str(engine.url)), engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(0, streams={"orders": (0, 0)}))


def test_whoever_may_only_read_gets_a_report_while_the_monitor_runs(open_folder: Path) -> None:
    """A user who may only read gets a report while the monitor runs."""
    url = f"sqlite:///{open_folder}/store.db"
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    let_others_read(open_folder)
    with without_root():
        assert reader.read_report(dialect.create_engine(url))["streams"] == []


def test_whoever_may_only_read_is_told_when_no_monitor_runs(open_folder: Path) -> None:
    """The first reader has to make what readers share, and is told what it lacks."""
    url = f"sqlite:///{open_folder}/store.db"
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    engine.dispose()
    let_others_read(open_folder)
    with without_root():
        told = failed(lambda: reader.read_report(dialect.create_engine(url)))
    assert told == (
        f"the store {url} failed: attempt to write a readonly database; "
        "make the file and its folder writable for this user"
    )


def test_a_full_disk_is_told_and_loses_nothing(engine: Engine, url: str) -> None:
    """The database cannot grow: the transaction is undone, what was written before is there."""
    _write(engine)
    before = reader.read_report(engine)
    small = dialect.create_engine(url)
    event.listen(small, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1"))
    parcels = {("orders", n, 0): bytes(100_000) for n in range(100)}

    def fill() -> None:
        with dialect.translate_errors(url), small.execution_options(writes=True).begin() as connection:
            writer.write_changes(connection, Changes(7, tallies=parcels, streams={"trades": (0, 0)}))

    assert failed(fill) == (
        f"the store {url} failed: database or disk is full; free some disk space and start again, nothing is lost"
    )
    assert reader.read_report(engine) == before


def test_a_locked_store_is_told(engine: Engine, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program holds a transaction open for longer than anybody waits."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0)
    with engine.execution_options(writes=True).begin():
        told = failed(lambda: _write(dialect.create_engine(url)))
    assert (
        told == f"the store {url} failed: database is locked; another program holds the database; end it, or try again"
    )


@pytest.mark.parametrize("data", [b"not a database at all" * 100, b"%PDF-1.7 " * 200])
def test_a_file_of_another_kind_is_told(data: bytes, tmp_path: Path) -> None:
    """A file that is no database is an error, and stays as it is."""
    (tmp_path / "store.db").write_bytes(data)
    url = f"sqlite:///{tmp_path}/store.db"
    assert failed(lambda: schema.prepare_store(dialect.create_engine(url))) == (
        f"the store {url} failed: file is not a database; "
        "the file is another program's: name another store in [store] url"
    )
    assert (tmp_path / "store.db").read_bytes() == data


def test_a_damaged_store_is_told(engine: Engine, url: str, tmp_path: Path) -> None:
    """Pages that were written over are no results."""
    _write(engine)
    engine.dispose()
    file = tmp_path / "store.db"
    page = 4_096
    file.write_bytes(file.read_bytes()[:page] + b"\xff" * (file.stat().st_size - page))
    assert failed(lambda: reader.read_report(dialect.create_engine(url))) == (
        f"the store {url} failed: database disk image is malformed; "
        "the file is damaged: put it aside together with the working folder, or bring back a copy of both"
    )


def test_a_store_without_tables_is_told(url: str) -> None:
    """An empty file is what a monitor leaves that never came to write."""
    assert failed(lambda: reader.read_report(dialect.create_engine(url))) == (
        f"there is no store at {url} yet: start the monitor with hopwatch run, it makes one"
    )


def test_an_unknown_failure_is_told_as_the_database_told_it(url: str) -> None:
    """With what to do about it, as far as that is known."""

    def fail() -> None:
        with dialect.translate_errors(url), dialect.create_engine(url).begin() as connection:
            connection.execute(text("SELECT gone"))

    assert failed(fail) == f"the store {url} failed: no such column: gone; start again once it is mended"
