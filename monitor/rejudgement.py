"""Judgement of one span once more, from records that the transport still has, beside what the store holds.

All records are read, so that the books know every batch; observations are tallied of the windows of the span alone.
Only these windows are written. A batch that the store's books have and the transport has no more is *gone*: windows
that it may have told of are UNKNOWN for its node, whatever else is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection

from hopwatch.monitor import micro_batch
from hopwatch.monitor.accounting.ledger import Conclusion, InstanceKey, Ledger, count_recovered, find_differences
from hopwatch.monitor.accounting.unheard_instances import SpoolFolder
from hopwatch.monitor.errors import StoreError, TransportError
from hopwatch.monitor.kernel.books import Book, find_gone, note_gone
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.kernel.window import AHEAD_US, WindowPolicy
from hopwatch.monitor.payloads import FactSheet
from hopwatch.monitor.results import Status, WindowResult, format_iso
from hopwatch.monitor.store import fencing, reader, rollups, writer
from hopwatch.monitor.store.past import StoredPast
from hopwatch.monitor.stream_config import StreamConfig


class Span(NamedTuple):
    """Windows that start in ``[from_us, to_us)``, both whole minutes, µs."""

    from_us: int
    to_us: int

    def __str__(self) -> str:
        """Return both ends."""
        return f"{format_iso(self.from_us)} to {format_iso(self.to_us)}"


class Rejudged(NamedTuple):
    """Counts of windows: judged again, of them with another result or new in the store, and left as they are.

    Of the last the transport has no record any more.
    """

    judged: int
    revised: int
    left: int


def require_span(connection: Connection, rules: Mapping[str, StreamConfig], span: Span) -> None:
    """Check that the windows of a span can be judged again in this store.

    Raises:
        StoreError: the stream that fills the store may change one of them, or their hours are closed.
    """
    for row in reader.read_live_windows(connection):
        if span.from_us <= row["window_start_us"] < span.to_us:
            what = f"the store's own stream can still change the window {format_iso(row['window_start_us'])}"
            raise StoreError(f"{what} of {row['stream']!r}: let --to be no later, or let hopwatch run judge it")
    for stream, hour_us in rollups.read_frozen_hours(connection, span.from_us, span.to_us):
        if stream in rules:
            what = (
                f"the hour of {stream!r} from {format_iso(hour_us)} on is closed: its windows or their digests are gone"
            )
            raise StoreError(f"{what}; choose a span behind it, or another store in [store] url")


def judge_span(  # noqa: PLR0913, PLR0917 - a store, and all that was read
    connection: Connection,
    rules: Mapping[str, StreamConfig],
    span: Span,
    rows: Iterable[Any],
    folders: Iterable[SpoolFolder] = (),
    transport: str = "the transport",
    report: Callable[[Sequence[WindowResult]], object] = len,
) -> Rejudged:
    """Judge the windows of a span anew and write them, in chunks; ``report`` is called with each chunk.

    ``rows`` are those of all records, with the tallies of the span's windows. The caller holds the transaction.

    Raises:
        StoreError: see :func:`require_span`.
        TransportError: no record is of the span.
    """
    require_span(connection, rules, span)
    ledger, came = Ledger(rules), micro_batch.sort_rows(rows)
    ledger.holes = list(reader.read_holes(connection))
    ledger.absorb(came.sheets)
    newest_us = max((book.last_arrival_us for book in ledger.books.values()), default=0)
    changes = writer.Changes(NEVER_US, set_aside=came.set_aside, books=list(ledger.books.values()))
    with_gone = _note_gone_batches(connection, ledger, span)
    ledger.note_unread([*reader.read_set_aside_since(connection, 0), *came.set_aside], folders)
    _choose_windows(connection, ledger, span, transport)
    if not fencing.is_of_stream(connection):
        changes.books = _remember_gone(changes.books, came.sheets, with_gone)
        changes.streams = _widen_ranges(connection, ledger)
        writer.write_changes(connection, changes)
    fencing.begin_span(connection, rules)
    for (stream, start_us), sighted_us in came.sighted.items():
        if start_us in ledger.live.get(stream, {}):
            ledger.sight(stream, start_us, sighted_us)
    past = _SpanPast(connection, rules, came.tallied)
    judged = ledger.conclude(past.packed.keys(), NEVER_US, past)
    streams = {book.stream for book in with_gone.values()}
    count = revised = 0
    while piece := list(islice(judged, micro_batch.CONCLUSIONS_PER_WRITE)):
        amended = [_amend(one, past, streams) for one in piece]
        revised += sum(is_new for _, is_new in amended)
        conclusions = [one for one, _ in amended]
        writer.write_conclusions(connection, conclusions, newest_us)
        writer.drop_tallies(connection, [(one.result.stream, one.result.window_start_us) for one in conclusions])
        report([one.result for one in conclusions])
        count += len(piece)
    starts = (reader.read_window_starts(connection, stream, *span) for stream in rules)
    return Rejudged(count, revised, sum(map(len, starts)) - count)


class _SpanPast(StoredPast):
    """Earlier results, and the tallies of what is read now alone."""

    def tallies(self, stream: str, start_us: int) -> list[Any]:
        """Return the tallies of a window's shards; empty where no record of it is left."""
        return super().tallies(stream, start_us) if (stream, start_us) in self.packed else []


