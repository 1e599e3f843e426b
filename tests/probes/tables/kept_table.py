"""A table in memory, of which each snapshot has files of rows; and a tap of it that is killed at times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.snapshots import MissingFileError, NewSnapshots, SnapshotPlace, TableSnapshot
from hopwatch.probes.tables.state import TableState
from hopwatch.probes.tables.tap import TableTap
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.sides import StampSide
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.tap_bench import Place

COMMITTED_US = EPOCH_US + 600_000_000
"""When the first snapshot of a kept table is committed; each further one a second later."""
Row = tuple[object, object]


class Killed(BaseException):
    """The tap is killed."""


class MortalSink(MemorySink):
    """Takes as many records as it is allowed to; then whoever sends is killed."""

    def __init__(self) -> None:
        """Allow any number."""
        super().__init__()
        self.left = 10**9

    def send(self, record: bytes) -> bool:
        """Take a record."""
        self.left -= 1
        if self.left < 0:
            raise Killed
        return super().send(record)


class KeptTable:
    """A table that keeps everything, until snapshots or files are taken away."""

    is_planned = False
    name = "kept:orders"
    identity = "kept:1"

    def __init__(self, id_type: pa.DataType | None = None) -> None:
        """Start without a snapshot."""
        self.snapshots: list[TableSnapshot] = []
        self.files: dict[str, list[Row]] = {}
        self.expired: set[str] = set()
        self.error: Exception | None = None
        self._id_type = id_type or pa.int64()

    def commit(self, *files: Sequence[Row], removed: Sequence[str] = ()) -> TableSnapshot:
        """Add a snapshot with new files, in place of others."""
        number = len(self.snapshots)
        names = tuple(f"{number}-{place}" for place in range(len(files)))
        self.files |= {name: list(rows) for name, rows in zip(names, files, strict=True)}
        place = SnapshotPlace(str(number), COMMITTED_US + number * 1_000_000)
        self.snapshots.append(TableSnapshot(place, names, tuple(removed)))
        return self.snapshots[-1]

    def find_last(self) -> SnapshotPlace | None:
        """Return the last place."""
        return self.snapshots[-1].place if self.snapshots else None

    def find_columns(self) -> dict[str, str]:
        """Return the columns."""
        return {"id": "id", "at": "at"}

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:
        """Return the snapshots behind a place."""
        assert planned is None
        if self.error is not None:
            raise self.error
        behind = self.snapshots[0 if after is None else int(after.number) + 1 :]
        there = [snapshot for snapshot in behind if snapshot.place.number not in self.expired]
        return NewSnapshots(there, is_gap=len(there) < len(behind))

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        if file not in self.files:
            raise MissingFileError(f"its file {file} is gone")
        assert columns == ("id", "at")
        ids, times = ([row[place] for row in self.files[file]] for place in range(2))
        yield pa.record_batch({"id": pa.array(ids, self._id_type), "at": pa.array(times, pa.int64())})


class TappedTable:
    """A tap of a kept table, which keeps its state in a folder and sends into a sink that outlives it."""

    def __init__(self, table: KeptTable, folder: Path | None = None, *, from_start: bool = True) -> None:
        """Start the tap."""
        self.table, self._folder, self._from_start = table, folder, from_start
        self.sink = MortalSink()
        self.place = Place()
        self.start()

    def start(self, *, are_bad_messages: bool = True, id_text: bool = True) -> TableTap:
        """Start another tap where the state says."""
        self.place = Place()
        self.place.clock.advance((COMMITTED_US + 3_600_000_000 - EPOCH_US) / 1e6)
        state = None if self._folder is None else TableState(self._folder / "state", self.table.identity, "kept:orders")
        self.tap = TableTap(
            self.table, RowMapping("id", "at"), StampSide.IN, self.place.probe,
            BlockingSink(self.sink, self.place.around), self.place.around, state,
            are_bad_messages=are_bad_messages, id_text=id_text,
        )  # fmt: skip
        self.tap.start(from_start=self._from_start)
        return self.tap

    def batches(self) -> list[Batch]:
        """Return what was sent of snapshots, in order."""
        return [decode(record) for record in self.sink.records]

    def first_batches(self) -> list[Batch]:
        """Return what a monitor counts: of equal numbers of an instance the first."""
        counted: dict[tuple[str, int, int], Batch] = {}
        for batch in self.batches():
            counted.setdefault((batch.probe, batch.epoch_us, batch.seq), batch)
        return list(counted.values())

    def ids(self) -> list[int]:
        """Return the integer ids that a monitor counts."""
        return sorted(
            int.from_bytes(batch.message_ids[at : at + 16], "big")
            for batch in self.first_batches()
            for at in range(0, len(batch.message_ids), 16)
        )

    def open_instances(self) -> set[str]:
        """Return the instances that have not said bye."""
        found = self.batches()
        return {batch.probe for batch in found} - {batch.probe for batch in found if batch.kind is BatchKind.BYE}


def at(second: float) -> int:
    """Return an event time."""
    return EPOCH_US + int(second * 1_000_000)


__all__ = ["COMMITTED_US", "KeptTable", "Killed", "ManualClock", "MortalSink", "TappedTable", "at"]
