"""Tap for a table: stamps the messages that each of its snapshots has brought, at the moment of its commit."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.segment import FORWARDED_RECORDS
from hopwatch.probes.finished_instance import build_end, build_hello, build_observations
from hopwatch.probes.metrics.account import TAP_OUTCOMES, Account, Output
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.probe import Probe
from hopwatch.probes.tables.message_rows import BadRow, MessageRows, RowMapping, concatenate_rows, read_messages
from hopwatch.probes.tables.snapshot_batches import (
    SnapshotInstance,
    build_columns,
    build_gap,
    count_reasons,
    find_drops,
)
from hopwatch.probes.tables.snapshots import MissingFileError, NewSnapshots, SnapshotPlace, SnapshotTable, TableSnapshot
from hopwatch.probes.tables.sources import describe_error
from hopwatch.probes.tables.state import OwedEnd, TableProgress, TableState
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapError, TapSourceError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.startup import open_checked_sink
from hopwatch.probes.taps.tally import TallyReporter, TapTally

SETTLE_S: Final = 5.0
"""Time that one try waits for the transport."""
RETRY_S: Final = 1.0
"""Interval of tries to settle a sink that refuses records."""
SAVE_S: Final = 1.0
"""Interval at which the progress is saved while there are more snapshots to read."""
MAX_ROWS: Final = 262_144
"""Messages that are packed at once; batches are cut by it, so it is a part of what makes them the same."""
UNSEEN_US: Final = 86_400_000_000
"""Time before a tap's first look of which it knows nothing: a monitor takes no older messages by default."""


class SnapshotInterruptedError(Exception):
    """The tap was stopped in the middle of a snapshot, which is sent again as a whole."""


