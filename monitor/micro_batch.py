"""Write one micro-batch, or all of ``--once``, to the ledger and the store in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from sqlalchemy import Connection

from hopwatch.monitor import outlier_detection, selftest_check
from hopwatch.monitor.accounting import holes
from hopwatch.monitor.accounting.clock_steps import find_clock_steps
from hopwatch.monitor.accounting.holes import NOTHING_PLANNED, PlannedRead
from hopwatch.monitor.accounting.late_heartbeats import find_late_heartbeats
from hopwatch.monitor.accounting.ledger import Conclusion, Ledger, LiveWindow
from hopwatch.monitor.accounting.restarts import find_restarts
from hopwatch.monitor.accounting.unheard_instances import SpoolFolder
from hopwatch.monitor.kernel.deferrals import Waits
from hopwatch.monitor.payloads import (
    NOT_LANDED,
    FactSheet,
    OffsetRun,
    SetAside,
    split_payloads,
    unpack_moment,
    unpack_recent,
    unpack_sheets,
)
from hopwatch.monitor.results import CommittedBatch, RecentFigures, Status, WindowResult
from hopwatch.monitor.row_kinds import CLOCK_ROW, FACTS_ROW, OFFSETS_ROW, RECENT_ROW, SET_ASIDE_ROW, TALLY_ROW
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store import fencing, reader, recent_figures, rollups, undeclared_names, writer
from hopwatch.monitor.store.past import PackedTallies, StoredPast
from hopwatch.monitor.store.seen_markers import mark_clock_steps, mark_late_heartbeats, mark_moves, mark_restarts
from hopwatch.monitor.stream_config import StreamConfig

CONCLUSIONS_PER_WRITE: Final = 200
LATEST_US: Final = 2**63 - 1
DUE_HOURS_PER_BATCH: Final = 60
"""Of so many hours that wait for their roll-up each micro-batch takes one, whatever else it has to do."""
MAX_HOURS_PER_BATCH: Final = 8
"""Maximum number of hours that one micro-batch rolls up: one takes up to 250 ms."""


def restore_ledger(connection: Connection, rules: Mapping[str, StreamConfig]) -> Ledger:
    """Return the ledger as it was last saved in the store."""
    ledger = Ledger(rules)
    ledger.holes = list(reader.read_holes(connection))
    ledger.restore_books(reader.read_books(connection))
    ledger.ranges = {stream: span for stream, span in reader.read_stream_ranges(connection).items() if stream in rules}
    for stream in ledger.ranges:
        ledger.live[stream] = {}
    in_flight = reader.read_in_flight(connection)
    for row in reader.read_live_windows(connection):
        if row["stream"] in rules:
            ledger.live[row["stream"]][row["window_start_us"]] = LiveWindow(
                Status(row["status"]),
                row["revision"],
                row["recovered"],
                row["last_first_sighting_us"],
                row["is_settled"],
                row["books"],
                Waits(row["waits_passed_us"], row["waits_next_us"]),
                in_flight=in_flight.get((row["stream"], row["window_start_us"]), ()),
            )
    since_us = ledger.unread_since_us(fencing.read_watermark_us(connection))
    ledger.note_unread(reader.read_set_aside_since(connection, since_us))
    return ledger


class BatchFollower(Protocol):
    """Hook that runs at the end of a micro-batch, inside its transaction.

    It remembers nothing itself, so that a transaction that is tried again decides the same.
    """

    def note(self, conclusion: Conclusion) -> Any:  # noqa: ANN401 - whatever the follower needs of it
        """Return what :meth:`follow` needs of a window, None if it needs nothing."""

    def follow(self, connection: Connection, noted: Sequence[Any], watermark_us: int) -> None:
        """Act on the noted windows, once all windows of the batch are written."""


class BatchResult(NamedTuple):
    """Result of a micro-batch: the windows that were judged, and the segments that can be deleted.

    ``read_through_us`` is the moment up to which all partitions of a topic are read, 0 where that is not known anew.
    The watermark is 0 where nothing was written, and so are ``records``, which the batch was to read. ``recent`` are
    the recent figures that are new.
    """

    results: tuple[WindowResult, ...]
    spent: tuple[str, ...]
    read_through_us: int = 0
    watermark_us: int = 0
    records: int = 0
    recent: tuple[RecentFigures, ...] = ()


BatchObserver = Callable[[CommittedBatch], None]
"""Callback that runs after each micro-batch is written; it never raises."""


ConfigObserver = Callable[[Mapping[str, StreamConfig] | None], None]
"""Callback that runs with the streams' versions once a changed configuration is in force, with None if it is refused.

