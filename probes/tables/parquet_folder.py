"""Folder of Parquet files as a table: each file is a snapshot, whose commit is when it was written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hopwatch.probes.clock import Clock
from hopwatch.probes.files.done_files import DoneFiles
from hopwatch.probes.files.id_values import read_ids
from hopwatch.probes.files.places import list_folder
from hopwatch.probes.tables.parquet_rows import read_parquet
from hopwatch.probes.tables.rewrites import FileLook, RowsPrint, find_rewrites
from hopwatch.probes.tables.snapshots import MissingFileError, NewSnapshots, SnapshotPlace, TableSnapshot
from hopwatch.probes.values import IdFormat

SCHEME: Final = "parquet:"
WRITTEN_WITHIN_US: Final = 60_000_000
"""Time within which a file without its end must have changed to count as one that is being written."""
GONE_US: Final = 3_600_000_000
"""Time for which the rows of a file that is gone are looked for in new files."""
HELD_US: Final = 600_000_000
"""Time for which the files may still stand there whose rows a new one holds, before its rows count as duplicates."""
_ENDS: Final = (b"PAR1", b"PARE")
_MIN_BYTES: Final = 12
_NAME_BYTES: Final = 8


class _Unfinished(NamedTuple):
    """File without its end: how it looked last, when it was first seen, and when it was last seen to change."""

    look: FileLook
    first_us: int
    changed_us: int


class _Held(NamedTuple):
    """New file that holds the rows of others which are still there: since when, and its print."""

    since_us: int
    told: RowsPrint


class ParquetFolder:
    """Files below a folder, but those whose names begin with a dot or ``_``; each is read once it has its end."""

    is_planned = False

    def __init__(self, place: str, clock: Clock, columns: Sequence[str], state: Path | None = None) -> None:
        """Read what is known of the folder; beside the state of the tap is noted which files were read.

        Raises:
            TapUsageError: the state is of another folder.
            TapSourceError: the folder cannot be read, or another process has the state.
        """
        self._folder, self._clock, self._columns = Path(place), clock, tuple(columns)
        self.name, self.identity = f"{SCHEME}{place}", f"{SCHEME}{self._folder.resolve()}"
        self._known: set[FileLook] = set()
        self._prints: dict[FileLook, RowsPrint] = {}
        self._gone_us: dict[FileLook, int] = {}
        self._held: dict[FileLook, _Held] = {}
        self._unfinished: dict[str, _Unfinished] = {}
        self._sent: dict[SnapshotPlace, FileLook] = {}
        self._replaced: dict[FileLook, tuple[FileLook, ...]] = {}
        self._done: DoneFiles | None = None
        self._open = ExitStack()
        list(list_folder(self._folder))
        if state is not None:
            files = state.with_name(f"{state.name}.files")
            self._done = DoneFiles(files, f"{self.identity} {' '.join(self._columns)}")
            self._open.enter_context(self._done.lock())
            self._prints = {FileLook(*look): RowsPrint(*told) for look, told in self._done.rows.items()}
            self._known.update(self._prints)

    def close(self) -> None:
        """Close the notes of what was read, and unlock them."""
        self._open.close()

    def find_columns(self) -> dict[str, str]:
        """Return the names of the columns of a file; none if there is no file yet."""
        for look in sorted(self._list_looks()):
            if _has_end(look):
                return {name: name for name in pq.read_schema(look.path).names}
        return {}

    def find_last(self) -> SnapshotPlace | None:
        """Return the place behind all files that are there, which are then known; None of an empty folder."""
        found = sorted(look for look in self._list_looks() if _has_end(look))
        for look in found:
            self._note(look)
        return max((self._place(look) for look in found), key=lambda place: place.committed_us, default=None)

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:  # noqa: ARG002 - it notes each file
        """Return the files that are new, as a snapshot each; those that hold the rows of others are empty ones."""
        now_us = self._clock.monotonic_ns() // 1_000
        there = self._list_looks()
        self._forget_gone(there, now_us)
        new = {look for look in there if not self._knows(look)}
        whole = {look for look in new if _has_end(look)}
        note, is_written = self._watch_unfinished(new - whole, now_us)
        rewritten, held = self._find_rewritten(whole, now_us)
        placed = ((self._place(look), look) for look in whole - held)
        found = sorted(placed, key=lambda one: (one[0].committed_us, one))
        self._sent = dict(found)
        snapshots = [TableSnapshot(place, () if look in rewritten else (look.path,)) for place, look in found]
        return NewSnapshots(
            snapshots, read_through_us=0 if is_written else None, note=note, is_behind=is_written, keep=self._keep
        )

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a file.

        Raises:
            MissingFileError: it is gone, or is no Parquet file.
        """
        look, told = _look_at(file), RowsPrint()
        for batch in _read_file(file, columns):
            told = told.plus(self._print_rows(batch))
            yield batch
        if look is not None and look == _look_at(file):
            self._prints[look] = told

    def _list_looks(self) -> set[FileLook]:
        return {look for file in list_folder(self._folder) if (look := _look_at(file)) is not None}

    def _knows(self, look: FileLook) -> bool:
        if look not in self._known and self._done is not None and self._done.knows_look(look.path):
            self._known.add(look)
        return look in self._known

    def _keep(self, place: SnapshotPlace) -> None:
        self._note(self._sent[place])

    def _note(self, look: FileLook) -> None:
        """Note that a file is known, and that nothing is told any more by those whose rows it holds."""
        self._known.add(look)
        old = self._replaced.pop(look, ())
        for one in old:
            self._prints.pop(one, None)
        if self._done is not None:
            for one in (look, *old):
                self._done.add(one.path, (one.size, one.mtime_ns), rows=self._prints.get(one, ()))

    def _forget_gone(self, there: Collection[FileLook], now_us: int) -> None:
        """Forget files that are gone: at once if their rows are not known, else once nobody has taken them over."""
        self._gone_us = {look: self._gone_us.get(look, now_us) for look in self._known.difference(there)}
        for look, since_us in list(self._gone_us.items()):
            if look not in self._prints or now_us - since_us > GONE_US:
                self._known.discard(look)
                self._prints.pop(look, None)
                del self._gone_us[look]

    def _watch_unfinished(self, looks: Collection[FileLook], now_us: int) -> tuple[str, bool]:
        """Return what there is to tell of files without their end, and whether one of them is being written."""
        before, self._unfinished = self._unfinished, {}
        for look in looks:
            seen = before.get(look.path, _Unfinished(look, now_us, now_us))
            changed_us = seen.changed_us if seen.look == look else now_us
            self._unfinished[look.path] = _Unfinished(look, seen.first_us, changed_us)
        note, is_written = "", False
        for path, seen in sorted(self._unfinished.items()):
            if now_us - seen.changed_us > WRITTEN_WITHIN_US:
                note = f"{path} is no whole Parquet file, and is written no more: what is in it has not arrived"
                continue
            is_written = True
            if now_us - seen.first_us > WRITTEN_WITHIN_US:
                note = f"{path} is still being written: nothing is complete meanwhile"
        return note, is_written

    def _find_rewritten(self, new: Collection[FileLook], now_us: int) -> tuple[set[FileLook], set[FileLook]]:
        """Return the new files that hold the rows of others that are gone, and those of which some are still there."""
        known = {look: told for look, told in self._prints.items() if new and look in self._known}
        gone = {look: told for look, told in known.items() if look in self._gone_us}
        here = {look: told for look, told in known.items() if look not in self._gone_us}
        prints = {look: one.told for look, one in self._held.items()}

        def take_print(look: FileLook) -> RowsPrint:
            if look not in prints:
                prints[look] = self._take_print(look)
            return prints[look]

        rewritten, held = set[FileLook](), dict[FileLook, _Held]()
        for rewrite in find_rewrites(new, gone, here, _count_rows, take_print):
            if here.keys().isdisjoint(rewrite.old):
                rewritten.update(rewrite.new)
                self._prints |= {look: prints[look] for look in rewrite.new}
                self._replaced |= dict.fromkeys(rewrite.new, rewrite.old)
            else:
                first = _Held(now_us, RowsPrint())
                held |= {look: _Held(self._held.get(look, first).since_us, prints[look]) for look in rewrite.new}
        self._held = held
        return rewritten, {look for look, one in held.items() if now_us - one.since_us <= HELD_US}

    def _take_print(self, look: FileLook) -> RowsPrint:
        try:
            told = [self._print_rows(batch) for batch in _read_file(look.path, self._columns)]
        except MissingFileError:
            return RowsPrint()
        return reduce(RowsPrint.plus, told, RowsPrint())

    def _print_rows(self, batch: pa.RecordBatch) -> RowsPrint:
        """Return the print of rows, of ids and event times: ids may be used anew by other messages."""
        there = [batch.column(name) for name in self._columns if name in batch.schema.names]
        if not there:
            return RowsPrint(batch.num_rows)
        values = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in there]
        return RowsPrint.of_rows(*(read_ids(column, IdFormat.AUTO).ids for column in values))

    def _place(self, look: FileLook) -> SnapshotPlace:
        """Return the place of a file: the same for whoever reads it, as long as it stands there unchanged."""
        inside = os.path.relpath(look.path, self._folder)
        told = f"{look.size} {look.mtime_ns} ".encode() + os.fsencode(inside)
        number = blake2b(told, digest_size=_NAME_BYTES).hexdigest()
        return SnapshotPlace(number, max(look.mtime_ns, 0) // 1_000)


def _look_at(file: str) -> FileLook | None:
    try:
        found = Path(file).stat()
    except FileNotFoundError:
        return None
    return FileLook(str(Path(file).absolute()), found.st_size, found.st_mtime_ns)


def _has_end(look: FileLook) -> bool:
    """Return whether a file has the last bytes of a Parquet file, which are written last."""
    try:
        with Path(look.path).open("rb") as file:
            file.seek(max(0, look.size - len(_ENDS[0])))
            return look.size >= _MIN_BYTES and file.read(len(_ENDS[0])) in _ENDS
    except FileNotFoundError:
        return False


def _count_rows(look: FileLook) -> int:
    """Return the number of rows that a file says it has; -1 of one that says none."""
    try:
        return int(pq.read_metadata(look.path).num_rows)
    except (OSError, pa.ArrowException):
        return -1


def _read_file(file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return read_parquet(lambda: pa.OSFile(file, "rb"), file, {name: name for name in columns})
