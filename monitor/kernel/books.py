"""Books: the batches received from a probe instance, and how complete its account of a window is.

Silence, loss and ignorance are three things, and the books tell them apart. A book is a value: :func:`absorb` returns a
new one; :func:`judge_book` judges it against windows. All moments are µs since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
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

_MAX_US: Final = 2**63 - 1

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

FACTS: Final = np.dtype(
    [
        ("seq", "<i8"),
        ("arrival_us", "<i8"),
        ("complete_through_us", "<i8"),
        ("sent_at_us", "<i8"),
        ("window_start_ms", "<i8"),
        ("stamped_from_us", "<i8"),
        ("count", "<i4"),
        ("kind", "u1"),
        ("standing", "u1"),
    ]
)
"""Facts of one batch for the books; ``complete_through_us`` is no later than the arrival already.

``stamped_from_us`` is the earliest stamp of an implausible batch, no later than its arrival, and 0 of all others.
"""

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


@dataclass(frozen=True, slots=True)
class InstanceCounts:
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
        return InstanceCounts(
            *(getattr(self, name) + getattr(other, name) for name in InstanceCounts.__dataclass_fields__)
        )


@dataclass(frozen=True, slots=True)
class Book:
    """The account of one probe instance: (stream, node, probe, epoch).

    ``runs`` are in order and never touch; between two of them lies a hole. ``sent`` maps the windows that it sent
    observations or counts of to whether any of them was set aside, as too late or implausible. ``aside`` has the
    implausible observations by the minute, µs, in which their stamping began, those that were counted among them.
    ``unplaced`` counts observations by window start, ms, in which the instance's node is not declared. ``counted`` has
    the packets of a node that counts, by window start, ms, and stamp, ``lags`` the histograms of their lags, where they
    told any.

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
    drops: Mapping[tuple[int, str], int] = field(default_factory=dict)
    sent: Mapping[int, bool] = field(default_factory=dict)
    aside: Mapping[int, ImplausibleSpan] = field(default_factory=dict)
    unplaced: Mapping[int, int] = field(default_factory=dict)
    counted: Mapping[tuple[int, int], Packet] = field(default_factory=dict)
    lags: Mapping[tuple[int, int], PackedLags] = field(default_factory=dict)
    tallies: InstanceCounts = InstanceCounts()

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
    """Accounts of one instance for windows; each field of shape (windows,)."""

    has_a_say: Bools
    heard: Bools
    told: Bools
    complete: Bools
    dropped: Int64s
    aside: Int64s
    unplaced: Int64s


