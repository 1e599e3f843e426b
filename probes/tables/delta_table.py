"""Delta table: its snapshots are the versions of its log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from hopwatch.probes.tables.parquet_rows import read_parquet
from hopwatch.probes.tables.snapshots import NewSnapshots, SnapshotPlace, TableSnapshot
from hopwatch.probes.taps.errors import TapUsageError

SCHEME: Final = "delta:"
_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"


class DeltaSnapshots:
    """Snapshots of a Delta table at a path or URL; access to object stores comes from their usual variables."""

    is_planned = False

    def __init__(self, place: str) -> None:
        """Open the table.

        Raises:
            DeltaError: it cannot be read.
        """
        self.name, self._address = f"{SCHEME}{place}", place
        self._table = DeltaTable(place)
        self._files = fs.PyFileSystem(DeltaStorageHandler.from_table(self._table._table))  # noqa: SLF001 - its own way to open files
        self.identity = f"{SCHEME}{self._table.metadata().id}"

    def find_columns(self) -> dict[str, str]:
        """Return the names of the columns, and of each the one that it has in files."""
        fields = json.loads(self._table.schema().to_json())["fields"]
        return {field["name"]: field["metadata"].get(_PHYSICAL_NAME, field["name"]) for field in fields}

    def find_last(self) -> SnapshotPlace | None:
        """Return the place of the present version."""
        self._table.update_incremental()
        version = self._table.version()
        log = self._read_log(version)
        return self._place(version, log or [])

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:  # noqa: ARG002 - it cuts nothing
        """Return the versions behind a place; those whose log was cleaned up are missing.

        Raises:
            TapUsageError: another table has taken the place of this one; its versions count from 0 again.
        """
        if after is not None:
            self._check_identity(after)
        self._table.update_incremental()
        first = 0 if after is None else int(after.number) + 1
        logs = {version: self._read_log(version) for version in range(first, self._table.version() + 1)}
        found = [self._build_snapshot(version, log) for version, log in logs.items() if log is not None]
        return NewSnapshots(found, is_gap=len(found) < len(logs))

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a file.

        Raises:
            MissingFileError: the file cannot be read for good.
        """
        there = self.find_columns()
        in_file = {there[name]: name for name in columns if name in there}
        return read_parquet(lambda: self._files.open_input_file(file), file, in_file)

    def _check_identity(self, after: SnapshotPlace) -> None:
        """Check that the version at a place is still that of this table; where it is not known, ask the table anew."""
        log = self._read_log(int(after.number))
        if log is not None and self._place(int(after.number), log) == after:
            return
        if f"{SCHEME}{DeltaTable(self._address).metadata().id}" != self.identity:
            what = f"{self.name} is another table than the one that was read here"
            raise TapUsageError(f"{what}: begin anew with another file for --state, and --from-start")

    def _read_log(self, version: int) -> list[Mapping[str, Any]] | None:
        """Return the actions of a version; None if its log is gone."""
        try:
            with self._files.open_input_stream(_log_path(version)) as opened:
                text = opened.read()
        except FileNotFoundError:
            return None
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def _build_snapshot(self, version: int, log: Sequence[Mapping[str, Any]]) -> TableSnapshot:
        added, removed = ([_path(action[kind]) for action in log if _changes_data(action, kind)] for kind in _CHANGES)
        # A file that stands on both sides has only got other rows marked as deleted.
        both = set(added) & set(removed)
        return TableSnapshot(
            self._place(version, log),
            tuple(sorted(file for file in added if file not in both)),
            tuple(sorted(file for file in removed if file not in both)),
        )

    def _place(self, version: int, log: Sequence[Mapping[str, Any]]) -> SnapshotPlace:
        told: Mapping[str, Any] = next((action["commitInfo"] for action in log if "commitInfo" in action), {})
        committed_ms = told.get("inCommitTimestamp", told.get("timestamp"))
        if isinstance(committed_ms, int):
            return SnapshotPlace(str(version), committed_ms * 1_000)
        written = self._files.get_file_info(_log_path(version)).mtime_ns
        return SnapshotPlace(str(version), (written or 0) // 1_000)


_CHANGES: Final = ("add", "remove")


def _log_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _changes_data(action: Mapping[str, Any], kind: str) -> bool:
    """Return whether an action adds or removes rows; a compaction only moves them."""
    return bool(action.get(kind, {}).get("dataChange"))


def _path(action: Mapping[str, Any]) -> str:
    return unquote(str(action["path"]))
