"""Books: the batches received from a probe instance, and how complete its account of a window is.

Silence, loss and ignorance are three things, and the books tell them apart. A book is a value: :func:`absorb` returns a
new one; :func:`judge_books` judges books against windows. All moments are µs since 1970.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat, zip_longest
from operator import add, attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.packets import Packet
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.lag_histograms import PackedLags, add_histograms
from hopwatch.probes.contract.limits import TIMELESS_CAUSES, WINDOW_US

AFTERLIFE_US: Final = 10_000_000
"""Time that an instance without a bye lives beyond its last ``complete_through``."""
RETIRED_AFTER_US: Final = 600_000_000
"""Time that a silent instance without a bye may hold unreported stamps."""
MAX_DROPPED: Final = 2**53
"""Drops of one instance in a window count at most this many, so that nothing overflows."""
NO_OFFSET_US: Final = 2**63 - 1
"""In place of a bound of a clock's offset that is not known."""
ARRIVAL_TICK_US: Final = 1_000
"""Unit of arrival times by a broker, which are rounded down to it."""

_MIN_US: Final = -(2**63)
_MAX_US: Final = 2**63 - 1
_NOT_SENT: Final = 2

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

BOOKS_PER_PIECE: Final = 512
"""Books that are judged at once; so many that dropped as much as is counted at most can still be added up."""

IN_WINDOW: Final = 0
TOO_LATE: Final = 1
IMPLAUSIBLE: Final = 2
"""The standing of a batch's observations, decided by its own arrival alone."""
WINDOW_KINDS: Final = (BatchKind.OBSERVATIONS, BatchKind.METRICS)
"""Kinds of batches that say something of a window's messages."""
NEAR_US: Final = 86_400_000_000
"""Windows that start so much after an arrival are not noted: event times may lie, and a book must not grow by that.

Nor are spans of stamping kept apart that begin so much before an arrival.
"""


class BatchFact(NamedTuple):
    """Facts of one batch for the books; ``complete_through_us`` is no later than the arrival already.

    ``stamped_from_us`` is the earliest stamp of an implausible batch, no later than its arrival, and 0 of all others.
    ``offset_max_us`` says by how much the probe's clock was ahead of the broker's at most when the batch before was
    acknowledged, NO_OFFSET_US where it was not measured.
    """

    seq: int
    arrival_us: int
    complete_through_us: int
    sent_at_us: int
    window_start_ms: int
    stamped_from_us: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    kind: int
    standing: int
    offset_max_us: int = NO_OFFSET_US


class ClockOffset(NamedTuple):
    """Bounds of how far the clock of a probe is ahead of the clock of the brokers, µs; below 0 it is behind."""

    low_us: int
    high_us: int


class BatchRun(NamedTuple):
    """Batches ``first`` to ``last`` without a hole, when the first was sent, and the ``complete_through`` of the last.

    The first may be of the same flush as those missing before it, of which only the last carries the new moment. It was
    sent no later than it arrived, by this clock, and no earlier than what it completes.
    """

    first: int
    last: int
    sent_first_us: int
    complete_last_us: int


class ImplausibleSpan(NamedTuple):
    """Implausible observations: how many were stamped at some time between two moments, µs, both included."""

    from_us: int
    to_us: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method


class DropFact(NamedTuple):
    """Drops of one window and cause that the batch at place ``row`` of the facts reported."""

    row: int
    window_start_ms: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    cause: str


class PacketFact(NamedTuple):
    """Messages that the batch at place ``row`` of the facts counted in a window at one stamp, as on the wire.

    ``lags`` is the histogram of their lags, or empty.
    """

    row: int
    window_start_ms: int
    stamp: int
    count: int  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    id_xor: int
    id_sum: int
    bytes: int
    lags: PackedLags = b""

    @property
    def packet(self) -> Packet:
        """The count, its fingerprint and its bytes."""
        return Packet.from_wire(*self[3:7])


class InstanceCounts(NamedTuple):
    """Counts of the batches and observations of one instance, by what became of them."""

    batches: int = 0
    duplicate_batches: int = 0
    observations: int = 0
    duplicate_observations: int = 0
    too_late: int = 0
    implausible: int = 0

    @property
    def in_windows(self) -> int:
        """Observations that count in a window."""
        return self.observations - self.duplicate_observations - self.too_late - self.implausible

    def plus(self, other: InstanceCounts) -> InstanceCounts:
        """Return the sums."""
        return InstanceCounts(*map(add, self, other))


