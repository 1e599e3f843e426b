"""Ledger: the books of all probe instances and the windows that can still change; it decides which to judge again.

The same ledger serves the stream, a micro-batch at a time, and ``--once``, where all that there is comes at once. It
reads no clock: the watermark is given, and earlier results come through :class:`PriorResults`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.accounting.holes import Hole, find_touched_windows
from hopwatch.monitor.accounting.overdue_watch import NOT_WATCHED, OverdueWatch, is_watched, read_overdue
from hopwatch.monitor.accounting.partition_moves import PartitionTracker
from hopwatch.monitor.accounting.recent_tracker import RecentTracker
from hopwatch.monitor.accounting.unheard_instances import READABLE_REASONS, SpoolFolder, UnheardInstances, folder_of
from hopwatch.monitor.kernel.books import (
    IN_WINDOW,
    MAX_DROPPED,
    RETIRED_AFTER_US,
    Accounts,
    BatchFact,
    Book,
    DropFact,
    PacketFact,
    absorb,
    count_batches,
    forget,
    is_over,
    judge_books,
)
from hopwatch.monitor.kernel.bounds import NodeBooks
from hopwatch.monitor.kernel.count_lags import CountLags
from hopwatch.monitor.kernel.counts import CountedBooks, CountedInstance, with_lags
from hopwatch.monitor.kernel.deferrals import NO_WAITS, Waits, find_waits
from hopwatch.monitor.kernel.label_table import tabulate_labels
from hopwatch.monitor.kernel.overdue import EarlyBooks
from hopwatch.monitor.kernel.packets import Packet
from hopwatch.monitor.kernel.path_times import tabulate_times
from hopwatch.monitor.kernel.seconds import tabulate_seconds
from hopwatch.monitor.kernel.sets import classify
from hopwatch.monitor.kernel.tally import NEVER_US, LostIds, Tally, empty_tally, merge_tallies
from hopwatch.monitor.kernel.verdict import MAX_NAMED, WindowStage, conclude_window
from hopwatch.monitor.kernel.window import WindowPolicy, window_starts
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.payloads import FactSheet, SetAside
from hopwatch.monitor.results import (
    InFlight,
    LabelCounts,
    NodeCounts,
    NodeResult,
    PathTime,
    RecentFigures,
    SecondCounts,
    Status,
    WindowResult,
)
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.lag_histograms import PackedLags
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.contract.segment import folder_name

_HAVING_A_SAY, _UNPLACED = map(list(NodeBooks.__dataclass_fields__).index, ("having_a_say", "unplaced"))
InstanceKey = tuple[str, str, str, int]
"""A probe instance: stream, node, probe, epoch in µs."""
_NOT_COMPARED: Final = ("node", "servers")
"""Fields of a node that are not compared: what servers counted is in what their node counted."""
_LIFECYCLE_FIELDS: Final = ("stream", "window_start_us", "status", "revision", "recovered")


class PriorResults(Protocol):
    """Results of windows that were judged before."""

    def tallies(self, stream: str, start_us: int) -> Sequence[Tally]:
        """Return the tallies of a window's shards, the newest of each."""

    def result(self, stream: str, start_us: int) -> WindowResult | None:
        """Return the window as it was last concluded."""

    def lost_ids(self, stream: str, start_us: int) -> set[bytes]:
        """Return the ids that are kept as lost at any node of the window."""


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """Memory of a window that can still change.

    ``is_settled`` says that nothing was in flight when it was last judged, ``books`` are those that it was judged by,
    ``waits`` is what its missing messages wait for. Until the window is final ``watch`` is what is overdue in it; of
    that the store knows the figures alone. ``in_flight`` are the messages in flight at each node that has any.
    """

    status: Status | None = None
    revision: int = 0
    recovered: int = 0
    last_first_sighting_us: int = 0
    is_settled: bool = False
    books: bytes = b""
    waits: Waits = NO_WAITS
    watch: OverdueWatch = field(default=NOT_WATCHED, compare=False)
    in_flight: InFlight = ()

    @property
    def last_sighting_us(self) -> int:
        """The sighting that the horizon goes by: of deferred messages those count whose time has passed."""
        return max(self.last_first_sighting_us, self.waits.passed_us)


