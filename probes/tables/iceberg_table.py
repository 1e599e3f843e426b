"""Iceberg table: its snapshots are those of its present branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table.snapshots import Operation, Snapshot

from hopwatch.probes.tables.parquet_rows import FIELD_ID, read_parquet
from hopwatch.probes.tables.snapshots import MissingFileError, NewSnapshots, SnapshotPlace, TableSnapshot
from hopwatch.probes.taps.errors import TapUsageError

SCHEME: Final = "iceberg:"


class IcebergSnapshots:
    """Snapshots of an Iceberg table, ``CATALOG/NAMESPACE.TABLE``; pyiceberg's own configuration has the catalog."""

    is_planned = False

    def __init__(self, place: str) -> None:
        """Load the table.

        Raises:
            TapUsageError: the place is none.
        """
        self.name = f"{SCHEME}{place}"
        catalog, _, table = place.partition("/")
        if not catalog or "." not in table:
            raise TapUsageError(f"an Iceberg table is {SCHEME}CATALOG/NAMESPACE.TABLE, got {self.name!r:.80}")
        self._table = load_catalog(catalog).load_table(table)
        self.identity = f"iceberg:{self._table.metadata.table_uuid}"

    def find_columns(self) -> dict[str, str]:
        """Return the names of the columns."""
        return {field.name: field.name for field in self._table.schema().fields}

    def find_last(self) -> SnapshotPlace | None:
        """Return the place of the present snapshot; None of a table without any."""
        found = self._table.refresh().current_snapshot()
        return None if found is None else _place(found)

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:  # noqa: ARG002 - it cuts nothing
        """Return the snapshots behind a place; those that were expired are missing."""
        metadata = self._table.refresh().metadata
        by_id = {found.snapshot_id: found for found in metadata.snapshots}
        last_number, last_id = (0, None) if after is None else _parse_place(after)
        known = set(_list_ancestors(by_id, last_id))
        chain: list[Snapshot] = []
        at = metadata.current_snapshot_id
        while at is not None and at not in known and at in by_id:
            chain.append(by_id[at])
            at = by_id[at].parent_snapshot_id
        # Of a snapshot whose parent was expired some forget which it was; numbers go up by one.
        is_gap = bool(chain) and (at is None or at not in known) and chain[-1].sequence_number != last_number + 1
        return NewSnapshots([self._build_snapshot(found, by_id) for found in reversed(chain)], is_gap)

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a file, by the ids of their fields, whatever they were called when it was written.

        Raises:
            MissingFileError: the file cannot be read for good.
        """
        ids = {field.field_id: field.name for field in self._table.schema().fields if field.name in columns}

        def open_file() -> Any:  # noqa: ANN401 - whatever its library opens
            return self._table.io.new_input(file).open()

        try:
            with open_file() as opened:
                schema = pq.ParquetFile(opened).schema_arrow
        except FileNotFoundError:
            raise MissingFileError(f"its file {file} is gone") from None
        except pa.ArrowInvalid as error:
            raise MissingFileError(f"its file {file} is no Parquet file: {error!s:.120}") from None
        in_file = {field.name: ids[number] for field in schema if (number := _field_id(field)) in ids}
        # Files that were imported into the table have no ids.
        by_name = {name: name for name in columns if not any(_field_id(field) for field in schema)}
        return read_parquet(open_file, file, in_file or by_name)

    def _build_snapshot(self, snapshot: Snapshot, by_id: Mapping[int, Snapshot]) -> TableSnapshot:
        added, removed = self._find_changes(snapshot)
        parent = by_id.get(snapshot.parent_snapshot_id or 0)
        if added and parent is not None and _operation(parent) is Operation.DELETE:
            # An overwrite may be written as two snapshots, of which the first only deletes.
            removed = tuple(sorted({*removed, *self._find_changes(parent)[1]}))
        return TableSnapshot(_place(snapshot), added, removed)

    def _find_changes(self, snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files that a snapshot has added and removed; a compaction has changed none of its rows."""
        found: dict[ManifestEntryStatus, list[str]] = {}
        manifests = () if _operation(snapshot) is Operation.REPLACE else snapshot.manifests(self._table.io)
        for manifest in manifests:
            if manifest.content is not ManifestContent.DATA or manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False):
                if entry.snapshot_id == snapshot.snapshot_id:
                    found.setdefault(entry.status, []).append(entry.data_file.file_path)
        added, removed = (tuple(sorted(found.get(status, ()))) for status in _CHANGES)
        return added, removed


_CHANGES: Final = (ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED)


def _place(snapshot: Snapshot) -> SnapshotPlace:
    return SnapshotPlace(f"{snapshot.sequence_number or 0}-{snapshot.snapshot_id}", snapshot.timestamp_ms * 1_000)


def _parse_place(place: SnapshotPlace) -> tuple[int, int]:
    """Return the sequence number and the id of a place."""
    number, _, snapshot_id = place.number.partition("-")
    return int(number), int(snapshot_id)


def _operation(snapshot: Snapshot) -> Operation | None:
    return None if snapshot.summary is None else snapshot.summary.operation


def _list_ancestors(by_id: Mapping[int, Snapshot], at: int | None) -> Iterator[int]:
    """Yield a snapshot and its ancestors as far as they are known, and the first that is not."""
    while at is not None:
        yield at
        at = by_id[at].parent_snapshot_id if at in by_id else None


def _field_id(field: pa.Field) -> int | None:
    told = (field.metadata or {}).get(FIELD_ID)
    return None if told is None else int(told)