It never raises.
"""


def ignore_config(rules: Mapping[str, StreamConfig] | None) -> None:
    """Do nothing: the observer of the configuration of a job without one."""
    del rules


def ignore_batch(committed: CommittedBatch) -> None:
    """Do nothing: the observer of a job without one."""
    del committed


def write_micro_batch(  # noqa: PLR0913, PLR0917 - what came, what was to be read, and who follows
    connection: Connection,
    ledger: Ledger,
    rows: Sequence[Any],
    batch_id: int,
    expected: PlannedRead = NOTHING_PLANNED,
    follower: BatchFollower | None = None,
    folders: Iterable[SpoolFolder] = (),
) -> BatchResult:
    """Write one micro-batch that has passed the fence; the caller holds the transaction.

    ``folders`` are those of a spool, whether anything was read of them or not.
    """
    before_us = fencing.read_watermark_us(connection)
    read = [OffsetRun.unpack(bytes(row.payload)) for row in rows if row.kind == OFFSETS_ROW]
    newest_us = max((row.watermark_us for row in rows), default=before_us)
    # Nothing is judged before all partitions of a backlog are read up to it.
    through_us = holes.read_through_us(expected, read)
    watermark_us = max(before_us, min(newest_us, through_us))
    windows = absorb_rows(connection, ledger, rows, watermark_us, batch_id, read, expected, folders)
    results: list[WindowResult] = []
    noted: list[Any] = []
    # The watermark of this batch is what the one before has read. Without one no alert is judged, and nothing is early.
    arrived_us = max((unpack_moment(bytes(row.payload)) for row in rows if row.kind == CLOCK_ROW), default=0)
    early_us = min(arrived_us, through_us) if watermark_us else 0
    for piece in conclude_windows(connection, ledger, windows, watermark_us, early_us):
        results += [conclusion.result for conclusion in piece]
        if follower is not None:
            noted += [note for conclusion in piece if (note := follower.note(conclusion)) is not None]
    forget_windows(connection, ledger, watermark_us)
    ledger.recent.absorb((unpack_recent(bytes(row.payload)) for row in rows if row.kind == RECENT_ROW), through_us)
    recent = ledger.renew_recent()
    recent_figures.save_recent(connection, recent)
    outlier_detection.save_series(connection, ledger)
    roll_up_hours(connection, ledger, is_quiet=not windows)
    if SELFTEST_STREAM in ledger.rules:
        selftest_check.check_minutes(connection, watermark_us)
    if follower is not None:
        follower.follow(connection, noted, watermark_us)
    # A batch below its limit has read all that was there when it was planned.
    read_through_us = min(through_us, max((run.last_arrival_us for run in read), default=0))
    spent = tuple(writer.release_segments(connection, before_us, batch_id))
    return BatchResult(tuple(results), spent, read_through_us, watermark_us, expected.records, recent)


def absorb_rows(  # noqa: PLR0913, PLR0917 - what came, what was read of the transport, and what was to be read
    connection: Connection,
    ledger: Ledger,
    rows: Iterable[Any],
    watermark_us: int,
    batch_id: int = 0,
    read: Sequence[OffsetRun] = (),
    expected: PlannedRead = NOTHING_PLANNED,
    folders: Iterable[SpoolFolder] = (),
) -> PackedTallies:
    """Write tallies, books and records set aside; return the packed tallies by window and shard."""
    came = sort_rows(rows)
    changes = writer.Changes(watermark_us, batch_id, set_aside=came.set_aside)
    for (stream, start_us), shards in came.tallied.items():
        changes.tallies |= {(stream, start_us, shard): parcel for shard, parcel in shards.items()}
    own = [one for one in came.sheets if one.stream in ledger.rules]
    steps, moves = find_clock_steps(ledger.books, own), ledger.partitions.absorb(came.sheets)
    late, new = find_late_heartbeats(ledger.books, came.sheets), {one.key for one in own} - ledger.books.keys()
    written = ledger.absorb(came.sheets) | ledger.note_unread(came.set_aside, folders)
    changes.books = [ledger.books[key] for key in written]
    changes.streams = dict(ledger.ranges)
    changes.holes = list(holes.find_holes(expected, read, reader.read_last_arrivals_us(connection)))
    changes.last_arrivals_us = {run.place: run.last_arrival_us for run in sorted(read, key=attrgetter("first"))}
    ledger.holes += changes.holes
    changes.segments = _find_needed_segments(ledger, came.sheets, came.set_aside)
    for (stream, start_us), sighted_us in came.sighted.items():
        ledger.sight(stream, start_us, sighted_us, came.tallied[stream, start_us])
    writer.write_changes(connection, changes)
    mark_restarts(connection, find_restarts(ledger.books, new))
    mark_clock_steps(connection, steps)
    mark_late_heartbeats(connection, late)
    mark_moves(connection, moves)
    undeclared_names.count_undeclared(connection, came.set_aside, ledger.rules)
    return came.tallied


class SortedRows(NamedTuple):
    """Rows of the job by kind; ``sighted`` has the last first sighting of each window that was tallied, µs."""

    tallied: PackedTallies
    sighted: dict[tuple[str, int], int]
    sheets: list[FactSheet]
    set_aside: list[SetAside]


def sort_rows(rows: Iterable[Any]) -> SortedRows:
    """Return rows of the job unpacked, by kind; a window's tallies by shard, still packed."""
    came = SortedRows({}, {}, [], [])
    for row in rows:
        if row.kind == TALLY_ROW:
            key = row.stream, row.window_start_ms * 1_000
            came.tallied.setdefault(key, {})[row.shard] = bytes(row.payload)
            came.sighted[key] = max(came.sighted.get(key, 0), row.last_first_sighting_us)
        elif row.kind == FACTS_ROW:
            came.sheets.extend(_unpack_sheets(row))
        elif row.kind == SET_ASIDE_ROW:
            came.set_aside.append(SetAside.unpack(bytes(row.payload)))
    return came