class Conclusion(NamedTuple):
    """Judged window, its inputs, and its changes if it was final before.

    ``outliers`` are by node; empty when the window was not scored. ``labels`` are the counts by label of each node,
    ``seconds`` those by second of a final window and ``times`` its times on the path, ``count_lags`` the lags of each
    node that only counts.
    ``was_overdue`` says that something may have been overdue when the window was last judged.
    """

    result: WindowResult
    tally: Tally
    lost: tuple[LostIds, ...]
    is_settled: bool
    books: bytes
    changed: Mapping[str, Any] | None
    outliers: Mapping[str, tuple[OutlierFinding, ...]] = MappingProxyType({})
    waits: Waits = NO_WAITS
    labels: tuple[tuple[LabelCounts, ...], ...] = ()
    seconds: tuple[SecondCounts | None, ...] = ()
    times: tuple[tuple[PathTime, ...], ...] = ()
    count_lags: tuple[CountLags, ...] = ()
    was_overdue: bool = False


@dataclass(slots=True)
class Ledger:
    """Memory of the monitor between micro-batches, without observations; the store holds the same."""

    rules: Mapping[str, StreamConfig]
    books: dict[InstanceKey, Book] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    live: dict[str, dict[int, LiveWindow]] = field(default_factory=dict)
    holes: list[Hole] = field(default_factory=list)
    unheard: UnheardInstances = field(default_factory=UnheardInstances)
    _places: dict[str, InstanceKey] = field(default_factory=dict, repr=False)
    watched: dict[str, SeriesTracker] = field(default_factory=dict, compare=False)
    """The series of each stream, taken up from the store when the first of its windows becomes final."""
    recent: RecentTracker = field(default_factory=RecentTracker, compare=False)
    partitions: PartitionTracker = field(default_factory=PartitionTracker, compare=False)

    def absorb(self, sheets: Iterable[FactSheet]) -> set[InstanceKey]:
        """Write fact sheets into the books, list the windows they fall in, and return the keys of the books."""
        by_instance: dict[InstanceKey, list[FactSheet]] = {}
        for sheet in sheets:
            by_instance.setdefault(sheet.key, []).append(sheet)
        placed: dict[str, list[BatchFact]] = {}
        for key, own in by_instance.items():
            facts, drops, packets = _join_sheets(own)
            before = self.books.get(key) or Book(*key)
            book, is_new = absorb(before, facts, drops, packets)
            is_placed = self._find_placed(key, [fact.window_start_ms for fact in facts])
            if not all(is_placed):
                tallies = before.tallies.plus(count_batches(compress(facts, is_placed), compress(is_new, is_placed)))
                rows = zip(facts, is_new, is_placed, strict=True)
                unplaced = [fact for fact, is_first, is_here in rows if is_first and not is_here]
                book = self._count_unplaced(replace(book, tallies=tallies), unplaced)
            self._put(book)
            if key[0] in self.rules:
                placed.setdefault(key[0], []).extend(compress(facts, is_placed))
        for stream, of_stream in placed.items():
            self._list(stream, of_stream)
            self._note_untallied(stream, of_stream)
        return set(by_instance)

    def note_unread(self, set_aside: Iterable[SetAside], folders: Iterable[SpoolFolder] = ()) -> set[InstanceKey]:
        """Note records that could not be read, and the folders of a spool; return the keys of the books it changes.

        What could not be read of an instance that was heard keeps it from being retired: a batch behind its last one.
        """
        changed: set[InstanceKey] = set()
        for place in set_aside:
            key = self._places.get(folder_of(place) or "")
            if key is None or place.reason in READABLE_REASONS:
                self.unheard.note_record(place, self.rules)
            elif self.books[key].last_arrival_us < place.arrival_us:
                self.books[key] = replace(self.books[key], last_arrival_us=place.arrival_us)
                changed.add(key)
        for folder in folders:
            if folder.name not in self._places:
                self.unheard.note_folder(folder)
        return changed

    def _put(self, book: Book) -> None:
        """Keep a book; what was noted of its folder, before it was heard, is told by its own batches from now on."""
        if book.key not in self.books:
            folder = folder_name(f"{book.stream}.{book.node}.{book.probe}.{book.epoch_us}")
            self._places[folder] = book.key
            unread = self.unheard.folders.pop(folder, None)
            if unread is not None:
                book = replace(book, last_arrival_us=max(book.last_arrival_us, unread.last_us))
        self.books[book.key] = book

    def _find_placed(self, key: InstanceKey, starts_ms: Sequence[int]) -> list[bool]:
        """Return in which windows, by their starts, the node of an instance is declared, or its stream has no rules."""
        if key[0] not in self.rules:
            return [True] * len(starts_ms)
        return self.rules[key[0]].find_declared(key[1], (start_ms * 1_000 for start_ms in starts_ms))

    def _count_unplaced(self, book: Book, new: Iterable[BatchFact]) -> Book:
        """Return the book with what an undeclared node observed and counted: no window has it, and no account."""
        counts = Counter(book.unplaced)
        for fact in filter(_is_observed, new):
            counts[fact.window_start_ms] += fact.count
        starts_ms = [start_ms for start_ms, _ in book.counted]
        is_placed = dict(zip(book.counted, self._find_placed(book.key, starts_ms), strict=True))
        for (start_ms, stamp), packet in book.counted.items():
            counts[start_ms] += 0 if is_placed[start_ms, stamp] else packet.count
        counted = {key: packet for key, packet in book.counted.items() if is_placed[key]}
        lags = {key: histogram for key, histogram in book.lags.items() if is_placed[key]}
        return replace(book, unplaced=dict(counts), counted=counted, lags=lags)

    def restore_books(self, books: Iterable[Book]) -> None:
        """Take the books that were kept."""
        for book in books:
            self._put(book)

    def needed_until_us(self, sheet: FactSheet) -> int:
        """Return until when, in arrival time, a window may point into the segment of a fact sheet."""
        if sheet.stream not in self.rules:
            return 0
        config = self.rules[sheet.stream]
        starts_us = {fact.window_start_ms * 1_000 for fact in sheet.facts if _is_observed(fact)}
        return max((config.at(start_us).terms.kept_until_us(start_us) for start_us in starts_us), default=0)

    def sight(self, stream: str, start_us: int, last_first_sighting_us: int, shards: Iterable[int] = ()) -> None:
        """Note that shards of a window were tallied anew: it is due, and its horizon may have moved."""
        windows = self.live.setdefault(stream, {})
        known = windows.get(start_us, LiveWindow())
        latest_us = max(known.last_first_sighting_us, last_first_sighting_us)
        watch = known.watch._replace(tallied=known.watch.tallied.union(shards), due=())
        windows[start_us] = replace(known, last_first_sighting_us=latest_us, watch=watch)

    def _note_untallied(self, stream: str, facts: Iterable[BatchFact]) -> None:
        """Note of which windows there are observations that no tally is known to have yet."""
        config = self.rules[stream]
        if not any(version.deadlines for version in config.versions):
            return
        windows = self.live.get(stream, {})
        for start_ms in {fact.window_start_ms for fact in facts if _is_observed(fact) and fact.count}:
            known = windows.get(start_ms * 1_000)
            if known is not None and known.watch.tallied:
                watch = known.watch._replace(tallied=frozenset())
                windows[start_ms * 1_000] = replace(known, watch=watch)

    def conclude(
        self,
        tallied: Collection[tuple[str, int]],
        watermark_us: int,
        past: PriorResults,
        read_through_us: int = 0,
    ) -> Iterator[Conclusion]:
        """Yield each window whose tally, status or books have changed, judged anew.

        What is overdue is judged by ``read_through_us``, the moment up to which tallies and books have all that
        arrived, where it is later than the watermark.
        """
        moments_us = watermark_us, max(watermark_us, read_through_us)
        books_of: dict[str, list[Book]] = {}
        for book in self.books.values():
            books_of.setdefault(book.stream, []).append(book)
        for stream, config in self.rules.items():
            for version, starts_us in config.split_starts(sorted(self.live.get(stream, ()))):
                books = [*books_of.get(stream, ()), *self.unheard.books(stream, version)]
                yield from self._conclude_windows(stream, version, starts_us, books, tallied, moments_us, past)

    def _conclude_windows(  # noqa: PLR0913, PLR0917 - the windows, and all that they are judged by
        self,
        stream: str,
        rules: StreamConfig,
        starts_us: Sequence[int],
        books: Sequence[Book],
        tallied: Collection[tuple[str, int]],
        moments_us: tuple[int, int],
        past: PriorResults,
    ) -> Iterator[Conclusion]:
        """Yield those of the windows of one version of a stream that have changed."""
        windows, terms, (watermark_us, read_through_us) = self.live[stream], rules.terms, moments_us
        starts = np.array(starts_us, np.int64)
        sighted_us = np.array([windows[start_us].last_sighting_us for start_us in starts_us], np.int64)
        # Behind the windows those stand once more in which something may be overdue, with the books as far as they are.
        through_us = read_through_us - terms.settle_us
        watched = _find_watched(rules, windows, starts_us, moments_us)
        early_places = {start_us: place for place, start_us in enumerate(watched, len(starts))}
        every, horizons_us = starts, _find_horizons(terms, starts, sighted_us)
        if watched:
            every = np.append(starts, np.array(watched, np.int64))
            horizons_us = np.append(horizons_us, np.full(len(watched), through_us, np.int64))
        judged = self._judge_books(books, rules, every, horizons_us)
        nothing = empty_tally(rules.pathway)
        before_us = terms.settled_before_us(watermark_us)
        for place, start_us in enumerate(starts_us):
            known = windows[start_us]
            status = terms.status(start_us, watermark_us)
            of_window, unplaced, counted, print_of_books = _take_window(judged, place)
            is_tallied = (stream, start_us) in tallied
            is_settled = terms.settled_at_us(start_us, known.last_first_sighting_us) <= watermark_us
            early, print_of_early = None, b""
            if start_us in early_places and (is_tallied or known.watch.has_due(rules, through_us)):
                early, print_of_early = _take_early(judged, early_places[start_us], through_us)
            is_stale = early is not None and known.watch.is_stale(rules, through_us, print_of_early)
            if not is_tallied and not is_stale and not _is_due(known, status, print_of_books, is_settled, before_us):
                continue
            tally = merge_tallies(past.tallies(stream, start_us) or [nothing], rules.max_lost_ids)
            waits = _find_waits(rules, tally, before_us)
            if replace(known, waits=waits).last_sighting_us != known.last_sighting_us:
                # Its horizon has moved: of this one window the books are judged once more.
                last_us = np.array([replace(known, waits=waits).last_sighting_us], np.int64)
                own = starts[place : place + 1]
                here = self._judge_books(books, rules, own, _find_horizons(terms, own, last_us))
                of_window, unplaced, counted, print_of_books = _take_window(here, 0)
            is_settled = is_settled and waits.next_us == NEVER_US
            counted = [with_lags(of_node) for of_node in counted]
            standing = WindowStage(stream, start_us, status, before_us, known.revision, known.recovered)
            watch = known.watch if is_watched(rules, status) else NOT_WATCHED
            if early is not None:
                watch = watch.recount(rules, tally, early, print_of_early)
            elif is_watched(rules, status) and watch.overdue is None and known.status is not None:
                watch = watch._replace(overdue=read_overdue(past.result(stream, start_us)))
            result = conclude_window(
                rules.pathway, standing, tally, NodeBooks(*of_window), unplaced, counted, watch.overdue
            )
            lost = tuple(tally.lost(node, before_us) for node in range(len(rules.pathway.nodes)))
            result, changed = _amend(known, result, lost, past)
            windows[start_us] = LiveWindow(
                result.status,
                result.revision,
                result.recovered,
                known.last_first_sighting_us,
                is_settled,
                print_of_books,
                waits,
                watch,
                tuple((node.node, node.in_flight) for node in result.nodes if node.in_flight),
            )
            is_final = result.status.is_final
            labels = tabulate_labels(rules.pathway, tally, result.nodes, before_us, is_final=is_final)
            seconds = tabulate_seconds(rules.pathway, tally.seconds, before_us) if is_final else ()
            times = tabulate_times(rules.pathway, tally.stamp_sample) if is_final else ()
            count_lags = tuple(of_node.lags for of_node in counted)
            yield Conclusion(
                result, tally, lost, is_settled, print_of_books, changed,
                waits=waits, labels=labels, seconds=seconds, times=times, count_lags=count_lags,
                was_overdue=_was_overdue(rules, known),
            )  # fmt: skip

    def _judge_books(
        self,
        books: Iterable[Book],
        rules: StreamConfig,
        starts: NDArray[np.int64],
        horizons_us: NDArray[np.int64],
    ) -> _JudgedBooks:
        """Return the books of a stream as windows see them, whose horizons are given."""
        judged = _node_books(books, rules, starts, horizons_us)
        # The instances with records in a hole are incomplete, and their nodes are unknown.
        holes = (*self.holes, *self.unheard.records.values())
        judged.counts[_HAVING_A_SAY, :, find_touched_windows(holes, starts, horizons_us + rules.terms.settle_us)] += 1
        return judged

    def renew_recent(self) -> tuple[RecentFigures, ...]:
        """Return the recent figures that are new, of the streams of which anything was ever read."""
        streams = [stream for stream in self.ranges if stream in self.rules]
        return tuple(self.recent.renew(self.rules, streams, self._sum_backlog))

    def _sum_backlog(self, stream: str) -> Mapping[str, int]:
        """Return the messages in flight at each node, in all windows that can still change."""
        found: Counter[str] = Counter()
        for known in self.live.get(stream, {}).values():
            for node, messages in known.in_flight:
                found[node] += messages
        return found

    def release_memory(self) -> None:
        """Forget the values of series: what was judged will not be judged again, and there may be years of it."""
        for watched in self.watched.values():
            watched.release_memory()

    def forget(self, watermark_us: int) -> list[tuple[str, int]]:
        """Drop what nothing can change any more, and return the windows that it was."""
        gone: list[tuple[str, int]] = []
        for stream, windows in self.live.items():
            config = self.rules[stream]
            past = [
                start_us
                for start_us, known in windows.items()
                if _over_at_us(config.at(start_us).terms, start_us, known) < watermark_us
            ]
            gone.extend((stream, start_us) for start_us in past)
            for start_us in past:
                del windows[start_us]
        for stream in {stream for stream, _ in gone}:
            oldest_us = min(self.live[stream], default=watermark_us)
            for key in [key for key in self.books if key[0] == stream]:
                self.books[key] = forget(self.books[key], oldest_us // 1_000)
        if gone:
            self.unheard.forget(self.unread_since_us(watermark_us))
        return gone

    def unread_since_us(self, watermark_us: int) -> int:
        """Return the earliest arrival of what could not be read that a window, listed or to come, may ask for."""
        versions = (version for config in self.rules.values() for version in config.versions)
        longest_us = max((version.terms.kept_until_us(0) for version in versions), default=0)
        return min((watermark_us - longest_us, *map(min, filter(None, self.live.values())))) - RETIRED_AFTER_US

    def _list(self, stream: str, facts: Iterable[BatchFact]) -> None:
        """Widen the range of windows by those in which a plausible batch falls, gaps included."""
        config = self.rules[stream]
        pairs = {(fact.window_start_ms, fact.arrival_us) for fact in facts}
        plausible = [
            start_ms
            for start_ms, arrival_us in pairs
            if config.at(start_ms * 1_000).terms.is_plausible(start_ms, arrival_us)
        ]
        if not plausible:
            return
        windows = self.live.setdefault(stream, {})
        first_ms, last_ms = min(plausible), max(plausible)
        if stream in self.ranges:
            old_first_ms, old_last_ms = (moment_us // 1_000 for moment_us in self.ranges[stream])
            added = [
                *window_starts(first_ms, old_first_ms - WINDOW_MS),
                *window_starts(old_last_ms + WINDOW_MS, last_ms),
            ]
            first_ms, last_ms = min(first_ms, old_first_ms), max(last_ms, old_last_ms)
        else:
            added = list(window_starts(first_ms, last_ms))
        self.ranges[stream] = first_ms * 1_000, last_ms * 1_000
        for start_ms in added:
            if not config.at(start_ms * 1_000).is_removed:
                windows.setdefault(start_ms * 1_000, LiveWindow())


class _JudgedBooks(NamedTuple):
    """Books of a stream as some windows see them.

    ``counts`` has the fields of NodeBooks, shape (fields, nodes, windows), the nodes that count behind the others;
    ``undeclared`` what each node that is not declared may have hidden, shape (windows,); ``packets`` what each node
    that counts counted in each window, by the place of both.
    """

    nodes: int
    counts: NDArray[np.int64]
    undeclared: dict[str, NDArray[np.int64]]
    packets: dict[tuple[int, int], list[CountedInstance]]


def _take_window(judged: _JudgedBooks, place: int) -> tuple[NDArray[np.int64], list[str], list[CountedBooks], bytes]:
    """Return the books of one window, the undeclared nodes that may have hidden something, and a print of all.

    The books are those of nodes with ids, and of nodes that count.
    """
    of_window = np.ascontiguousarray(judged.counts[:, :, place])
    unplaced = _name_undeclared(judged.undeclared, place)
    counted = []
    for node, fields in enumerate(of_window[:, judged.nodes :].T.tolist()):
        instances = sorted(judged.packets.get((node, place), ()), key=lambda one: one[:2])
        counted.append(CountedBooks(tuple(instances), *fields))
    # Lags never change without a count: each is of a message that was counted.
    told = [[one[:3] for one in of_node.instances] for of_node in counted if of_node.instances]
    packets = repr(told).encode() if counted else b""
    printed = of_window.tobytes() + " ".join(unplaced).encode() + packets
    return of_window[:, : judged.nodes], unplaced, counted, printed


def _find_watched(
    rules: StreamConfig, windows: Mapping[int, LiveWindow], starts_us: Sequence[int], moments_us: tuple[int, int]
) -> list[int]:
    """Return the windows in which something may be overdue: the last ones, whose tallies have all that came."""
    if not rules.deadlines:
        return []
    terms, (watermark_us, read_through_us) = rules.terms, moments_us
    first = bisect_right(starts_us, watermark_us - terms.final_at_us(0))
    end = bisect_right(starts_us, read_through_us - terms.settle_us)
    return [start_us for start_us in starts_us[first:end] if windows[start_us].watch.is_complete(rules)]


def _take_early(judged: _JudgedBooks, place: int, through_us: int) -> tuple[EarlyBooks, bytes]:
    """Return the books of one window up to a moment, and a print of them."""
    of_window, _, counted, printed = _take_window(judged, place)
    return EarlyBooks(through_us, NodeBooks(*of_window), [with_lags(of_node) for of_node in counted]), printed


def _find_horizons(terms: WindowPolicy, starts: NDArray[np.int64], sighted_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the horizon of each window."""
    pairs = zip(starts.tolist(), sighted_us.tolist(), strict=True)
    return np.array([terms.horizon_us(start_us, last_us) for start_us, last_us in pairs], np.int64)


def _was_overdue(rules: StreamConfig, known: LiveWindow) -> bool:
    """Return whether something may have been overdue in a window when it was last judged."""
    if known.watch.overdue is None:
        return bool(rules.deadlines) and known.status is not None
    return bool(known.watch.overdue)


def _find_waits(rules: StreamConfig, tally: Tally, before_us: int) -> Waits:
    """Return what the missing messages of a window wait for."""
    if not tally.last_wait_us:
        return NO_WAITS
    is_missing = classify(rules.pathway, tally.masks).lost
    return find_waits(tally.sighted_us, is_missing, tally.last_first_sighting_us, before_us)


def _node_books(
    books: Iterable[Book], rules: StreamConfig, starts: NDArray[np.int64], horizons: NDArray[np.int64]
) -> _JudgedBooks:
    """Return the books of a stream as its windows see them."""
    nodes, declared = len(rules.pathway.nodes), rules.pathway.declared
    counts = np.zeros((len(NodeBooks.__dataclass_fields__), len(declared), len(starts)), np.int64)
    undeclared: dict[str, NDArray[np.int64]] = {}
    packets: dict[tuple[int, int], list[CountedInstance]] = {}
    first_us = int(starts[0])
    listed = [book for book in books if book.node not in rules.ignore_nodes and not is_over(book, first_us)]
    for piece, judged in judge_books(listed, starts, starts + WINDOW_US, horizons):
        of_books = _as_counts(judged)
        by_node: dict[str, list[int]] = {}
        for place, book in enumerate(piece):
            by_node.setdefault(book.node, []).append(place)
        for name, places in by_node.items():
            if name not in declared:
                missing = _count_missing(judged, places)
                undeclared[name] = np.minimum(undeclared.get(name, 0) + missing, MAX_DROPPED)
                counts[_UNPLACED] = np.minimum(counts[_UNPLACED] + missing, MAX_DROPPED)
                continue
            node = declared.index(name)
            # Thousands of instances may each have dropped as many as are counted at most.
            counts[:, node] = np.minimum(counts[:, node] + of_books[:, places].sum(axis=1), MAX_DROPPED)
            for place in places if node >= nodes else ():
                _add_packets(packets, node - nodes, piece[place], starts)
    return _JudgedBooks(nodes, counts, undeclared, packets)


def _add_packets(
    packets: dict[tuple[int, int], list[CountedInstance]], node: int, book: Book, starts: NDArray[np.int64]
) -> None:
    """Add what an instance of a counting node counted, by the places of the node and of the window."""
    of_windows: dict[int, dict[int, Packet]] = {}
    lags: dict[int, dict[int, PackedLags]] = {}
    for (start_ms, stamp), packet in sorted(book.counted.items()):
        of_windows.setdefault(start_ms * 1_000, {})[stamp] = packet
    for (start_ms, stamp), histogram in book.lags.items():
        lags.setdefault(start_ms * 1_000, {})[stamp] = histogram
    listed = np.array(sorted(of_windows), np.int64)
    for place in np.flatnonzero(np.isin(starts, listed)).tolist():
        start_us = int(starts[place])
        instance = CountedInstance(book.probe, book.epoch_us, of_windows[start_us], lags.get(start_us, {}))
        packets.setdefault((node, place), []).append(instance)


def _count_missing(judged: Accounts, places: Sequence[int]) -> NDArray[np.int64]:
    """Return how many messages some instances of an undeclared node may have hidden from any node; shape (windows,).

    The number is unknown where the account of any is incomplete.
    """
    known = np.minimum(judged.unplaced + judged.dropped + judged.aside, MAX_DROPPED)
    missing = np.where(judged.has_a_say & ~judged.told, MAX_DROPPED, known)
    return np.asarray(missing[places].sum(axis=0), np.int64)


def _name_undeclared(missing: Mapping[str, NDArray[np.int64]], place: int) -> list[str]:
    """Return the undeclared nodes that may have had messages of a window, the most first; as many as are told of."""
    found = [(-int(counts[place]), node) for node, counts in missing.items() if counts[place]]
    return [node for _, node in sorted(found)[: MAX_NAMED + 1]]


def _is_observed(fact: BatchFact) -> bool:
    """Return whether a batch has observations that count in its window."""
    return fact.kind == BatchKind.OBSERVATIONS and fact.standing == IN_WINDOW


def _join_sheets(sheets: Sequence[FactSheet]) -> tuple[list[BatchFact], list[DropFact], list[PacketFact]]:
    facts: list[BatchFact] = []
    drops: list[DropFact] = []
    packets: list[PacketFact] = []
    for sheet in sheets:
        drops += [drop._replace(row=drop.row + len(facts)) for drop in sheet.drops]
        packets += [packet._replace(row=packet.row + len(facts)) for packet in sheet.packets]
        facts += sheet.facts
    return facts, drops, packets


def _as_counts(judged: Accounts) -> NDArray[np.int64]:
    """Return each one's part of NodeBooks: an account counts only where it has a say; (fields, books, windows)."""
    say = judged.has_a_say
    parts = (say, judged.heard, judged.told & say, judged.complete & say, judged.dropped, judged.aside, judged.unplaced)
    return np.stack([part.astype(np.int64) for part in parts])


def _over_at_us(terms: WindowPolicy, start_us: int, known: LiveWindow) -> int:
    """Return when nothing can change a window any more: neither what comes, nor what is in flight."""
    settled_at_us = terms.settled_at_us(start_us, known.last_sighting_us)
    if known.waits.next_us < NEVER_US:
        # The last of what waits has settled by then.
        settled_at_us = terms.judged_until_us(start_us)
    return max(terms.kept_until_us(start_us), settled_at_us)


def _is_due(known: LiveWindow, status: Status, books: bytes, is_settled: bool, before_us: int) -> bool:  # noqa: FBT001 - a fact, not a flag
    if known.status is None:
        return True
    if known.status.is_final:
        is_settled = is_settled and known.waits.next_us == NEVER_US
        return books != known.books or is_settled != known.is_settled or known.waits.next_us < before_us
    return status != known.status


def _amend(
    known: LiveWindow, result: WindowResult, lost: Sequence[LostIds], past: PriorResults
) -> tuple[WindowResult, Mapping[str, Any] | None]:
    """Turn the new judgement of a window that was final into its next revision, if anything changed."""
    before = past.result(result.stream, result.window_start_us) if known.status and known.status.is_final else None
    if before is None or known.status is None:
        return result, None
    changed = find_differences(before, result)
    if not changed:
        return replace(result, status=known.status), None
    recovered = known.recovered + count_recovered(result, lost, past)
    if before.in_flight:
        # The window was not through being judged: this completes its revision, it does not amend it.
        return replace(result, status=known.status, recovered=recovered), None
    return replace(result, status=Status.AMENDED, revision=known.revision + 1, recovered=recovered), changed


def count_recovered(result: WindowResult, lost: Sequence[LostIds], past: PriorResults) -> int:
    """Return how many ids were lost by the judgement before, and are not by this one."""
    lost_now = {bytes(message_id) for of_node in lost for message_id in of_node.message_ids}
    return len(past.lost_ids(result.stream, result.window_start_us) - lost_now)


def find_differences(before: WindowResult, after: WindowResult) -> dict[str, list[Any]]:
    """Return {field: [before, after]} for all that differs, apart from where the window stands in its life."""
    pairs = zip(_flatten(before).items(), _flatten(after).values(), strict=True)
    return {name: [old, new] for (name, old), new in pairs if old != new}


def _flatten(result: WindowResult) -> dict[str, Any]:
    told = {
        name: value for name, value in asdict(result).items() if name not in (*_LIFECYCLE_FIELDS, "nodes", "counts")
    }
    nodes: tuple[NodeResult | NodeCounts, ...] = (*result.nodes, *result.counts)
    for node in nodes:
        told |= {f"{node.node}.{name}": value for name, value in asdict(node).items() if name not in _NOT_COMPARED}
    return told