def _note_gone_batches(connection: Connection, ledger: Ledger, span: Span) -> dict[InstanceKey, Book]:
    """Note in the books which batches are gone; return the store's books of the instances that miss any."""
    # Of the windows that are there: a span may be of many years.
    starts_us = {
        stream: [start_us for start_us in live if span.from_us <= start_us < span.to_us]
        for stream, live in ledger.live.items()
    }
    with_gone: dict[InstanceKey, Book] = {}
    for known in reader.read_books(connection):
        if known.stream not in ledger.rules:
            continue
        book = ledger.books.get(known.key) or Book(*known.key)
        if spans := find_gone(book, known):
            with_gone[known.key] = known
            config = ledger.rules[known.stream]
            here = starts_us.get(known.stream, ())
            touched = [start_us // 1_000 for start_us in here if _may_tell(config.at(start_us).terms, spans, start_us)]
            ledger.restore_books([note_gone(book, known, touched)])
    return with_gone


def _remember_gone(
    books: Iterable[Book], sheets: Sequence[FactSheet], with_gone: Mapping[InstanceKey, Book]
) -> list[Book]:
    """Return the books to keep: those that were read now, and of instances that miss batches all that ever was read.

    The counts of these stay those of the batches that were read first.
    """
    known = Ledger({})
    known.restore_books(with_gone.values())
    known.absorb(sheet for sheet in sheets if sheet.key in with_gone)
    joined = [replace(known.books[key], tallies=with_gone[key].tallies) for key in sorted(with_gone)]
    return [*(book for book in books if book.key not in with_gone), *joined]


def _may_tell(terms: WindowPolicy, spans: Iterable[tuple[int, int]], start_us: int) -> bool:
    """Return whether a batch that was sent in one of the spans may have counted in a window, however late it came."""
    first_us, last_us = start_us - AHEAD_US, terms.amendable_until_us(start_us)
    return any(first_us <= to_us and last_us >= from_us for from_us, to_us in spans)


def _choose_windows(connection: Connection, ledger: Ledger, span: Span, transport: str) -> None:
    """Leave the windows of the span that can be judged: a stream's store takes those alone that it has.

    Raises:
        TransportError: there is none.
    """
    kept = fencing.is_of_stream(connection)
    for stream, windows in ledger.live.items():
        stored = reader.read_window_starts(connection, stream, span.from_us, span.to_us) if kept else windows
        ledger.live[stream] = {
            start_us: window
            for start_us, window in windows.items()
            if span.from_us <= start_us < span.to_us and start_us in stored
        }
    if any(ledger.live.values()):
        return
    ends = [end_us for of_stream in ledger.ranges.values() for end_us in of_stream]
    there = f"has windows from {format_iso(min(ends))} to {format_iso(max(ends))}" if ends else "has no window at all"
    raise TransportError(f"nothing of {span} can be judged again: {transport} {there}")


def _widen_ranges(connection: Connection, ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Return the range of each stream with the windows of the span."""
    known = reader.read_stream_ranges(connection)
    ends = {stream: [*known.get(stream, ()), min(live), max(live)] for stream, live in ledger.live.items() if live}
    return {stream: (min(of_stream), max(of_stream)) for stream, of_stream in ends.items()}


def _amend(one: Conclusion, past: StoredPast, with_gone: set[str]) -> tuple[Conclusion, bool]:
    """Return a judgement as the next revision of what is stored, and whether it says anything new."""
    result = one.result
    before = past.result(result.stream, result.window_start_us)
    if before is None:
        return one, True
    changed = find_differences(before, result)
    if not changed:
        return one._replace(result=_with_life(result, before.status, before.revision, before.recovered)), False
    recovered = before.recovered
    if result.stream not in with_gone:
        # Of a message whose records are gone nobody knows that it turned up.
        recovered += count_recovered(result, one.lost, past)
    amended = _with_life(result, Status.AMENDED, before.revision + 1, recovered)
    return one._replace(result=amended, changed=changed), True


def _with_life(result: WindowResult, status: Status, revision: int, recovered: int) -> WindowResult:
    return replace(result, status=status, revision=revision, recovered=recovered)
