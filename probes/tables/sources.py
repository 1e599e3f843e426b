"""Tables by their addresses, with the libraries that they need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hopwatch.probes.clock import Clock
from hopwatch.probes.tables.snapshots import SnapshotTable
from hopwatch.probes.taps.errors import TapError, TapSourceError, TapUsageError

DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
SQL: Final = "sql"
PARQUET: Final = "parquet"
INSTALL: Final = "pip install 'hopwatch[tables]'"


class GrowingRows(NamedTuple):
    """Table of a database, the column of it that grows, and how long transactions take at most, s."""

    table: str | None = None
    grows: str | None = None
    grace_s: float = 30.0


class FolderReading(NamedTuple):
    """Columns of a folder's files that are read, and the state of the tap, beside which is noted which files were."""

    columns: Sequence[str] = ()
    state: Path | None = None


def open_table(
    address: str,
    clock: Clock,
    rows: GrowingRows = GrowingRows(),  # noqa: B008 - a value
    reading: FolderReading = FolderReading(),  # noqa: B008 - a value
) -> SnapshotTable:
    """Open a table: ``delta:PATH``, ``iceberg:CATALOG/NAMESPACE.TABLE``, ``parquet:DIR``, or ``sql:URL``.

    Raises:
        TapUsageError: the address is none, or what reads such a table is not installed.
        TapSourceError: the table cannot be read.
    """
    kind, _, place = address.partition(":")
    _check_rows(kind, rows)
    try:
        if kind == DELTA and place:
            from hopwatch.probes.tables.delta_table import DeltaSnapshots  # noqa: PLC0415 - each needs its own library

            return DeltaSnapshots(place)
        if kind == ICEBERG and place:
            from hopwatch.probes.tables.iceberg_table import IcebergSnapshots  # noqa: PLC0415 - as above

            return IcebergSnapshots(place)
        if kind == PARQUET and place:
            from hopwatch.probes.tables.parquet_folder import ParquetFolder  # noqa: PLC0415 - as above

            return ParquetFolder(place, clock, reading.columns, reading.state)
        if kind == SQL and place and rows.table and rows.grows:
            from hopwatch.probes.tables.sql_table import SqlTable  # noqa: PLC0415 - as above

            return SqlTable(place, rows.table, rows.grows, rows.grace_s, clock)
    except ImportError as error:
        # The extra has SQLAlchemy, and no driver of a database.
        is_driver = kind == SQL and error.name is not None and not error.name.startswith("sqlalchemy")
        advice = "install the driver that its URL names" if is_driver else INSTALL
        raise TapUsageError(f"a table at {kind}: needs {error.name}, which is not installed: {advice}") from None
    except TapError:
        raise
    except Exception as error:  # noqa: BLE001 - its library may raise anything
        # The address of a database may hold a password.
        shown = f"{SQL}:" if kind == SQL else address
        raise TapSourceError(f"the table {shown} cannot be read: {describe_error(error)}") from None
    forms = f"{DELTA}:PATH, {ICEBERG}:CATALOG/NAMESPACE.TABLE, {PARQUET}:DIR or {SQL}:URL"
    raise TapUsageError(f"a table is {forms}, got {address!r:.80}")


def _check_rows(kind: str, rows: GrowingRows) -> None:
    """Check that the table of a database is named, and of nothing else.

    Raises:
        TapUsageError: it is not so.
    """
    if kind == SQL and not (rows.table and rows.grows):
        raise TapUsageError(f"a table at {SQL}: is named with --table, and the column that grows with --grows")
    if kind != SQL and (rows.table or rows.grows):
        told = f"--table and --grows are for a table at {SQL}:, got one at {kind!r:.40}"
        known = kind in (DELTA, ICEBERG, PARQUET)
        raise TapUsageError(told if known else f"{told}: put {SQL}: before the URL of a database")


def describe_error(error: Exception) -> str:
    """Return the first line of what a library says of an error."""
    told = str(error).strip().partition("\n")[0]
    return f"{told:.200}" or type(error).__name__