NOTHING_COUNTED: Final = InstanceCounts()


@dataclass(frozen=True, slots=True)
class Book:
    """The account of one probe instance: (stream, node, probe, epoch).

    ``runs`` are in order and never touch; between two of them lies a hole. ``sent`` maps the windows that it sent
    observations or counts of to whether any of them was set aside, as too late or implausible. ``aside`` has the
    implausible observations by the minute, µs, in which their stamping began, those that were counted among them.
    ``unplaced`` counts observations by window start, ms, in which the instance's node is not declared. ``counted`` has
    the packets of a node that counts, by window start, ms, and stamp, ``lags`` the histograms of their lags, where they
    told any.

    ``clock_offset`` is what was measured last, None if nothing was, or if it contradicts itself.

    An instance of which no record could be read has a book without runs: its arrivals are those of what was there.
    """

    stream: str
    node: str
    probe: str
    epoch_us: int
    first_arrival_us: int = 2**63 - 1
    last_arrival_us: int = -(2**63)
    runs: tuple[BatchRun, ...] = ()
    said_bye: bool = False
    skew_us: int = 0
    clock_offset: ClockOffset | None = None
    drops: Mapping[tuple[int, str], int] = field(default_factory=dict)
    sent: Mapping[int, bool] = field(default_factory=dict)
    aside: Mapping[int, ImplausibleSpan] = field(default_factory=dict)
    unplaced: Mapping[int, int] = field(default_factory=dict)
    counted: Mapping[tuple[int, int], Packet] = field(default_factory=dict)
    lags: Mapping[tuple[int, int], PackedLags] = field(default_factory=dict)
    tallies: InstanceCounts = NOTHING_COUNTED

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Identity of the instance."""
        return self.stream, self.node, self.probe, self.epoch_us

    @property
    def alive_from_us(self) -> int:
        """The epoch, but no later than the first arrival, in case the probe's clock is ahead."""
        return min(self.epoch_us, self.first_arrival_us)

    @property
    def complete_through_us(self) -> int:
        """The moment that its last batch completes."""
        return self.runs[-1].complete_last_us if self.runs else self.alive_from_us

    @property
    def has_holes(self) -> bool:
        """Return whether batches are missing before the last one."""
        return len(self.runs) > 1 or (bool(self.runs) and self.runs[0].first > 0)

    @property
    def missing_batches(self) -> int:
        """Number of batches that are missing before the last one."""
        return sum(missing for missing, _, _ in self.holes())

    def holes(self) -> list[tuple[int, int, int]]:
        """Return (missing batches, from, to) for each hole: the moments that its batches may speak of.

        A clock that was set back completes less than it did before: the span between the two moments is the same.
        """
        found, before, expected = [], self.alive_from_us, 0
        for run in self.runs:
            if run.first > expected:
                here = run.sent_first_us
                found.append((run.first - expected, min(before, here), max(before, here)))
            before, expected = run.complete_last_us, run.last + 1
        return found


class Accounts(NamedTuple):
    """Accounts of instances for windows; each field of shape (books, windows), or (windows,) of one book."""

    has_a_say: Bools
    heard: Bools
    told: Bools
    complete: Bools
    dropped: Int64s
    aside: Int64s
    unplaced: Int64s