class TableTap:
    """Tap that reads the new snapshots of a table, makes their records durable, and saves how far it has come.

    The observations of a snapshot come first. Its account is completed, by drops and bye, once the tap has caught up
    with the table: until then a window may have messages in the next snapshot. Its own probe stamps nothing, and says
    up to when the table was read, so that a table that nothing arrives in is no silent one.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a tap
        self,
        table: SnapshotTable,
        mapping: RowMapping,
        side: StampSide,
        probe: Probe,
        sink: BlockingSink,
        around: RunContext,
        state: TableState | None = None,
        *,
        are_bad_messages: bool = True,
        id_text: bool = True,
    ) -> None:
        """Combine the parts; ``probe`` has a sink of its own, ``sink`` takes the records of the snapshots."""
        self._table, self._mapping, self._side, self.probe, self._sink = table, mapping, side, probe, sink
        self._context, self._state = around, state
        self._are_bad_messages, self._id_text = are_bad_messages, id_text
        # What is read of the rows otherwise has numbers of its own: of equal numbers a monitor counts the first alone.
        self._account = f"{table.identity} {mapping.text} {side} {are_bad_messages} {id_text}"
        self._progress = self._saved = TableProgress()
        self._unsettled = 0
        self._trouble, self._notes = OncePerCause(), OncePerCause()
        self.tally, self.account = TapTally(), Account(TAP_OUTCOMES)
        self._reporter = TallyReporter(self.tally, around)

    def start(self, *, from_start: bool) -> None:
        """Find the place to start from: the saved one, else the present snapshot, else the first.

        What came before the present snapshot is told as unknown.

        Raises:
            TapSourceError: the state cannot be read or written.
            TapUsageError: the state is of another table.
        """
        saved = self._state.load() if self._state is not None else None
        if saved is not None:
            self._progress = self._saved = saved
            return
        last = None if from_start else self._table.find_last()
        self._progress = TableProgress(last)
        if last is not None:
            now_us = self._context.wall_us()
            begun = SnapshotPlace(f"{last.number}-seen-{now_us}", now_us)
            self._send_gap(now_us - UNSEEN_US, begun)
            self._settle()
        self._save()

    def run(self, every_s: float) -> None:
        """Run until the tap is stopped.

        Raises:
            TapSourceError: the progress cannot be saved, or the sink has lost stamps.
            TapUsageError: event times have no zone, or a column does not grow.
        """
        stop = self._context.stop
        while not stop.is_set():
            self.step()
            self._reporter.report_if_due()
            stop.wait(every_s)

    def step(self) -> None:
        """Read the new snapshots of the table; an error of the table, or of its library, is told, and tried again.

        Raises:
            TapSourceError: the progress cannot be saved, or the sink has lost stamps.
            TapUsageError: event times have no zone, or a column does not grow.
        """
        moment_us = self._context.wall_us()
        try:
            read_through_us = self._read_snapshots()
        except SnapshotInterruptedError:
            self._progress = self._saved
            return
        except TapError:
            raise
        except Exception as error:  # noqa: BLE001 - stores and catalogues are read by libraries that may raise anything
            if self._trouble.is_new(type(error).__name__):
                self._context.report(f"{self._table.name} cannot be read: {describe_error(error)}: trying on")
            return
        if self._trouble.rearm():
            self._context.report(f"{self._table.name} can be read again")
        self.probe.caught_up(moment_us if read_through_us is None else read_through_us)

    def close(self, *, bye: bool) -> None:
        """End the tap's own probe, and the sink of the snapshots."""
        self.probe.close(bye=bye)
        self._sink.close(SETTLE_S)

    def _read_snapshots(self) -> int | None:
        """Send what is new, and return up to when the table is read; None for the moment of asking."""
        found = self._table.find_new(self._progress.through, self._progress.planned)
        if not found.note:
            self._notes.rearm()
        elif self._notes.is_new(found.note):
            self._context.report(found.note)
        if found.is_gap:
            self._tell_gap(found.snapshots[0].place if found.snapshots else None)
        self._send_new(found)
        if self._progress.owed and not found.is_behind:
            for end in self._progress.owed:
                self._send(build_end(end.instance, end.drops, end.instance.epoch_us))
            self._settle()
            self._progress = replace(self._progress, owed=())
            self._save()
        return found.read_through_us

    def _send_new(self, found: NewSnapshots) -> None:
        """Send new snapshots, and keep what was read of them now and then, at their end, and where one cannot be."""
        read: list[SnapshotPlace] = []
        saved_s = self._context.monotonic_s()
        for snapshot in found.snapshots:
            if self._table.is_planned:
                self._progress = replace(self._progress, planned=snapshot.place)
                self._save()
            try:
                owed = tuple(self._send_snapshot(snapshot))
            except Exception as error:
                if not isinstance(error, SnapshotInterruptedError):
                    self._keep(found, read)
                raise
            self._progress = TableProgress(snapshot.place, (*self._progress.owed, *owed))
            read.append(snapshot.place)
            # Thousands may be new, each with an end that is owed: what is sent again after a kill counts once.
            if snapshot is found.snapshots[-1] or self._context.monotonic_s() - saved_s >= SAVE_S:
                self._keep(found, read)
                saved_s = self._context.monotonic_s()

    def _keep(self, found: NewSnapshots, read: list[SnapshotPlace]) -> None:
        """Make durable what was read, and forget the list of it."""
        self._settle()
        self._save()
        for place in read:
            found.keep(place)
        read.clear()

    def _tell_gap(self, first: SnapshotPlace | None) -> None:
        """Report snapshots that the table keeps no more, and tell them as a hole."""
        until = first or SnapshotPlace("now", self._context.wall_us())
        through = self._progress.through
        from_us = until.committed_us - UNSEEN_US if through is None else through.committed_us
        behind = "its first" if through is None else through.number
        what = f"snapshots of {self._table.name} between {behind} and {until.number} are kept no more"
        self._context.report(f"{what}: what they brought is unknown")
        self._send_gap(from_us, until)
        if first is None:
            self._settle()
            self._progress = replace(self._progress, through=self._table.find_last())
            self._save()

    def _send_gap(self, from_us: int, until: SnapshotPlace) -> None:
        instance = SnapshotInstance.of_gap(self.probe.stream, self.probe.node, self._table.identity, from_us, until)
        self._send(build_gap(instance, until.committed_us))

    def _send_snapshot(self, snapshot: TableSnapshot) -> Iterator[OwedEnd]:
        """Send the observations of a snapshot; yield the end that it is owed, if it had any rows."""
        if not snapshot.added:
            return
        place = snapshot.place
        instance = SnapshotInstance.of_snapshot(self.probe.stream, self.probe.node, self._account, place)
        self._send([build_hello(instance, instance.epoch_us)])
        instance = instance.after(1)
        bad: Counter[BadRow] = Counter()
        span: list[int] = []
        stamped = 0
        try:
            known, known_bad = self._read_known(snapshot)
            for rows in _join(self._read_rows(snapshot.added)):
                bad += rows.bad
                new = rows if not known else rows.select(_find_new(rows, known))
                if len(new):
                    span += (int(new.events_us.min()), int(new.events_us.max()))
                columns = build_columns(new, instance.epoch_us, self._side)
                batches = build_observations(
                    instance, columns, new.id_texts if self._id_text else (), instance.epoch_us
                )
                self._send(batches)
                instance = instance.after(len(batches))
                stamped += len(new)
            bad -= known_bad
        except MissingFileError as error:
            self._context.report(f"snapshot {place.number} of {self._table.name}: {error}: what it held is unknown")
            # Its own instance is left without an end: another tap may have read the file, and numbered on.
            self._send_gap(place.committed_us - UNSEEN_US, SnapshotPlace(f"{place.number}-unread", place.committed_us))
            return
        self._count(stamped, bad)
        drops = find_drops(bad, (min(span), max(span)) if span else None, place.committed_us)
        yield OwedEnd(instance, tuple(drops) if self._are_bad_messages else ())

    def _read_rows(self, files: Iterable[str]) -> Iterator[MessageRows]:
        for file in files:
            for batch in self._table.read_rows(file, self._mapping.columns):
                if self._context.stop.is_set():
                    raise SnapshotInterruptedError
                yield read_messages(batch, self._mapping)

    def _read_known(self, snapshot: TableSnapshot) -> tuple[set[bytes], Counter[BadRow]]:
        """Return the ids, and the bad rows, of the files that a snapshot has rewritten."""
        ids: set[bytes] = set()
        bad: Counter[BadRow] = Counter()
        for rows in self._read_rows(snapshot.removed):
            ids.update(rows.iter_ids())
            bad += rows.bad
        return ids, bad

    def _count(self, stamped: int, bad: Counter[BadRow]) -> None:
        self.tally.stamped += stamped
        self.account.receive(stamped)
        self._unsettled += stamped
        for reason, count in count_reasons(bad):
            self.tally.bad[reason] += count
            self.account.receive(count)
            self.account.drop(count, reason)

    def _send(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            if not self._sink.send(encode(batch)):
                raise SnapshotInterruptedError

    def _settle(self) -> None:
        """Make all records durable.

        Raises:
            SnapshotInterruptedError: the tap was stopped before they were.
            TapSourceError: some are lost for good.
        """
        while not self._sink.settle(SETTLE_S):
            self._sink.failed()
            if self._sink.has_lost:
                raise TapSourceError(
                    "the sink could not keep what was stamped last: see to it and start again; the last snapshot that "
                    "was kept is before that"
                )
            if self._context.stop.wait(RETRY_S):
                raise SnapshotInterruptedError
        self.account.emit(self._unsettled, Output.STAMPS)
        self._unsettled = 0

    def _save(self) -> None:
        if self._state is not None:
            self._state.save(self._progress)
        self._saved = self._progress


def _find_new(rows: MessageRows, known: set[bytes]) -> np.ndarray:
    return np.fromiter((message_id not in known for message_id in rows.iter_ids()), bool, len(rows))


def _join(parts: Iterable[MessageRows]) -> Iterator[MessageRows]:
    """Yield rows in larger parts, so that a batch is full where a snapshot has enough messages of its window."""
    waiting: list[MessageRows] = []
    count = 0
    for rows in parts:
        waiting.append(rows)
        count += len(rows)
        if count >= MAX_ROWS:
            yield concatenate_rows(waiting)
            waiting, count = [], 0
    if waiting:
        yield concatenate_rows(waiting)


def open_records_sink(url: str, around: RunContext) -> BlockingSink:
    """Open the sink of the records of snapshots, which are of instances of their own.

    Raises:
        TapUsageError: the URL cannot be.
        TapSourceError: nothing can be written there.
    """
    name = f"{FORWARDED_RECORDS}.{socket.gethostname()}-{os.getpid()}.{around.wall_us()}"
    return BlockingSink(open_checked_sink(url, name, around.clock), around)
