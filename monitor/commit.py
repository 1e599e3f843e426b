"""One micro-batch, or all of ``--once``, into the ledger and the store: the rows in, one transaction out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from sqlalchemy import Connection

from hopwatch.monitor import holes
from hopwatch.monitor.holes import NOTHING_EXPECTED, Expected
from hopwatch.monitor.ledger import Conclusion, Ledger, Live
from hopwatch.monitor.parcels import NOT_LANDED, FactSheet, Offsets, SetAside
from hopwatch.monitor.results import Status, WindowResult
from hopwatch.monitor.rules import StreamRules
from hopwatch.monitor.spark.rows import FACTS_ROW, OFFSETS_ROW, SET_ASIDE_ROW, TALLY_ROW
from hopwatch.monitor.store import fencing, outliers, reader, rollups, undeclared_names, writer
from hopwatch.monitor.store.past import PackedTallies, StoredPast
from hopwatch.monitor.unheard import Folder

CONCLUSIONS_A_WRITE: Final = 200
EARLIEST_US: Final = -(2**63)
LATEST_US: Final = 2**63 - 1
HOURS_A_BATCH: Final = 1
"""How many hours a micro-batch rolls up: one costs up to a quarter of a second, and readers do without meanwhile."""


def restore(connection: Connection, rules: Mapping[str, StreamRules]) -> Ledger:
    """Return the ledger as the store last left it."""
    ledger = Ledger(rules)
    ledger.holes = list(reader.read_holes(connection))
    ledger.take_up(reader.read_books(connection))
    ledger.ranges = {stream: span for stream, span in reader.read_stream_ranges(connection).items() if stream in rules}
    for stream in ledger.ranges:
        ledger.live[stream] = {}
    for row in reader.read_live_windows(connection):
        if row["stream"] in rules:
            ledger.live[row["stream"]][row["window_start_us"]] = Live(
                Status(row["status"]),
                row["revision"],
                row["recovered"],
                row["last_first_sighting_us"],
                row["is_settled"],
                row["books"],
            )
    since_us = ledger.unread_since_us(fencing.read_watermark_us(connection))
    ledger.note_unread(reader.read_set_aside_since(connection, since_us))
    return ledger


class Follower(Protocol):
    """What is done at the end of a micro-batch, in its transaction: it stands or falls with the results.

    It remembers nothing itself, so that a transaction that is tried again decides the same.
    """

    def note(self, conclusion: Conclusion) -> Any:  # noqa: ANN401 - whatever the follower needs of it
        """Return what to keep of a window until the end of the batch; none when nothing is."""

    def follow(self, connection: Connection, noted: Sequence[Any], watermark_us: int) -> None:
        """Do what is to be done, once all windows of the batch are written."""


class Written(NamedTuple):
    """What a micro-batch has come to: the windows that were judged, and the segments that nothing needs any more.

    ``read_through_us`` is the moment up to which all partitions of a topic are read, 0 where that is not known anew.
    The watermark is 0 where nothing was written.
    """

    results: tuple[WindowResult, ...]
    spent: tuple[str, ...]
    read_through_us: int = 0
    watermark_us: int = 0


class Committed(NamedTuple):
    """A micro-batch that is written: the windows that were judged, the watermark, and how long all of it took."""

    results: tuple[WindowResult, ...]
    watermark_us: int
    took_s: float


Observer = Callable[[Committed], None]
"""Who is told of each micro-batch once it is written; it never raises."""


def unobserved(committed: Committed) -> None:
    """Tell nobody."""
    del committed


def batch(  # noqa: PLR0913, PLR0917 - what came, what was to be read, and who follows
    connection: Connection,
    ledger: Ledger,
    rows: Sequence[Any],
    batch_id: int,
    expected: Expected = NOTHING_EXPECTED,
    follower: Follower | None = None,
    folders: Iterable[Folder] = (),
) -> Written:
    """Write one micro-batch that has passed the fence; the caller holds the transaction.

    ``folders`` are those of a spool, whether anything was read of them or not.
    """
    before_us = fencing.read_watermark_us(connection)
    read = [Offsets.unpack(bytes(row.payload)) for row in rows if row.kind == OFFSETS_ROW]
    newest_us = max((row.watermark_us for row in rows), default=before_us)
    # Nothing is judged before all partitions of a backlog are read up to it.
    through_us = holes.read_through_us(expected, read)
    watermark_us = max(before_us, min(newest_us, through_us))
    windows = take_in(connection, ledger, rows, watermark_us, batch_id, read, expected, folders)
    results: list[WindowResult] = []
    noted: list[Any] = []
    for piece in conclude(connection, ledger, windows, watermark_us):
        results += [conclusion.result for conclusion in piece]
        if follower is not None:
            noted += [note for conclusion in piece if (note := follower.note(conclusion)) is not None]
    forget(connection, ledger, watermark_us)
    outliers.save_states(connection, ledger)
    if not windows:
        # Where there is nothing to judge, there is time.
        roll_up(connection, ledger)
    if follower is not None:
        follower.follow(connection, noted, watermark_us)
    # A batch below its limit has read all that was there when it was planned.
    read_through_us = min(through_us, max((run.last_arrival_us for run in read), default=0))
    spent = tuple(writer.release_segments(connection, before_us, batch_id))
    return Written(tuple(results), spent, read_through_us, watermark_us)


def take_in(  # noqa: PLR0913, PLR0917 - what came, what was read of the transport, and what was to be read
    connection: Connection,
    ledger: Ledger,
    rows: Iterable[Any],
    watermark_us: int,
    batch_id: int = 0,
    read: Sequence[Offsets] = (),
    expected: Expected = NOTHING_EXPECTED,
    folders: Iterable[Folder] = (),
) -> PackedTallies:
    """Write what came in: tallies, books, records set aside; return the tallies, packed, by window and shard."""
    changes = writer.Changes(watermark_us, batch_id)
    sheets: list[FactSheet] = []
    sighted: dict[tuple[str, int], int] = {}
    for row in rows:
        if row.kind == TALLY_ROW:
            key = row.stream, row.window_start_ms * 1_000
            changes.tallies[*key, row.shard] = bytes(row.payload)
            sighted[key] = max(sighted.get(key, 0), row.last_first_sighting_us)
        elif row.kind == FACTS_ROW:
            sheets.append(FactSheet.unpack(bytes(row.payload)))
        elif row.kind == SET_ASIDE_ROW:
            changes.set_aside.append(SetAside.unpack(bytes(row.payload)))
    written = ledger.absorb(sheets) | ledger.note_unread(changes.set_aside, folders)
    changes.books = [ledger.books[key] for key in written]
    changes.streams = dict(ledger.ranges)
    changes.holes = list(holes.find(expected, read, reader.read_last_arrivals_us(connection)))
    changes.last_arrivals_us = {run.place: run.last_arrival_us for run in sorted(read, key=attrgetter("first"))}
    ledger.holes += changes.holes
    changes.segments = _segments(ledger, sheets, changes.set_aside)
    for (stream, start_us), sighted_us in sighted.items():
        ledger.sight(stream, start_us, sighted_us)
    writer.write_changes(connection, changes)
    undeclared_names.count_undeclared(connection, changes.set_aside, ledger.rules)
    tallied: PackedTallies = {}
    for (stream, start_us, shard), parcel in changes.tallies.items():
        tallied.setdefault((stream, start_us), {})[shard] = parcel
    return tallied


def keep_segments(connection: Connection, ledger: Ledger, rows: Iterable[Any], batch_id: int) -> None:
    """Note only which segments a batch points into: all else of it is written already."""
    sheets = [FactSheet.unpack(bytes(row.payload)) for row in rows if row.kind == FACTS_ROW]
    set_aside = [SetAside.unpack(bytes(row.payload)) for row in rows if row.kind == SET_ASIDE_ROW]
    writer.save_segments(connection, _segments(ledger, sheets, set_aside), batch_id)


def _segments(ledger: Ledger, sheets: Iterable[FactSheet], set_aside: Iterable[SetAside]) -> dict[str, int]:
    """Return until when each segment is needed; one with a record set aside is kept for whoever looks into it."""
    needed: dict[str, int] = {}
    for sheet in sheets:
        needed[sheet.path] = max(needed.get(sheet.path, 0), ledger.needed_until_us(sheet))
    for place in set_aside:
        needed.pop(place.path, None)
    # What came through Kafka without observations was not landed.
    needed.pop(NOT_LANDED, None)
    return needed


def conclude(
    connection: Connection, ledger: Ledger, tallied: PackedTallies, watermark_us: int
) -> Iterator[list[Conclusion]]:
    """Judge what is due and write it, piece by piece; yields each piece once it is written."""
    conclusions = ledger.conclude(tallied.keys(), watermark_us, StoredPast(connection, ledger.rules, tallied))
    while piece := list(islice(conclusions, CONCLUSIONS_A_WRITE)):
        writer.write_conclusions(connection, piece, watermark_us)
        yield outliers.detect_outliers(connection, ledger, piece)


def forget(connection: Connection, ledger: Ledger, watermark_us: int) -> None:
    """Drop from ledger and store what nothing can change any more; what windows became stays."""
    writer.drop_tallies(connection, ledger.forget(watermark_us))


def roll_up(connection: Connection, ledger: Ledger) -> None:
    """Write the next hours none of whose windows can change any more, some at a time."""
    oldest_us = {stream: min(windows, default=LATEST_US) for stream, windows in ledger.live.items()}
    stale = rollups.read_stale_hours(connection)
    due = [key for key in stale if key[0] in oldest_us and key[1] + rollups.HOUR_US <= oldest_us[key[0]]]
    for stream, hour_us in due[:HOURS_A_BATCH]:
        rollups.roll_up_hour(connection, stream, hour_us)