def absorb(
    book: Book, facts: Sequence[BatchFact], drops: Sequence[DropFact] = (), packets: Sequence[PacketFact] = ()
) -> tuple[Book, list[bool]]:
    """Return the book with the batches ``facts`` written in, and which of them were new.

    A batch whose number the book has, or that stands earlier among ``facts`` by arrival, is a duplicate: it changes
    the tallies alone, whatever its content. The order of ``facts`` does not matter.
    """
    is_new = [False] * len(facts)
    new: list[BatchFact] = []
    for fact, row in sorted(zip(facts, range(len(facts)), strict=True)):
        if not (new and new[-1].seq == fact.seq) and not _has_batch(book.runs, fact.seq):
            is_new[row] = True
            new.append(fact)
    packets = [packet for packet in packets if is_new[packet.row]]
    written = replace(
        book,
        first_arrival_us=min([book.first_arrival_us, *[fact.arrival_us for fact in facts]]),
        last_arrival_us=max([book.last_arrival_us, *[fact.arrival_us for fact in new]]),
        runs=_extend(book.runs, new),
        said_bye=_said_bye(book, new),
        skew_us=_skew_us(book, new),
        clock_offset=_find_clock_offset(book, new),
        drops=_with_drops(book.drops, [drop for drop in drops if is_new[drop.row]]),
        sent=_with_sent(book.sent, new),
        aside=_with_aside(book.aside, [*_implausible_observations(new), *_implausible_packets(facts, packets)]),
        counted=_with_counted(book.counted, facts, packets),
        lags=_with_lags(book.lags, facts, packets),
        tallies=book.tallies.plus(count_batches(facts, is_new)),
    )
    return written, is_new


def judge_book(book: Book, starts_us: Int64s, ends_us: Int64s, horizons_us: Int64s) -> Accounts:
    """Judge one book as :func:`judge_books` does; each field of shape (windows,)."""
    ((_, judged),) = judge_books([book], starts_us, ends_us, horizons_us)
    return Accounts(*(of_books[0] for of_books in judged))


def judge_books(
    books: Sequence[Book], starts_us: Int64s, ends_us: Int64s, horizons_us: Int64s
) -> Iterator[tuple[Sequence[Book], Accounts]]:
    """Judge books against windows, each given by its start, end and horizon; SEMANTICS.md, "Books".

    Yields pieces of at most BOOKS_PER_PIECE books with their accounts.
    """
    for first in range(0, len(books), BOOKS_PER_PIECE):
        piece = books[first : first + BOOKS_PER_PIECE]
        yield piece, _judge_piece(piece, starts_us, ends_us, horizons_us)


def _judge_piece(books: Sequence[Book], starts_us: Int64s, ends_us: Int64s, horizons_us: Int64s) -> Accounts:
    through_us, *moments_us = np.array([_find_moments_us(book) for book in books], np.int64).T[:, :, np.newaxis]
    life, may_hold = moments_us[:2], moments_us[2:]
    said_bye, is_heard = np.array([(book.said_bye, bool(book.runs)) for book in books]).T[:, :, np.newaxis]
    sent, gaps = _find_sent(books, starts_us)
    dropped, aside, unplaced = np.zeros((3, len(books), len(starts_us)), np.int64)
    told = ((through_us >= horizons_us) | said_bye) & ~gaps & is_heard
    for place, book in enumerate(books):
        if book.drops:
            dropped[place] = _dropped(book, starts_us)
        if book.drops or book.aside:
            aside[place] = _aside(book, starts_us, horizons_us)
        if book.unplaced:
            unplaced[place] = _by_start(book.unplaced.items(), starts_us)
        for _, *span in book.holes() if book.has_holes else ():
            told[place] &= ~_meet(span, starts_us, horizons_us)
    heard = sent | (_meet(life, starts_us, ends_us - 1) & is_heard)
    has_a_say = heard | (dropped > 0) | _meet(life, starts_us, horizons_us) | _meet(may_hold, starts_us, horizons_us)
    return Accounts(has_a_say, heard, told, told & (dropped == 0), dropped, aside, unplaced)


def _find_moments_us(book: Book) -> tuple[int, int, int, int, int]:
    """Return what a book completes, from when to when its instance lives, and from when to when it may hold stamps."""
    alive_from_us, through_us = book.alive_from_us, book.complete_through_us
    # A probe that follows a source has completed nothing before it has caught up, and a clock may be behind.
    silent_from_us = max(alive_from_us, through_us)
    if book.said_bye:
        return through_us, alive_from_us, through_us, silent_from_us, max(silent_from_us - 1, _MIN_US)
    ends_us = through_us + AFTERLIFE_US, max(silent_from_us, book.last_arrival_us) + RETIRED_AFTER_US
    lives_until_us, retired_at_us = (min(end_us, _MAX_US) for end_us in ends_us)
    return through_us, alive_from_us, lives_until_us, silent_from_us, retired_at_us


