"""Expected output of `hopwatch run --once` and `hopwatch report --json` for a spool directory, by sets of ids."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.model.books import Instance, NodeBooks, Unheard, Window, node_books
from tests.model.causes import mark_causes
from tests.model.counts import JudgedCounts, Neighbours, counted_of, server_of, silent
from tests.model.intake import MINUTE_US, PULSE, Intake, Stream, is_near, take_in
from tests.model.label_lags import Departures, mark_lag_causes
from tests.model.labels import LabelSets, mark_new_values
from tests.model.lag import quantile, quantiles
from tests.model.naming import shown
from tests.model.order import displacements
from tests.model.pathway import Counting
from tests.model.record import DEFERRED
from tests.model.seconds import count_by_second, find_bursts, find_seconds
from tests.model.sets import NONE, AtNode, Ids, WindowSets
from tests.model.times import PathTimes
from tests.model.unreadable_records import folder_of, is_touched, unheard
from tests.model.wire import Received, read_spool

MOST_IDS = 100
MOST_SLOWEST = 5
ANY_NUMBER = 2**53


def report(streams_config: Mapping[str, Mapping[str, Any]], spool_dir: Path) -> dict[str, Any]:
    """Give the object of INTERFACE.md; `streams_config` holds the `[streams.X]` tables by name."""
    streams = {name: Stream.of(table) for name, table in streams_config.items()}
    intake = take_in(read_spool(spool_dir), streams | {PULSE: Stream.of({"path": "monitor"})})
    return {
        "streams": [
            {"stream": name, "windows": _windows(name, stream, intake, streams)} for name, stream in streams.items()
        ],
        "accounts": intake.accounts(),
    }


def _windows(name: str, stream: Stream, intake: Intake, streams: Mapping[str, Stream]) -> list[dict[str, Any]]:
    instances = find_instances(name, stream, intake)
    everybody: list[Instance | Unheard] = [*instances.values(), *unheard(name, stream, intake, instances)]
    by_minute: dict[int, list[Received]] = defaultdict(list)
    for one in intake.in_windows:
        if one.batch.stream == name:
            by_minute[one.window_us].append(one)
    shown = [
        JudgedWindow(stream, start_us, by_minute[start_us], everybody, intake, streams).shown()
        for start_us in _minutes(name, stream, intake)
    ]
    mark_new_values(shown)
    for window in shown:
        mark_causes(window)
        mark_lag_causes(window)
    return shown


class OpenAccounts:
    """Instances whose account of a window is not complete, in a spool directory as it stands."""

    def __init__(self, streams_config: Mapping[str, Mapping[str, Any]], spool_dir: Path) -> None:
        """Read it; `streams_config` holds the `[streams.X]` tables by name."""
        self.streams = {name: Stream.of(table) for name, table in streams_config.items()}
        self.intake = take_in(read_spool(spool_dir), self.streams | {PULSE: Stream.of({"path": "monitor"})})

    def find(self, name: str, starts_us: Iterable[int]) -> set[tuple[str, str, int]]:
        """Give those of a stream, by node, probe and epoch, with a say in one of the windows."""
        stream, found = self.streams[name], set()
        instances = find_instances(name, stream, self.intake)
        for start_us in starts_us:
            inside = [one for one in self.intake.in_windows if one.batch.stream == name and one.window_us == start_us]
            window = JudgedWindow(stream, start_us, inside, (), self.intake, self.streams).window
            found |= {
                (one.node, one.sent[0].batch.probe, one.sent[0].batch.epoch_us)
                for one in instances.values()
                if one.has_a_say(window) and not one.complete(window)
            }
        return found


def _minutes(name: str, stream: Stream, intake: Intake) -> range:
    """Give every minute (µs) from the first to the last with a plausible batch, of whatever kind, gaps too."""
    starts = [one.window_us for one in intake.known if one.batch.stream == name and not stream.implausible(one)]
    return range(min(starts), max(starts) + 1, MINUTE_US) if starts else range(0)


class JudgedWindow:
    """One stream and window with its sets, its books and what follows from both."""

    def __init__(
        self,
        stream: Stream,
        start_us: int,
        inside: Sequence[Received],
        instances: Sequence[Instance | Unheard],
        intake: Intake,
        streams: Mapping[str, Stream],
    ) -> None:
        """Take the batches that are in the window, and all instances of the stream."""
        self.stream, self.pathway = stream, stream.pathway
        self.all_inside, self.inside = inside, inside if stream.order else ()
        self.observed = [(one.batch.node, seen) for one in inside for seen in one.batch.observations]
        self.sets = WindowSets(self.pathway, self.observed)
        self.second_of = find_seconds(self.observed)
        self.times = PathTimes(self.pathway, self.observed)
        self.labels = LabelSets(self.pathway, [one for one in inside if one.batch.observations])
        end_us = start_us + MINUTE_US
        sighted_us, self.endless = self._sightings_us(inside, end_us)
        self.window = Window(start_us, end_us, self._horizon_us(max([end_us, *sighted_us])))
        touched = is_touched(intake, streams, self.window.judged, stream.settle_us)
        self.books = {
            node: node_books([one for one in instances if one.node == node], self.window, is_touched=touched)
            for node in self.pathway.declared
        }
        self.unplaced = sum(self._unplaced(one) for one in instances if one.node not in self.pathway.declared)
        self.by_instance: dict[tuple[str, str, int], AtNode] = defaultdict(AtNode)
        for one in inside:
            for seen in one.batch.observations:
                by = self.by_instance[one.batch.node, one.batch.probe, one.batch.epoch_us]
                by.add(seen, one_sided=one.batch.node in self.pathway.one_sided)
        self.counted = {node.name: counted_of(node.name, inside) for node in self.pathway.counting}
        self.counts = [
            JudgedCounts(node, self.counted[node.name], self.books[node.name], self._beside(node))
            for node in self.pathway.counting
        ]

    def _sightings_us(self, inside: Sequence[Received], end_us: int) -> tuple[list[int], Ids]:
        """Give the sightings that the horizon goes by, and the messages that wait for longer than anybody looks.

        Deferrals move the sightings of missing messages alone.
        """
        first_us = _first_sightings_us(inside)
        moved_us, endless = [], set()
        for message_id, until_us in _deferred_until_us(inside).items():
            if until_us > end_us + self.stream.transit_us + self.stream.amend_for_us:
                endless.add(message_id)
            elif message_id in self.sets.lost():
                moved_us += [until_us - self.stream.transit_us, *_other_arrivals_us(inside, message_id)]
        return [*first_us.values(), *moved_us], frozenset(endless)

    def _horizon_us(self, last_sighting_us: int) -> int:
        """Give the moment up to which probes must have reported."""
        return last_sighting_us + self.stream.transit_us

    def _beside(self, node: Counting) -> Neighbours:
        """Give what the ids on both sides of a node that counts say."""
        before, behind, sets = node.before, node.behind, self.sets
        left = NONE if before is None else sets.left(before)
        return Neighbours(
            left=None if before is None else left,
            judged=left - self.endless,
            reached=NONE if behind is None else sets.seen(behind) | sets.after(behind),
            seen=None if behind is None else sets.seen(behind),
            are_complete=before is not None and self.books[before].complete,
            missing=self._missing_counts(node)
            + (0 if before is None else self.misnamed(before))
            + self._stopped([one for one in self._counting_before(node) if one.behind == behind]),
            is_confused=before is not None and self.is_confused(before),
            left_by=self._by_probe(before, "left"),
            seen_by=self._by_probe(behind, "seen"),
            lost_in_transit=NONE if behind is None else sets.lost_in_transit(behind) - self.endless,
            shown=lambda message_id: shown(self.pathway, message_id, self.observed),
        )

    def _by_probe(self, node: str | None, name: str) -> dict[str, Ids]:
        """Give the ids of N by the servers of the probes that stamped them."""
        found: dict[str, Ids] = {}
        for (at, probe, _), by in self.by_instance.items():
            if at == node and (ids := frozenset(getattr(by, name))):
                server = server_of(probe)
                found[server] = found.get(server, NONE) | ids
        return found

    def _counting_before(self, node: Counting) -> list[Counting]:
        """Give the counting nodes that stand before N, behind the same node with ids."""
        counting = self.pathway.counting
        return [one for one in counting[: counting.index(node)] if one.before == node.before]

    def _missing_counts(self, node: Counting) -> int:
        """Count what is missing by count at a node that counts."""
        return self.books[node.name].missing + self.unplaced

    def _weigh_counts(self, verdict: str) -> str:
        """Give the verdict by ids and counts."""
        ends = [(one, self._missing_counts(one.node)) for one in self.counts if one.node.is_end]
        if any(one.lost_before_lower for one in self.counts):
            return "LOSSY"
        if verdict == "SILENT" and any(one.books.heard for one in self.counts):
            return "UNKNOWN"
        if verdict == "IDLE" and not all(one.is_idle(missing) for one, missing in ends):
            return "UNKNOWN"
        if verdict == "CLEAN" and not all(one.proves_delivery(missing) for one, missing in ends):
            return "UNKNOWN"
        return verdict

    def lost_at(self, node: str) -> Ids:
        """Give the loss of N, but for what waits for longer than anybody looks."""
        return self.sets.lost_at(node) - self.endless

    def waits_at(self, node: str) -> Ids:
        """Give what would be lost at N, and waits for longer than anybody looks."""
        return self.sets.lost_at(node) & self.endless

    def lost(self) -> Ids:
        """Give what is lost end to end."""
        return self.sets.lost() - self.endless

    def _unplaced(self, instance: Instance | Unheard) -> int:
        """Count what an instance of an undeclared node may have hidden from any node; no end where it did not tell."""
        if instance.has_a_say(self.window) and not instance.told(self.window):
            return ANY_NUMBER
        observed = sum(
            one.batch.messages
            for one in (instance.sent if isinstance(instance, Instance) else ())
            if one.window_us == self.window.start_us and not self.stream.implausible(one)
        )
        return observed + instance.dropped(self.window) + instance.aside(self.window)

    def strangers_messages(self, node: str) -> int:
        """Count what instances of N name as nobody before does: all arrivals of one, and all departures of one."""
        sets = self.sets
        before = NONE.union(*(sets.seen(other) for other in self.pathway.upstream(node)))
        is_origin = node in self.pathway.origins
        count = 0
        for by in self._of_node(node):
            arrivals = by.seen - by.left_only
            if not is_origin and not arrivals & before:
                count += len(arrivals)
            if (not is_origin or sets.came(node)) and not by.left & (before | sets.came(node)):
                count += len(by.left)
        return count

    def renamed_waits(self, node: str) -> int:
        """Count the deferred messages of N that another of its instances may have handled by another name."""
        own = self._of_node(node)
        if node in self.pathway.origins:
            may_rename = any(not by.left & self.sets.after(node) for by in own)
        else:
            may_rename = self.strangers_messages(node) > 0
        return len(self.sets.deferred(node)) if len(own) > 1 and may_rename else 0

    def unfollowed_messages(self, node: str) -> int:
        """Count the departures of instances of N none of which is seen behind N."""
        if node in self.pathway.terminals:
            return 0
        return sum(len(by.left) for by in self._of_node(node) if not by.left & self.sets.after(node))

    def renamed_departures(self, node: str, renamed: int) -> int:
        """Count the departures before N that may be seen at it by another name; `renamed` shows that so many are.

        What was deferred may have left by both names, and shows nothing: then all may be that left one of several.
        """
        above = self.pathway.upstream(node)
        unfollowed = {other: self.unfollowed_messages(other) for other in above}
        has_waits = any(seen.outcome == DEFERRED for _, seen in self.observed)
        of_several = sum(unfollowed[other] for other in above if has_waits and len(self._of_node(other)) > 1)
        return max(min(renamed, sum(unfollowed.values())), of_several)

    def _of_node(self, node: str) -> list[AtNode]:
        return [by for (at, *_), by in self.by_instance.items() if at == node]

    def misnamed(self, node: str) -> int:
        """Count the messages that may have another name at N than before it."""
        renamed = self.renamed_departures(node, len(self.sets.orphans(node) | self.sets.unleft(node)))
        return self.strangers_messages(node) + self.strangers_above(node) + renamed

    def missing(self, node: str) -> int:
        """Give u(N): how many messages are missing at N by count."""
        return self.books[node].missing + self.unplaced + self.misnamed(node) + self.stopped_before(node)

    def stopped_before(self, node: str) -> int:
        """Count what nodes that only count may have stopped on the way to N."""
        return self._stopped([one for one in self.pathway.counting if one.behind == node and one.before is not None])

    def _stopped(self, between: Sequence[Counting]) -> int:
        return sum(
            sum(counted.stopped for counted in self.counted[one.name])
            + self.books[one.name].missing
            + silent(self.counted[one.name], self._by_probe(one.before, "left"))
            if self.books[one.name].bounded
            else ANY_NUMBER
            for one in between
        )

    def told_groups(self, node: str) -> list[frozenset[str]]:
        """Give the one-of groups of N all of whose targets have told accounts."""
        return [group for group in self.pathway.one_of[node] if all(self.books[to].bounded for to in group)]

    def shown_lost_at(self, node: str) -> Ids:
        """Give the loss that N shows; nothing unless its accounts are told."""
        if not self.books[node].bounded:
            return NONE
        after = NONE.union(*(self.sets.lost_after_group(node, group) for group in self.told_groups(node)))
        return (self.sets.lost_in_transit(node) | self.sets.lost_inside(node) | after) - self.endless

    def explained(self, node: str) -> int:
        """Give how much of the loss that N shows what is missing by count can explain."""
        targets = frozenset().union(*self.told_groups(node))
        if any(self.is_confused(to) for to in (node, *targets)):
            return len(self.shown_lost_at(node))
        return self.missing(node) + self.renamed_waits(node) + sum(self.missing(to) for to in targets)

    def is_confused(self, node: str) -> bool:
        """Say whether ways meet at N, and a message may have come there by two names."""
        above = self.pathway.upstream(node)
        feeders = [other for other in self.pathway.nodes if node in self.pathway.next_nodes(other)]
        renamed = sum(len(self.sets.orphans(other) | self.sets.unleft(other)) for other in (node, *above))
        return len(feeders) > 1 and self.strangers_above(node) + self.renamed_departures(node, renamed) > 0

    def strangers_above(self, node: str) -> int:
        """Count the messages of strangers at the nodes before N."""
        return sum(self.strangers_messages(other) for other in self.pathway.upstream(node))

    def loss_lower(self, node: str) -> int:
        """Give the lower bound of the loss of N."""
        return max(0, len(self.shown_lost_at(node)) - self.explained(node))

    def loss_upper(self, node: str) -> int | None:
        """Give the upper bound of the loss of N."""
        books = self.books[node]
        if not books.bounded or self.waits_at(node):
            return None
        return len(self.lost_at(node)) + books.dropped

    def lost_lower(self) -> int:
        """Give the lower bound end to end."""
        if self.pathway.sends_to_several_places and not all(
            self.books[node].bounded for node in self.pathway.terminals
        ):
            return 0
        shown = {node: self.shown_lost_at(node) & self.lost() for node in self.pathway.nodes}
        explained = sum(min(len(ids), self.explained(node)) for node, ids in shown.items())
        return max(0, len(NONE.union(*shown.values())) - explained)

    def lost_upper(self) -> int | None:
        """Give the upper bound end to end."""
        telling = [self.books[node] for node in {*self.pathway.origins, *self.pathway.splits}]
        if not all(books.bounded for books in telling) or self.sets.lost() & self.endless:
            return None
        return len(self.lost()) + sum(books.dropped for books in telling)

    def verdict(self) -> str:
        """Judge by ids, then weigh what was counted."""
        return self._weigh_counts(self._verdict_by_ids())

    def _verdict_by_ids(self) -> str:
        """Judge in the order of the page."""
        nodes = self.pathway.nodes
        origins_complete = all(books.complete for books in self._origins_books())
        if not any(self.books[node].heard for node in nodes):
            return "SILENT"
        if not self.sets.known() and origins_complete:
            return "IDLE"
        if self.lost_lower() > 0 or any(self.loss_lower(node) > 0 for node in nodes):
            return "LOSSY"
        if self.lost_upper() == 0 and not any(self.lost_at(node) for node in nodes) and origins_complete:
            return "CLEAN"
        return "UNKNOWN"

    def shown(self) -> dict[str, Any]:
        """Give W of INTERFACE.md."""
        sets = self.sets
        known, rejected, lost = sets.known(), sets.rejected_anywhere(), self.lost()
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
            "partial": len(sets.partial() - self.endless),
            "lost_lower": self.lost_lower(),
            "lost_upper": self.lost_upper(),
            "loss_ratio": _ratio(lost, known),
            "in_flight": len(sets.lost() & self.endless),
            "recovered": 0,
            "lag_us": quantiles([lag for node in self.pathway.terminals for lag in sets.at[node].lags_out_us]),
            "nodes": [self.shown_node(node) for node in self.pathway.nodes],
            "deferred": len(NONE.union(*(sets.deferred(node) for node in self.pathway.nodes))),
            "counts": [one.shown() for one in self.counts],
            "overdue": 0,
        }

    def shown_node(self, node: str) -> dict[str, Any]:
        """Give N of INTERFACE.md."""
        sets, at, books, rejected = self.sets, self.sets.at[node], self.books[node], self.sets.rejected(node)
        lost, overtaken = self.lost_at(node), displacements(self.pathway, node, self.inside)
        messages = (sets.expected(node) | at.seen) - self.waits_at(node)
        by_second = count_by_second(self.second_of, frozenset(messages), lost)
        departed = Departures(self.all_inside, node, self.window.start_us, one_sided=node in self.pathway.one_sided)
        return {
            "node": node,
            "deferred": len(sets.deferred(node)),
            "overdue": 0,
            "overdue_ids": [],
            "inversions": sum(overtaken),
            "displacement": quantiles(overtaken),
            "expected": len(sets.expected(node)),
            "seen": len(at.seen),
            "arrived": len(at.came),
            "departed": len(at.left),
            "filtered": len(sets.stopped(node) - rejected),
            "rejected": len(rejected),
            "lost_in_transit": len(sets.lost_in_transit(node) - self.endless),
            "lost_inside": len(sets.lost_inside(node) - self.endless),
            "lost_after": len(sets.lost_after(node) - self.endless),
            "loss": len(lost),
            "loss_lower": self.loss_lower(node),
            "loss_upper": self.loss_upper(node),
            "loss_ratio": _ratio(lost, sets.expected(node) | sets.seen(node)),
            "in_flight": len(self.waits_at(node)),
            "unobserved": len(sets.unobserved(node)),
            "orphans": len(sets.orphans(node)),
            "duplicates_in": len(at.lags_in_us) - len(at.stamped_in),
            "duplicates_out": len(at.lags_out_us) - len(at.left),
            "lag_negative": sum(lag < 0 for lag in at.lags_in_us + at.lags_out_us),
            "dropped": books.dropped,
            "coverage": books.coverage,
            "lag_in_us": quantiles(at.lags_in_us),
            "lag_out_us": quantiles(at.lags_out_us),
            "inside_us": quantiles(at.inside_us),
            "process_duration_p95_us": self._process_duration_p95_us(node),
            "lost_ids": [shown(self.pathway, one, self.observed) for one in sorted(lost)[:MOST_IDS]],
            "slowest": [
                {"id": shown(self.pathway, one, self.observed), "lag_out_us": at.slowest_us[one]}
                for one in sorted(at.slowest_us, key=lambda one: (-at.slowest_us[one], one))[:MOST_SLOWEST]
            ],
            "labels": self.labels.shown(
                node, sets, (lost, self.waits_at(node)), (self.loss_lower(node), self.loss_upper(node)), departed
            ),
            "seconds": by_second,
            "bursts": find_bursts(by_second),
            "times": self.times.shown(node) if len(self.pathway.nodes) > 1 else [],
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


def _deferred_until_us(inside: Sequence[Received]) -> dict[bytes, int]:
    """Give for every message that is deferred somewhere the latest moment until which it waits, in whole seconds."""
    until_us: dict[bytes, int] = {}
    for one in inside:
        for seen in one.batch.observations:
            if seen.outcome == DEFERRED:
                whole_us = -(-max(0, seen.until_us) // 1_000_000) * 1_000_000
                until_us[seen.message_id] = max(whole_us, until_us.get(seen.message_id, 0))
    return until_us


def _other_arrivals_us(inside: Sequence[Received], message_id: bytes) -> list[int]:
    """Give the arrivals of the observations of a message that do not defer it."""
    return [
        one.arrival_us
        for one in inside
        for seen in one.batch.observations
        if seen.message_id == message_id and seen.outcome != DEFERRED
    ]


def find_instances(name: str, stream: Stream, intake: Intake) -> dict[str, Instance]:
    """Give the probe instances of a stream by folder: an implausible batch keeps its number, but touches no window."""
    sent: dict[tuple[str, str, int], list[Received]] = defaultdict(list)
    for one in (*intake.first, *intake.undeclared):
        if one.batch.stream == name:
            sent[one.batch.node, one.batch.probe, one.batch.epoch_us].append(one)
    return {folder_of(name, *key): _instance(key[0], batches, stream) for key, batches in sent.items()}


def _instance(node: str, batches: Sequence[Received], stream: Stream) -> Instance:
    observed = [one for one in batches if one.batch.is_of_window]
    implausible = [one for one in observed if stream.implausible(one)]
    late = [one for one in observed if one in implausible or stream.too_late(one)]
    in_window = frozenset(one.batch.window_start_ms for one in observed if one not in late)
    aside = frozenset(one.batch.window_start_ms for one in late if one not in implausible or is_near(one))
    return Instance(node, batches, in_window, aside, implausible)
