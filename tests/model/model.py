"""What `hopwatch run --once` and then `hopwatch report --json` must say of a spool directory, by sets of ids."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.model.books import Instance, NodeBooks, Window, node_books
from tests.model.intake import MINUTE_US, PULSE, Intake, Stream, take_in
from tests.model.lag import quantile, quantiles
from tests.model.naming import shown
from tests.model.sets import NONE, Ids, WindowSets
from tests.model.wire import Received, read_spool

MOST_IDS = 100


def report(streams_config: Mapping[str, Mapping[str, Any]], spool_dir: Path) -> dict[str, Any]:
    """Give the object of INTERFACE.md; `streams_config` holds the `[streams.X]` tables by name."""
    streams = {name: Stream.of(table) for name, table in streams_config.items()}
    intake = take_in(read_spool(spool_dir), streams | {PULSE: Stream.of({"path": "monitor"})})
    return {
        "streams": [{"stream": name, "windows": _windows(name, stream, intake)} for name, stream in streams.items()],
        "accounts": intake.accounts(),
    }


def _windows(name: str, stream: Stream, intake: Intake) -> list[dict[str, Any]]:
    instances = _instances(name, intake)
    by_minute: dict[int, list[Received]] = defaultdict(list)
    for one in intake.in_windows:
        if one.batch.stream == name:
            by_minute[one.window_us].append(one)
    return [
        JudgedWindow(stream, start_us, by_minute[start_us], instances).shown()
        for start_us in _minutes(name, stream, intake)
    ]


def _minutes(name: str, stream: Stream, intake: Intake) -> range:
    """Give every minute (µs) from the first to the last with a plausible batch, of whatever kind, gaps too."""
    starts = [one.window_us for one in intake.known if one.batch.stream == name and not stream.implausible(one)]
    return range(min(starts), max(starts) + 1, MINUTE_US) if starts else range(0)


class JudgedWindow:
    """One stream and window with its sets, its books and what follows from both."""

    def __init__(
        self, stream: Stream, start_us: int, inside: Sequence[Received], instances: Sequence[Instance]
    ) -> None:
        """Take the batches that are in the window, and all instances of the stream."""
        self.pathway = stream.pathway
        self.observed = [(one.batch.node, seen) for one in inside for seen in one.batch.observations]
        self.sets = WindowSets(self.pathway, self.observed)
        end_us = start_us + MINUTE_US
        self.window = Window(start_us, end_us, max([end_us, *_first_sightings_us(inside).values()]) + stream.transit_us)
        self.books = {
            node: node_books([one for one in instances if one.node == node], self.window) for node in self.pathway.nodes
        }

    def surely_lost_at(self, node: str) -> Ids:
        """Give what is surely lost at N; nothing unless its books are complete."""
        if not self.books[node].complete:
            return NONE
        told_groups = [group for group in self.pathway.one_of[node] if all(self.books[to].complete for to in group)]
        after = NONE.union(*(self.sets.lost_after_group(node, group) for group in told_groups))
        return self.sets.lost_in_transit(node) | self.sets.lost_inside(node) | after

    def loss_upper(self, node: str) -> int | None:
        """Give the upper bound of the loss of N."""
        books = self.books[node]
        return len(self.sets.lost_at(node)) + books.dropped if books.bounded else None

    def lost_lower(self) -> int:
        """Give the lower bound end to end."""
        if self.pathway.sends_to_several_places and not all(
            self.books[node].complete for node in self.pathway.terminals
        ):
            return 0
        return len(self.sets.lost() & NONE.union(*(self.surely_lost_at(node) for node in self.pathway.nodes)))

    def lost_upper(self) -> int | None:
        """Give the upper bound end to end."""
        origins = self._origins_books()
        if not all(books.bounded for books in origins):
            return None
        return len(self.sets.lost()) + sum(books.dropped for books in origins)

    def verdict(self) -> str:
        """Judge in the order of the page."""
        nodes = self.pathway.nodes
        origins_complete = all(books.complete for books in self._origins_books())
        if not any(books.heard for books in self.books.values()):
            return "SILENT"
        if not self.sets.known() and origins_complete:
            return "IDLE"
        if self.lost_lower() > 0 or any(self.surely_lost_at(node) for node in nodes):
            return "LOSSY"
        if self.lost_upper() == 0 and not any(self.sets.lost_at(node) for node in nodes) and origins_complete:
            return "CLEAN"
        return "UNKNOWN"

    def shown(self) -> dict[str, Any]:
        """Give W of INTERFACE.md."""
        sets = self.sets
        known, rejected, lost = sets.known(), sets.rejected_anywhere(), sets.lost()
        return {
            "window_start": datetime.fromtimestamp(self.window.start_us // 1_000_000, UTC).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
            "status": "FINAL",
            "revision": 0,
            "verdict": self.verdict(),
            "reasons": [],
            "known": len(known),
            "delivered": len(sets.delivered()),
            "filtered": len(sets.stopped_anywhere() - rejected),
            "rejected": len(rejected),
            "lost": len(lost),
            "lost_lower": self.lost_lower(),
            "lost_upper": self.lost_upper(),
            "loss_ratio": _ratio(lost, known),
            "in_flight": 0,
            "recovered": 0,
            "lag_us": quantiles([lag for node in self.pathway.terminals for lag in sets.at[node].lags_out_us]),
            "nodes": [self.shown_node(node) for node in self.pathway.nodes],
        }

    def shown_node(self, node: str) -> dict[str, Any]:
        """Give N of INTERFACE.md."""
        sets, at, books, rejected = self.sets, self.sets.at[node], self.books[node], self.sets.rejected(node)
        lost = sets.lost_at(node)
        return {
            "node": node,
            "expected": len(sets.expected(node)),
            "seen": len(at.seen),
            "arrived": len(at.came),
            "departed": len(at.left),
            "filtered": len(sets.stopped(node) - rejected),
            "rejected": len(rejected),
            "lost_in_transit": len(sets.lost_in_transit(node)),
            "lost_inside": len(sets.lost_inside(node)),
            "lost_after": len(sets.lost_after(node)),
            "loss": len(lost),
            "loss_lower": len(self.surely_lost_at(node)),
            "loss_upper": self.loss_upper(node),
            "loss_ratio": _ratio(lost, sets.expected(node) | sets.seen(node)),
            "in_flight": 0,
            "unobserved": len(sets.unobserved(node)),
            "orphans": len(sets.orphans(node)),
            "duplicates_in": len(at.lags_in_us) - len(at.came),
            "duplicates_out": len(at.lags_out_us) - len(at.left),
            "lag_negative": sum(lag < 0 for lag in at.lags_in_us + at.lags_out_us),
            "dropped": books.dropped,
            "coverage": books.coverage,
            "lag_in_us": quantiles(at.lags_in_us),
            "lag_out_us": quantiles(at.lags_out_us),
            "inside_us": quantiles(at.inside_us),
            "process_duration_p95_us": self._process_duration_p95_us(node),
            "lost_ids": [shown(self.pathway, one, self.observed) for one in sorted(lost)[:MOST_IDS]],
        }

    def _origins_books(self) -> list[NodeBooks]:
        return [self.books[node] for node in self.pathway.origins]

    def _process_duration_p95_us(self, node: str) -> int | None:
        """Give Process_Duration(N, p95); none where one side is stamped, or nothing."""
        at = self.sets.at[node]
        if node in self.pathway.one_sided or not at.lags_in_us or not at.lags_out_us:
            return None
        return quantile(at.lags_out_us, 95) - quantile(at.lags_in_us, 95)


def _ratio(part: Ids, whole: Ids) -> float | None:
    return len(part) / len(whole) if whole else None


def _first_sightings_us(inside: Sequence[Received]) -> dict[bytes, int]:
    """Give for every message the earliest arrival of an observation of it."""
    first: dict[bytes, int] = {}
    for one in inside:
        for seen in one.batch.observations:
            first[seen.message_id] = min(one.arrival_us, first.get(seen.message_id, one.arrival_us))
    return first


def _instances(name: str, intake: Intake) -> list[Instance]:
    """Give the probe instances of a stream: an implausible batch keeps its number, but touches no window."""
    sent: dict[tuple[str, str, int], list[Received]] = defaultdict(list)
    for one in intake.first:
        if one.batch.stream == name:
            sent[one.batch.node, one.batch.probe, one.batch.epoch_us].append(one)
    in_windows, too_late = {one.place for one in intake.in_windows}, {one.place for one in intake.set_aside}
    return [
        Instance(key[0], batches, _windows_of(batches, in_windows), _windows_of(batches, too_late))
        for key, batches in sent.items()
    ]


def _windows_of(batches: Sequence[Received], places: set[tuple[str, int]]) -> frozenset[int]:
    """Give the windows (start, ms) of those batches with observations that stood at these places."""
    return frozenset(one.batch.window_start_ms for one in batches if one.batch.observations and one.place in places)