def _find_sent(books: Sequence[Book], starts_us: Int64s) -> tuple[Bools, Bools]:
    """Return of which windows each instance sent something, and where any of it was set aside; (books, windows)."""
    starts_ms = (starts_us // 1_000).tolist()
    told = chain.from_iterable(map(book.sent.get, starts_ms, repeat(_NOT_SENT)) for book in books)
    found = np.fromiter(told, np.int8, len(books) * len(starts_ms)).reshape(len(books), -1)
    return found != _NOT_SENT, found == 1


def forget(book: Book, before_ms: int) -> Book:
    """Return the book without what it knows of windows that start before ``before_ms``; numbers and tallies stay."""
    return replace(
        book,
        drops={key: count for key, count in book.drops.items() if key[0] >= before_ms},
        sent={start: gap for start, gap in book.sent.items() if start >= before_ms},
        aside={minute: aside for minute, aside in book.aside.items() if aside.to_us >= before_ms * 1_000},
        unplaced={start: count for start, count in book.unplaced.items() if start >= before_ms},
        counted={key: packet for key, packet in book.counted.items() if key[0] >= before_ms},
        lags={key: lags for key, lags in book.lags.items() if key[0] >= before_ms},
    )


def find_gone(book: Book, known: Book) -> list[tuple[int, int]]:
    """Return the spans in which batches were sent that ``known`` has and ``book``, which was read later, has not; µs.

    A span begins with what the batch before completes, and ends when the batch behind was sent, both included; behind
    the last batch it ends with the last arrival that is known.
    """
    spans, before_us, expected = [], min(book.alive_from_us, known.alive_from_us), 0
    ends = [(run.first, run.sent_first_us) for run in book.runs]
    ends.append((_MAX_US, max(known.complete_through_us, known.last_arrival_us)))
    for (first, sent_us), run in zip_longest(ends, book.runs):
        if any(had.first < first and had.last >= expected for had in known.runs):
            spans.append((min(before_us, sent_us), max(before_us, sent_us)))
        if run is not None:
            before_us, expected = run.complete_last_us, run.last + 1
    return spans


def note_gone(book: Book, known: Book, starts_ms: Iterable[int]) -> Book:
    """Return a book that misses batches which ``known`` has; they may have told of the windows that start so, ms.

    Its account of these windows is untold. So it is of those of which ``known`` had set something aside, and drops that
    were told are known still.
    """
    drops = {key: max(book.drops.get(key, 0), known.drops.get(key, 0)) for key in {**known.drops, **book.drops}}
    untold = {start for start, was_set_aside in known.sent.items() if was_set_aside} | set(starts_ms)
    return replace(
        book,
        first_arrival_us=min(book.first_arrival_us, known.first_arrival_us),
        last_arrival_us=max(book.last_arrival_us, known.last_arrival_us),
        drops=drops,
        sent={**book.sent, **dict.fromkeys(untold, True)},
    )


def is_over(book: Book, before_us: int) -> bool:
    """Return whether an instance has no say, and can hide nothing, in any window from ``before_us`` on."""
    last_us = book.complete_through_us
    if not book.said_bye:
        last_us = max(last_us, book.alive_from_us, book.last_arrival_us) + RETIRED_AFTER_US
    if last_us >= before_us:
        # So it is with all that live: what they sent is not looked through.
        return False
    named_ms = (*book.sent, *book.unplaced, *(start_ms for start_ms, _ in book.drops))
    ends_us = (start_ms * 1_000 + WINDOW_US for start_ms in named_ms)
    return all(end_us < before_us for end_us in chain(ends_us, (aside.to_us for aside in book.aside.values())))


def _meet(span_us: Sequence[int | Int64s], firsts_us: Int64s, lasts_us: Int64s) -> Bools:
    """Return which of the other spans a span meets, ends included; a span that ends before it starts meets none."""
    from_us, to_us = span_us
    return np.asarray((from_us <= to_us) & (from_us <= lasts_us) & (to_us >= firsts_us))


def _has_batch(runs: Sequence[BatchRun], seq: int) -> bool:
    """Return whether a sequence number lies in a run."""
    if not runs or seq > runs[-1].last:
        return False
    place = bisect_right(runs, seq, key=attrgetter("first"))
    return place > 0 and seq <= runs[place - 1].last


def _extend(runs: Sequence[BatchRun], new: Sequence[BatchFact]) -> tuple[BatchRun, ...]:
    """Merge new batches, none of them in a run, into the runs."""
    merged: list[list[int]] = []
    added = [(fact.seq, fact.seq, _sent_us(fact), fact.complete_through_us) for fact in new]
    for first, last, sent_us, complete_us in sorted([*runs, *added]):
        if merged and merged[-1][1] + 1 == first:
            merged[-1][1], merged[-1][3] = last, complete_us
        else:
            merged.append([first, last, sent_us, complete_us])
    return tuple([BatchRun(*run) for run in merged])


def _sent_us(fact: BatchFact) -> int:
    return max(fact.complete_through_us, min(fact.sent_at_us, fact.arrival_us))


def _has_later_batch(book: Book, new: Sequence[BatchFact]) -> bool:
    """Return whether the new batch with the highest number is the last of all."""
    return bool(new) and (not book.runs or new[-1].seq > book.runs[-1].last)


def _said_bye(book: Book, new: Sequence[BatchFact]) -> bool:
    """Return whether the batch with the highest number is a bye."""
    return new[-1].kind == BatchKind.BYE if _has_later_batch(book, new) else book.said_bye


def _skew_us(book: Book, new: Sequence[BatchFact]) -> int:
    """Return how far ahead of its arrival the batch with the highest number was sent, as far as 64 bits go."""
    return _ahead_us(new[-1]) if _has_later_batch(book, new) else book.skew_us


def _ahead_us(fact: BatchFact) -> int:
    return max(_MIN_US, min(fact.sent_at_us - fact.arrival_us, _MAX_US))


def _find_clock_offset(book: Book, new: Sequence[BatchFact]) -> ClockOffset | None:
    """Return the bounds of the newest measurement.

    A batch was sent no later than it arrived: so the clock is ahead by what it was sent after that, or more. The batch
    before the one that tells the upper bound was sent right before the measurement.
    """
    newest_seq = book.runs[-1].last if book.runs else -1
    measured = [place for place, fact in enumerate(new) if fact.offset_max_us != NO_OFFSET_US and fact.seq > newest_seq]
    if not measured:
        return book.clock_offset
    fact = new[measured[-1]]
    lows_us = [_ahead_us(fact)]
    if measured[-1] and new[measured[-1] - 1].seq == fact.seq - 1:
        lows_us.append(_ahead_us(new[measured[-1] - 1]))
    elif newest_seq == fact.seq - 1:
        lows_us.append(book.skew_us)
    low_us = max(lows_us) - ARRIVAL_TICK_US
    return ClockOffset(low_us, fact.offset_max_us) if _MIN_US <= low_us <= fact.offset_max_us else None


def _with_drops(known: Mapping[tuple[int, str], int], drops: Sequence[DropFact]) -> Mapping[tuple[int, str], int]:
    if not drops:
        return known
    counts = dict(known)
    for _, window_start_ms, count, cause in drops:
        counts[window_start_ms, cause] = counts.get((window_start_ms, cause), 0) + count
    return counts


def _with_sent(known: Mapping[int, bool], new: Iterable[BatchFact]) -> Mapping[int, bool]:
    noted: dict[int, bool] = {}
    for fact in new:
        start_ms = fact.window_start_ms
        is_near = start_ms * 1_000 < fact.arrival_us + NEAR_US
        if fact.kind in WINDOW_KINDS and (is_near or fact.standing != IMPLAUSIBLE):
            noted[start_ms] = fact.standing != IN_WINDOW or noted.get(start_ms, known.get(start_ms, False))
    return known if noted.items() <= known.items() else {**known, **noted}


def count_batches(facts: Iterable[BatchFact], is_new: Iterable[bool]) -> InstanceCounts:
    """Return the counts of batches, by which of them were new."""
    batches = duplicate_batches = observations = duplicate_observations = 0
    of_standing = dict.fromkeys((IN_WINDOW, TOO_LATE, IMPLAUSIBLE), 0)
    for fact, is_first in zip(facts, is_new, strict=True):
        batches += 1
        observations += fact.count
        if is_first:
            of_standing[fact.standing] += fact.count
        else:
            duplicate_batches += 1
            duplicate_observations += fact.count
    set_aside = of_standing[TOO_LATE], of_standing[IMPLAUSIBLE]
    return InstanceCounts(batches, duplicate_batches, observations, duplicate_observations, *set_aside)


def _with_aside(
    known: Mapping[int, ImplausibleSpan], implausible: Sequence[tuple[int, int, int]]
) -> Mapping[int, ImplausibleSpan]:
    """Add implausible observations by the minute in which their stamping began, however far back that is said to be.

    A batch that has none of them, such as a packet of a minute without messages, makes no span longer.
    """
    if not implausible:
        return known
    asides = dict(known)
    for from_us, to_us, count in implausible:
        if not count:
            continue
        minute_us = max(from_us, to_us - NEAR_US) // WINDOW_US * WINDOW_US
        before = asides.get(minute_us, ImplausibleSpan(from_us, to_us, 0))
        asides[minute_us] = ImplausibleSpan(
            min(from_us, before.from_us), max(to_us, before.to_us), before.count + count
        )
    return asides


def _implausible_observations(new: Iterable[BatchFact]) -> list[tuple[int, int, int]]:
    """Return from when to when they were stamped, and how many they are."""
    return [
        (fact.stamped_from_us, fact.arrival_us, fact.count)
        for fact in new
        if fact.standing == IMPLAUSIBLE and fact.kind == BatchKind.OBSERVATIONS
    ]


def _implausible_packets(facts: Sequence[BatchFact], packets: Iterable[PacketFact]) -> Iterable[tuple[int, int, int]]:
    """Yield the same of messages that were counted."""
    for packet in packets:
        fact = facts[packet.row]
        if fact.standing == IMPLAUSIBLE:
            yield fact.stamped_from_us, fact.arrival_us, packet.count


def _with_counted(
    known: Mapping[tuple[int, int], Packet], facts: Sequence[BatchFact], packets: Sequence[PacketFact]
) -> Mapping[tuple[int, int], Packet]:
    if not packets:
        return known
    counted = dict(known)
    for one in packets:
        if facts[one.row].standing == IN_WINDOW:
            key = one.window_start_ms, one.stamp
            counted[key] = counted.get(key, Packet()).plus(one.packet)
    return counted


def _with_lags(
    known: Mapping[tuple[int, int], PackedLags], facts: Sequence[BatchFact], packets: Sequence[PacketFact]
) -> Mapping[tuple[int, int], PackedLags]:
    if not packets:
        return known
    told: dict[tuple[int, int], list[PackedLags]] = {}
    for one in packets:
        if one.lags and facts[one.row].standing == IN_WINDOW:
            told.setdefault((one.window_start_ms, one.stamp), []).append(one.lags)
    return {**known, **{key: add_histograms([known.get(key, b""), *parts]) for key, parts in told.items()}}


def _aside(book: Book, starts_us: Int64s, horizons_us: Int64s) -> Int64s:
    """Return how many observations with event times that cannot be may be of each window, by when they were stamped."""
    counts = np.zeros(len(starts_us), np.int64)
    for aside in book.aside.values():
        counts += _meet((aside.from_us, aside.to_us), starts_us, horizons_us) * np.int64(min(aside.count, MAX_DROPPED))
    for (start_ms, cause), count in book.drops.items():
        if cause in TIMELESS_CAUSES:
            minute = start_ms * 1_000, start_ms * 1_000 + WINDOW_US - 1
            # Of the window of that minute itself they are drops.
            meets = _meet(minute, starts_us, horizons_us) & (starts_us != minute[0])
            counts += meets * np.int64(min(count, MAX_DROPPED))
    return np.minimum(counts, MAX_DROPPED)


def _dropped(book: Book, starts_us: Int64s) -> Int64s:
    return _by_start(((start_ms, count) for (start_ms, _), count in book.drops.items()), starts_us)


def _by_start(counts: Iterable[tuple[int, int]], starts_us: Int64s) -> Int64s:
    """Return the sum of the counts under each window's start, ms; at most MAX_DROPPED."""
    by_start: dict[int, int] = {}
    for start_ms, count in counts:
        by_start[start_ms * 1_000] = by_start.get(start_ms * 1_000, 0) + count
    if not by_start:
        return np.zeros(len(starts_us), np.int64)
    return np.array([min(by_start.get(start, 0), MAX_DROPPED) for start in starts_us.tolist()], np.int64)