def _unpack_sheets(row: Any) -> Iterator[FactSheet]:  # noqa: ANN401 - a row of the job
    return (sheet for parcel in split_payloads(bytes(row.payload)) for sheet in unpack_sheets(parcel))


def keep_segments(connection: Connection, ledger: Ledger, rows: Iterable[Any], batch_id: int) -> None:
    """Save only the segments that a batch points into: the rest of it is written already."""
    sheets = [sheet for row in rows if row.kind == FACTS_ROW for sheet in _unpack_sheets(row)]
    set_aside = [SetAside.unpack(bytes(row.payload)) for row in rows if row.kind == SET_ASIDE_ROW]
    writer.save_segments(connection, _find_needed_segments(ledger, sheets, set_aside), batch_id)


def _find_needed_segments(ledger: Ledger, sheets: Iterable[FactSheet], set_aside: Iterable[SetAside]) -> dict[str, int]:
    """Return the time until which each segment is needed; those with a record set aside are kept for inspection."""
    needed: dict[str, int] = {}
    for sheet in sheets:
        needed[sheet.path] = max(needed.get(sheet.path, 0), ledger.needed_until_us(sheet))
    for place in set_aside:
        needed.pop(place.path, None)
    # What came through Kafka without observations was not landed.
    needed.pop(NOT_LANDED, None)
    return needed


def conclude_windows(
    connection: Connection, ledger: Ledger, tallied: PackedTallies, watermark_us: int, read_through_us: int = 0
) -> Iterator[list[Conclusion]]:
    """Judge the windows that are due and write them in chunks; yield each chunk once it is written.

    ``read_through_us`` is the moment up to which all that arrived is read, where that is later than the watermark.
    """
    past = StoredPast(connection, ledger.rules, tallied)
    conclusions = ledger.conclude(tallied.keys(), watermark_us, past, read_through_us)
    while piece := list(islice(conclusions, CONCLUSIONS_PER_WRITE)):
        writer.write_conclusions(connection, piece, watermark_us)
        yield outlier_detection.detect_outliers(connection, ledger, piece)


def forget_windows(connection: Connection, ledger: Ledger, watermark_us: int) -> None:
    """Drop windows that can no longer change from ledger and store; their results stay."""
    writer.drop_tallies(connection, ledger.forget(watermark_us))


def roll_up_hours(connection: Connection, ledger: Ledger, *, is_quiet: bool) -> None:
    """Roll up some of the hours whose windows can no longer change, the oldest first.

    A micro-batch that has nothing to judge rolls up one, and every one more, the more hours wait: readers work without
    them, and with many streams there is always something to judge.
    """
    oldest_us = {stream: min(windows, default=LATEST_US) for stream, windows in ledger.live.items()}
    stale = rollups.read_stale_hours(connection)
    due = [key for key in stale if key[0] in oldest_us and key[1] + rollups.HOUR_US <= oldest_us[key[0]]]
    for stream, hour_us in due[: min(len(due) // DUE_HOURS_PER_BATCH + is_quiet, MAX_HOURS_PER_BATCH)]:
        rollups.roll_up_hour(connection, stream, hour_us)
