"""The places that the monitor reads and writes: spool, store and work folder, and the clock of the spool's disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Final

import sqlalchemy
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from monitor.clock import Clock
from monitor.doctor.finding import Finding, Level
from monitor.errors import TransportError
from monitor.spark.sources import spool

LITTLE_ROOM_BYTES: Final = 1024**3
NO_ROOM_BYTES: Final = 64 * 1024**2
CLOCKS_APART_US: Final = 1_000_000
_TRIAL: Final = ".hopwatch-doctor-"
_LOCK_TIMEOUT_S: Final = 1


def configuration(path: Path | None) -> Finding:
    """Say which configuration the other checks go by."""
    told = "no hopwatch.toml in this folder: the defaults, and no streams" if path is None else f"as {path} says"
    return Finding("config", Level.OK, told)


def transport(folder: Path) -> Finding:
    """Check that the spool is there, can be read and written, and has room."""
    try:
        spool.check(folder, is_written=True)
    except TransportError as error:
        what, _, advice = str(error).rpartition(": ")
        return Finding("transport", Level.FAIL, what, advice)
    return _with_room("transport", f"the spool {folder} can be read and written", folder)


def clocks(folder: Path, clock: Clock) -> Finding:
    """Check that a file in the spool is stamped with the time of this machine: the stamp is the arrival time."""
    before_us = clock.now_us()
    try:
        # Readers of a spool pass over everything that ends in .open.
        with NamedTemporaryFile(dir=folder, prefix=_TRIAL, suffix=".open") as file:
            file.write(b"?")
            file.flush()
            stamp_us = os.fstat(file.fileno()).st_mtime_ns // 1_000
    except OSError as error:
        return _not_written("clocks", folder, error)
    ahead_us = max(stamp_us - clock.now_us(), 0) - max(before_us - stamp_us, 0)
    if abs(ahead_us) <= CLOCKS_APART_US:
        return Finding("clocks", Level.OK, "the spool's file system and this machine agree on the time to a second")
    side = "ahead of" if ahead_us > 0 else "behind"
    told = f"the spool's file system is {abs(ahead_us) / 1e6:.1f} s {side} this machine"
    advice = "let one time server set the clocks of this machine and of the file server"
    return Finding("clocks", Level.WARN, told, advice)


def store(url: str) -> Finding:
    """Check that the store's file can be opened and written, or made, with a write-ahead log."""
    file = Path(make_url(url).database or "")
    folder = _nearest(file.parent)
    try:
        with TemporaryDirectory(dir=folder, prefix=_TRIAL) as scratch:
            mode = _journal_mode(Path(scratch) / "trial.db")
    except OSError as error:
        return _not_written("store", folder, error)
    if mode != "wal":
        told = f"SQLite cannot keep a write-ahead log in {folder}, only {mode!r}"
        return Finding("store", Level.FAIL, told, "keep the store on a local disk, not on a network share")
    if not file.exists():
        return _with_room("store", f"the store {file} is not there yet, and can be made", folder)
    try:
        _open_for_writing(url)
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error
        advice = "end the program that holds it, make it writable for this user, or name another file in [store] url"
        return Finding("store", Level.FAIL, f"the store {file} cannot be written: {reason}", advice)
    return _with_room("store", f"the store {file} can be read and written", folder)


def workdir(folder: Path) -> Finding:
    """Check that the work folder can be written, or made, and has room."""
    nearest = _nearest(folder)
    try:
        with NamedTemporaryFile(dir=nearest, prefix=_TRIAL):
            pass
    except OSError as error:
        return _not_written("workdir", nearest, error)
    told = "can be written" if nearest == folder else "is not there yet, and can be made"
    return _with_room("workdir", f"the work folder {folder} {told}", nearest)


def _with_room(check: str, message: str, folder: Path) -> Finding:
    free_bytes = shutil.disk_usage(folder).free
    told = f"{message}; {free_bytes / 1024**3:.1f} GiB free"
    if free_bytes >= LITTLE_ROOM_BYTES:
        return Finding(check, Level.OK, told)
    level = Level.WARN if free_bytes >= NO_ROOM_BYTES else Level.FAIL
    return Finding(
        check, level, told, f"free some space on the disk of {folder}: a probe may spool 256 MiB, and more on its way"
    )


def _not_written(check: str, folder: Path, error: OSError) -> Finding:
    advice = f"make {folder} a folder that this user can write, or name another in the configuration"
    return Finding(check, Level.FAIL, f"{folder} cannot be written: {error.strerror}", advice)


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _journal_mode(file: Path) -> str:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar())


def _open_for_writing(url: str) -> None:
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args={"timeout": _LOCK_TIMEOUT_S})
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        connection.exec_driver_sql("ROLLBACK")