def absorb(
    book: Book, facts: NDArray[np.void], drops: Sequence[DropFact] = (), packets: Sequence[PacketFact] = ()
) -> tuple[Book, Bools]:
    """Return the book with the batches ``facts`` (dtype FACTS) written in, and which of them were new.

    A batch whose number the book has, or that stands earlier among ``facts`` by arrival, is a duplicate: it changes
    the tallies alone, whatever its content. The order of ``facts`` does not matter.
    """
    order = np.lexsort((facts["arrival_us"], facts["seq"]))
    ordered = facts[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered["seq"][1:] != ordered["seq"][:-1]
    first &= ~_covered(book.runs, ordered["seq"])
    is_new = np.empty(len(order), bool)
    is_new[order] = first
    new = ordered[first]
    packets = [packet for packet in packets if is_new[packet.row]]
    written = replace(
        book,
        first_arrival_us=int(facts["arrival_us"].min(initial=book.first_arrival_us)),
        last_arrival_us=int(new["arrival_us"].max(initial=book.last_arrival_us)),
        runs=_extend(book.runs, new),
        said_bye=_said_bye(book, new),
        skew_us=_skew_us(book, new),
        drops=_with_drops(book.drops, [drop for drop in drops if is_new[drop.row]]),
        sent=_with_sent(book.sent, new),
        aside=_with_aside(book.aside, [*_implausible_observations(new), *_implausible_packets(facts, packets)]),
        counted=_with_counted(book.counted, facts, packets),
        lags=_with_lags(book.lags, facts, packets),
        tallies=book.tallies.plus(count_batches(facts, is_new)),
    )
    return written, is_new


def judge_book(book: Book, starts_us: Int64s, ends_us: Int64s, horizons_us: Int64s) -> Accounts:
    """Judge a book against windows, each given by its start, end and horizon; SEMANTICS.md, "Books"."""
    alive_from_us, through_us = book.alive_from_us, book.complete_through_us
    life = alive_from_us, through_us + (0 if book.said_bye else AFTERLIFE_US)
    # A probe that follows a source has completed nothing before it has caught up, and a clock may be behind.
    silent_from_us = max(alive_from_us, through_us)
    retired_at_us = max(silent_from_us, book.last_arrival_us) + RETIRED_AFTER_US
    may_hold = silent_from_us, silent_from_us - 1 if book.said_bye else retired_at_us
    sent = np.isin(starts_us, [start * 1_000 for start in book.sent])
    gaps = np.isin(starts_us, [start * 1_000 for start, was_set_aside in book.sent.items() if was_set_aside])
    dropped = _dropped(book, starts_us)
    heard = sent | (_meet(life, starts_us, ends_us - 1) & bool(book.runs))
    has_a_say = heard | (dropped > 0) | _meet(life, starts_us, horizons_us) | _meet(may_hold, starts_us, horizons_us)
    told = ((through_us >= horizons_us) | book.said_bye) & ~gaps & bool(book.runs)
    for _, *span in book.holes():
        told &= ~_meet((span[0], span[1]), starts_us, horizons_us)
    aside = _aside(book, starts_us, horizons_us)
    unplaced = _by_start(book.unplaced.items(), starts_us)
    return Accounts(has_a_say, heard, told, told & (dropped == 0), dropped, aside, unplaced)


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
    named_ms = (*book.sent, *book.unplaced, *(start_ms for start_ms, _ in book.drops))
    ends_us = (start_ms * 1_000 + WINDOW_US for start_ms in named_ms)
    return max((last_us, *ends_us, *(aside.to_us for aside in book.aside.values()))) < before_us


def _meet(span_us: tuple[int, int], firsts_us: Int64s, lasts_us: Int64s) -> Bools:
    """Return which of the other spans a span meets, ends included; a span that ends before it starts meets none."""
    from_us, to_us = span_us
    return np.asarray((from_us <= to_us) & (from_us <= lasts_us) & (to_us >= firsts_us))


def _covered(runs: Sequence[BatchRun], seqs: Int64s) -> Bools:
    """Return whether each sequence number lies in a run."""
    if not runs:
        return np.zeros(len(seqs), bool)
    firsts, lasts = np.array([run.first for run in runs]), np.array([run.last for run in runs])
    place = np.searchsorted(firsts, seqs, side="right") - 1
    return np.asarray((place >= 0) & (seqs <= lasts[np.maximum(place, 0)]))


def _extend(runs: Sequence[BatchRun], new: NDArray[np.void]) -> tuple[BatchRun, ...]:
    """Merge new batches, in order of their numbers and none of them in a run, into the runs."""
    if not len(new):
        return tuple(runs)
    seqs, through_us = new["seq"], new["complete_through_us"]
    sent_us = np.maximum(through_us, np.minimum(new["sent_at_us"], new["arrival_us"]))
    begins = np.concatenate(([0], np.flatnonzero(np.diff(seqs) != 1) + 1))
    ends = np.append(begins[1:], len(seqs)) - 1
    added = map(
        BatchRun, seqs[begins].tolist(), seqs[ends].tolist(), sent_us[begins].tolist(), through_us[ends].tolist()
    )
    merged: list[BatchRun] = []
    for run in sorted((*runs, *added)):
        if merged and merged[-1].last + 1 == run.first:
            run = BatchRun(merged[-1].first, run.last, merged.pop().sent_first_us, run.complete_last_us)  # noqa: PLW2901
        merged.append(run)
    return tuple(merged)


def _has_later_batch(book: Book, new: NDArray[np.void]) -> bool:
    """Return whether the new batch with the highest number is the last of all."""
    return len(new) > 0 and (not book.runs or int(new["seq"][-1]) > book.runs[-1].last)


def _said_bye(book: Book, new: NDArray[np.void]) -> bool:
    """Return whether the batch with the highest number is a bye."""
    return bool(new["kind"][-1] == BatchKind.BYE) if _has_later_batch(book, new) else book.said_bye


def _skew_us(book: Book, new: NDArray[np.void]) -> int:
    """Return how far ahead of its arrival the batch with the highest number was sent, as far as 64 bits go."""
    if not _has_later_batch(book, new):
        return book.skew_us
    return max(-_MAX_US - 1, min(int(new["sent_at_us"][-1]) - int(new["arrival_us"][-1]), _MAX_US))


def _with_drops(known: Mapping[tuple[int, str], int], drops: Sequence[DropFact]) -> Mapping[tuple[int, str], int]:
    counts = dict(known)
    for _, window_start_ms, count, cause in drops:
        counts[window_start_ms, cause] = counts.get((window_start_ms, cause), 0) + count
    return counts


def _with_sent(known: Mapping[int, bool], new: NDArray[np.void]) -> Mapping[int, bool]:
    is_near = new["window_start_ms"] * 1_000 < new["arrival_us"] + NEAR_US
    is_of_window = np.logical_or.reduce([new["kind"] == kind for kind in WINDOW_KINDS])
    noted = new[is_of_window & (is_near | (new["standing"] != IMPLAUSIBLE))]
    set_aside = set(noted["window_start_ms"][noted["standing"] != IN_WINDOW].tolist())
    starts = set(noted["window_start_ms"].tolist())
    return {**known, **{start: start in set_aside or known.get(start, False) for start in starts}}


def count_batches(facts: NDArray[np.void], is_new: Bools) -> InstanceCounts:
    """Return the counts of batches (dtype FACTS), by which of them were new."""
    counts, standing = facts["count"].astype(np.int64), facts["standing"]
    return InstanceCounts(
        batches=len(facts),
        duplicate_batches=int((~is_new).sum()),
        observations=int(counts.sum()),
        duplicate_observations=int(counts[~is_new].sum()),
        too_late=int(counts[is_new & (standing == TOO_LATE)].sum()),
        implausible=int(counts[is_new & (standing == IMPLAUSIBLE)].sum()),
    )


def _with_aside(
    known: Mapping[int, ImplausibleSpan], implausible: Iterable[tuple[int, int, int]]
) -> Mapping[int, ImplausibleSpan]:
    """Add implausible observations by the minute in which their stamping began, however far back that is said to be.

    A batch that has none of them, such as a packet of a minute without messages, makes no span longer.
    """
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


def _implausible_observations(new: NDArray[np.void]) -> list[tuple[int, int, int]]:
    """Return from when to when they were stamped, and how many they are."""
    chosen = new[(new["standing"] == IMPLAUSIBLE) & (new["kind"] == BatchKind.OBSERVATIONS)]
    return list(map(tuple, chosen[["stamped_from_us", "arrival_us", "count"]].tolist()))


def _implausible_packets(facts: NDArray[np.void], packets: Iterable[PacketFact]) -> Iterable[tuple[int, int, int]]:
    """Yield the same of messages that were counted."""
    for packet in packets:
        fact = facts[packet.row]
        if fact["standing"] == IMPLAUSIBLE:
            yield int(fact["stamped_from_us"]), int(fact["arrival_us"]), packet.count


def _with_counted(
    known: Mapping[tuple[int, int], Packet], facts: NDArray[np.void], packets: Iterable[PacketFact]
) -> Mapping[tuple[int, int], Packet]:
    counted = dict(known)
    for one in packets:
        if facts[one.row]["standing"] == IN_WINDOW:
            key = one.window_start_ms, one.stamp
            counted[key] = counted.get(key, Packet()).plus(one.packet)
    return counted


def _with_lags(
    known: Mapping[tuple[int, int], PackedLags], facts: NDArray[np.void], packets: Iterable[PacketFact]
) -> Mapping[tuple[int, int], PackedLags]:
    told: dict[tuple[int, int], list[PackedLags]] = {}
    for one in packets:
        if one.lags and facts[one.row]["standing"] == IN_WINDOW:
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
