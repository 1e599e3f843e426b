"""Tests of a folder of Parquet files, which appear, are written, compacted and cleaned up between looks of a tap."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.parquet_folder import ParquetFolder
from hopwatch.probes.tables.rewrites import FileLook, RowsPrint, find_rewrites
from hopwatch.probes.tables.sources import FolderReading, open_table
from hopwatch.probes.tables.state import TableState
from hopwatch.probes.tables.tap import UNSEEN_US, TableTap
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.testing import EPOCH_US, ManualClock
from tests.probes.tables.kept_table import Killed, MortalSink, at
from tests.support.file_permissions import without_root
from tests.support.tap_bench import Place


class Folder:
    """A folder, and a tap of it that outlives its kills by its state."""

    def __init__(self, root: Path, *, from_start: bool = True) -> None:
        """Make it, and start the tap."""
        self.root, self.folder, self.from_start = root, root / "orders", from_start
        self.folder.mkdir(exist_ok=True)
        self.clock, self.sink = ManualClock(), MortalSink()
        self.table: ParquetFolder | None = None
        self.start()

    def start(self) -> None:
        """Start a tap where the state says."""
        self.place = Place()
        self.place.clock.advance((self.clock.us - EPOCH_US) / 1e6)
        self.clock = self.place.clock
        self.end()
        state = self.root / "state"
        table = open_table(f"parquet:{self.folder}", self.clock, reading=FolderReading(("id", "at"), state))
        assert isinstance(table, ParquetFolder)
        self.table = table
        self.tap = TableTap(
            table, RowMapping("id", "at"), StampSide.IN, self.place.probe,
            BlockingSink(self.sink, self.place.around), self.place.around,
            TableState(state, table.identity, table.name),
        )  # fmt: skip
        self.tap.start(from_start=self.from_start)

    def end(self) -> None:
        """End the tap, as its process ends: with it goes the lock of the state."""
        if self.table is not None:
            self.table.close()

    def put(self, name: str, *numbers: int, day: int = 0) -> Path:
        """Write a file of messages of a day under another name, and rename it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        times = pa.array([at(number + day * 86_400) for number in numbers], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": pa.array(numbers, pa.int64()), "at": times}), part)
        return part.rename(path)

    def look(self, after_s: float = 5) -> list[int]:
        """Look after some time, and return the ids that have arrived."""
        self.clock.advance(after_s)
        before = len(self.sink.records)
        self.tap.step()
        return sorted(
            int.from_bytes(batch.message_ids[place : place + 16], "big")
            for batch in self.batches()[before:]
            for place in range(0, len(batch.message_ids), 16)
        )

    def batches(self) -> list[Batch]:
        """Return what was sent."""
        return [decode(record) for record in self.sink.records]

    @property
    def open_instances(self) -> set[str]:
        """Return the instances that have not said bye."""
        found = self.batches()
        return {batch.probe for batch in found} - {batch.probe for batch in found if batch.kind is BatchKind.BYE}

    def is_complete(self) -> bool:
        """Return whether the tap says that it has read all up to now."""
        assert self.place.probe._sender is not None
        return self.place.probe._sender._caught_up_us == self.clock.us


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return an empty folder, and its tap."""
    return Folder(tmp_path)


def test_each_file_is_counted_once(folder: Folder) -> None:
    """Flat or in partitions, whatever its name, also after a restart; none whose name begins with a dot or _."""
    assert folder.look() == []
    assert folder.is_complete()
    folder.put("a.parquet", 1, 2)
    folder.put("day=2026-11-26/hour=10/000000_0", 3)
    folder.put("_temporary/b.parquet", 9)
    assert folder.look() == [1, 2, 3]
    folder.put("day=2026-11-26/hour=11/000000_0", 4)
    assert folder.look() == [4]
    folder.put("c.parquet", 5)
    folder.start()
    assert folder.look() == [5]
    assert folder.look() == []
    assert folder.is_complete()
    assert not folder.open_instances
    assert folder.place.heard == []


def test_a_kill_while_files_are_sent_sends_the_same_again(folder: Folder) -> None:
    """A monitor counts each batch once by its number, however much was read before the kill."""
    folder.put("a", 1)
    folder.put("b", 2)
    for allowed in (1, 2, 1, 2, 1):
        folder.sink.left = allowed
        with pytest.raises(Killed):
            folder.look()
        folder.start()
    folder.sink.left = 99
    folder.look()
    counted = {(batch.probe, batch.epoch_us, batch.seq): batch.message_ids for batch in folder.batches()}
    assert sorted(int.from_bytes(ids, "big") for ids in counted.values() if ids) == [1, 2]
    assert all(counted[batch.probe, batch.epoch_us, batch.seq] == batch.message_ids for batch in folder.batches())
    assert not folder.open_instances
    assert folder.look() == []


def test_a_file_that_is_being_written_is_waited_for(folder: Folder) -> None:
    """Until it has its end; nothing is complete before, and no file beside it has told all."""
    whole = folder.put("_whole", 1, 2).read_bytes()
    written = folder.folder / "a.parquet"
    written.write_bytes(whole[:100])
    folder.put("b.parquet", 3)
    assert folder.look() == [3]
    assert not folder.is_complete()
    assert folder.open_instances
    for size in (101, 102, 103):
        written.write_bytes(whole[:size])
        assert folder.look(50) == []
        assert not folder.is_complete()
    assert folder.place.heard == [f"{written} is still being written: nothing is complete meanwhile"]
    written.write_bytes(whole)
    assert folder.look() == [1, 2]
    assert folder.is_complete()
    assert not folder.open_instances


def test_a_file_that_is_cut_for_good_has_not_arrived(folder: Folder) -> None:
    """Nobody can read what is in it: a line tells so, and nothing waits for it."""
    cut = folder.folder / "a.parquet"
    cut.write_bytes(b"PAR1 and no more")
    assert folder.look() == []
    assert not folder.is_complete()
    assert folder.look(61) == []
    assert folder.is_complete()
    assert folder.look(61) == []
    told = f"{cut} is no whole Parquet file, and is written no more: what is in it has not arrived"
    assert folder.place.heard == [told]


def test_a_file_that_has_its_end_and_cannot_be_read_is_unknown(folder: Folder) -> None:
    """Others may read it, as one that is encrypted."""
    (folder.folder / "a").write_bytes(b"PAR1 and nothing that is known PARE")
    folder.look()
    (told,) = folder.place.heard
    assert "a is no Parquet file" in told
    assert told.endswith("what it held is unknown")


def test_compacted_files_have_not_arrived_again(folder: Folder) -> None:
    """Removed first or last, in one file or two, beside new files, and again later; also while the tap was away."""
    files = [folder.put(f"day=1/{number}", number) for number in range(4)]
    assert folder.look() == [0, 1, 2, 3]
    compacted = folder.put("day=1/0-3", *range(4))
    assert folder.look() == []
    for file in files:
        file.unlink()
    folder.put("day=1/4", 4)
    assert folder.look() == [4]
    compacted.unlink()
    assert folder.look() == []
    assert folder.is_complete()
    folder.put("day=1/0-1", 0, 1)
    folder.put("day=1/2-3", 2, 3)
    assert folder.look(600) == []
    for file in (folder.folder / "day=1").iterdir():
        file.unlink()
    folder.put("day=1/all", *range(5))
    folder.start()
    assert folder.look() == []
    folder.put("day=1/5", 5)
    assert folder.look() == [5]
    assert folder.place.heard == []


def test_what_a_rewrite_has_brought_is_counted(folder: Folder) -> None:
    """Of a file with more rows, or other ones, all have arrived: none is missing, those from before are duplicates."""
    file = folder.put("a", 1, 2)
    assert folder.look() == [1, 2]
    file.unlink()
    folder.put("b", 1, 2, 3)
    assert folder.look() == [1, 2, 3]
    (folder.folder / "b").unlink()
    folder.put("c", 1, 2, 4)
    assert folder.look() == [1, 2, 4]


def test_ids_that_are_used_anew_are_other_messages(folder: Folder) -> None:
    """Those of yesterday were cleaned up: what has the same ids, and other event times, is no rewrite of them."""
    file = folder.put("yesterday", 1, 2)
    assert folder.look() == [1, 2]
    file.unlink()
    folder.put("today", 1, 2, day=1)
    assert folder.look() == [1, 2]


def test_a_file_that_came_twice_is_a_duplicate(folder: Folder) -> None:
    """A compaction has ten minutes to remove the other one."""
    folder.put("a", 1, 2)
    assert folder.look() == [1, 2]
    folder.put("b", 1, 2)
    assert [*folder.look(), *folder.look(599)] == []
    assert folder.look(2) == [1, 2]


def test_a_rewrite_is_looked_for_in_the_hour_after(folder: Folder) -> None:
    """Rows that come back later have arrived twice."""
    folder.put("a", 1).unlink()
    folder.put("b", 2)
    assert folder.look() == [2]
    (folder.folder / "b").unlink()
    assert [*folder.look(), *folder.look(3601)] == []
    folder.put("c", 2)
    assert folder.look() == [2]


def test_a_tap_may_begin_behind_the_files_that_are_there(tmp_path: Path) -> None:
    """The day before is told as unknown."""
    first = Folder(tmp_path)
    first.put("a", 1)
    first.end()
    (tmp_path / "state").unlink()
    folder = Folder(tmp_path, from_start=False)
    folder.put("b", 2)
    assert folder.look() == [2]
    begin, end = folder.batches()[:2]
    assert (end.kind, end.seq) == (BatchKind.BYE, begin.seq + 2)
    assert end.complete_through_us - begin.epoch_us == UNSEEN_US
    assert folder.look() == []


@pytest.mark.parametrize("written_s", [0, 2**31, 2**40])
def test_a_file_may_have_any_time(folder: Folder, written_s: int) -> None:
    """A tool that copies sets it to 1970, a clock that is ahead to a year to come."""
    path = folder.put("a", 1)
    os.utime(path, (written_s, written_s))
    assert folder.look() == [1]
    assert folder.look() == []
    assert not folder.open_instances


def test_a_file_without_rights_is_waited_for(open_folder: Path) -> None:
    """Others may read it: one line tells of it, and nothing is complete until the tap can read it too."""
    folder = Folder(open_folder)
    path = folder.put("a", 1)
    path.chmod(0)
    with without_root():
        assert folder.look() == []
        assert not folder.is_complete()
    (told,) = folder.place.heard
    assert "cannot be read: [Errno 13] Permission denied" in told
    path.chmod(0o644)
    assert folder.look() == [1]
    assert folder.is_complete()


def test_a_folder_is_read_by_one_tap(folder: Folder, tmp_path: Path) -> None:
    """The second one ends, as one whose folder is not there."""
    with pytest.raises(TapSourceError, match=r"another import keeps its state in .*state\.files: stop it"):
        open_table(f"parquet:{folder.folder}", folder.clock, reading=FolderReading(("id", "at"), tmp_path / "state"))
    with pytest.raises(TapSourceError, match=r"the folder .*nothing cannot be read: No such file or directory"):
        open_table(f"parquet:{tmp_path}/nothing", folder.clock)


def test_a_file_without_the_columns_has_bad_rows(folder: Folder) -> None:
    """Its rows are drops, as in any table, and other files count."""
    pq.write_table(pa.table({"x": [1, 2]}), folder.folder / "a")
    folder.put("b", 3)
    assert folder.look() == [3]
    assert folder.tap.tally.bad == {"no_id": 2}


def test_columns_are_those_of_a_file(folder: Folder) -> None:
    """As long as there is none, nothing is known of them."""
    assert folder.table
    assert folder.table.find_columns() == {}
    folder.put("a", 1)
    assert list(folder.table.find_columns()) == ["id", "at"]


def print_of(numbers: list[int]) -> RowsPrint:
    """Return the print of rows with these ids."""
    return RowsPrint.of_rows(np.array(numbers, np.uint64).repeat(2).reshape(-1, 2))


IDS = st.lists(st.integers(0, 2**63), min_size=1, max_size=5)


@given(old=st.lists(IDS, min_size=1, max_size=4), cut=st.integers(0, 20), stray=st.integers(0, 2**63))
def test_rows_are_found_however_they_are_dealt_out(old: list[list[int]], cut: int, stray: int) -> None:
    """A rewrite has exactly the rows that are gone, in any order and in any files: with one more it is none."""
    gone = {FileLook(f"/f/old-{place}", 1, place): print_of(ids) for place, ids in enumerate(old)}
    rows = sorted(number for ids in old for number in ids)
    new = {FileLook(f"/f/{place}", 1, 0): part for place, part in enumerate((rows[:cut], rows[cut:])) if part}

    def find(files: dict[FileLook, list[int]]) -> list[tuple[FileLook, ...]]:
        found = find_rewrites(files, gone, {}, lambda look: len(files[look]), lambda look: print_of(files[look]))
        return [rewrite.new for rewrite in found]

    assert find(new) == [tuple(sorted(new))]
    changed = next(iter(new))
    assert not find(new | {changed: [*new[changed], stray]})
    assert not find(new | {changed: [stray + 2**63, *new[changed][1:]]})
