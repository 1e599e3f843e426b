"""Counts: what nodes without ids tell of a window, and what that shows beside the ids of their neighbours.

Counts show a loss only where fewer were counted than ids left the node before; that nothing was lost they show by equal
fingerprints alone. Each is by the definitions of SEMANTICS.md, "Nodes that only count".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.books import MAX_DROPPED
from hopwatch.monitor.kernel.count_lags import NO_LAGS, CountLags, digest_histograms
from hopwatch.monitor.kernel.packets import Packet, add_packets
from hopwatch.monitor.kernel.reconciliation import (
    MAX_SHOWN,
    CountedServer,
    ServersBeside,
    compare_servers,
    find_missing,
    select_servers,
)
from hopwatch.monitor.kernel.servers import ServerIds, name_server
from hopwatch.monitor.kernel.sets import Sets
from hopwatch.monitor.kernel.tally import LostIds
from hopwatch.monitor.pathway import CountingNode, Pathway
from hopwatch.monitor.results import NodeCounts, ServerCount, Verdict
from hopwatch.probes.contract.batch import MetricsStamp
from hopwatch.probes.contract.lag_histograms import PackedLags

Prints = NDArray[np.uint64]
Int64s = NDArray[np.int64]


class CountedInstance(NamedTuple):
    """Packets of one probe instance in a window, by stamp, and the histograms of their lags, where they told any."""

    probe: str
    epoch_us: int
    packets: Mapping[int, Packet]
    lags: Mapping[int, PackedLags] = MappingProxyType({})

    @property
    def arrived(self) -> Packet:
        """The messages that it counted as they arrived, or at all."""
        return self.packets.get(MetricsStamp.IN) or self._others

    @property
    def departed(self) -> Packet:
        """The messages that it counted as they left, or as they arrived."""
        return self.packets.get(MetricsStamp.OUT) or self.packets.get(MetricsStamp.IN, Packet())

    @property
    def most(self) -> int:
        """The number of messages that it counted, at most."""
        return max(self.packets.get(MetricsStamp.IN, Packet()).count, self._others.count)

    @property
    def stopped(self) -> int:
        """The number of messages that it filtered, rejected or deferred."""
        passed = (MetricsStamp.IN, MetricsStamp.OUT)
        return sum(packet.count for stamp, packet in self.packets.items() if stamp not in passed)

    @property
    def lags_in(self) -> tuple[PackedLags, ...]:
        """The lags of what it counted as it arrived, or at all; what is deferred will come again."""
        stamps = (MetricsStamp.OUT, MetricsStamp.FILTERED, MetricsStamp.REJECTED)
        return self._take_lags((MetricsStamp.IN,) if MetricsStamp.IN in self.packets else stamps)

    @property
    def lags_out(self) -> tuple[PackedLags, ...]:
        """The lags of what it counted as it left, or as it arrived."""
        return self._take_lags((MetricsStamp.OUT if MetricsStamp.OUT in self.packets else MetricsStamp.IN,))

    def _take_lags(self, stamps: Iterable[MetricsStamp]) -> tuple[PackedLags, ...]:
        return tuple(self.lags[stamp] for stamp in stamps if stamp in self.lags)

    @property
    def _others(self) -> Packet:
        return add_packets(packet for stamp, packet in self.packets.items() if stamp != MetricsStamp.IN)


@dataclass(frozen=True, slots=True)
class CountedBooks:
    """Account of a counting node in a window: the packets of its instances, and the fields of :class:`NodeBooks`.

    ``lags`` are those of :func:`with_lags`, which costs more than all else, and is for a window that is judged.
    """

    instances: tuple[CountedInstance, ...]
    having_a_say: int
    heard: int
    told: int
    complete: int
    dropped: int
    aside: int
    unplaced: int
    lags: CountLags = NO_LAGS

    @property
    def is_complete(self) -> bool:
        """Return whether every account with a say is complete, and at least one instance was heard."""
        return self.complete == self.having_a_say and self.heard > 0

    @property
    def most(self) -> int:
        """Number of messages that were counted, at most."""
        return sum(one.most for one in self.instances)

    @property
    def is_whole_inside(self) -> bool:
        """Return whether nothing stayed inside, as far as instances counted more than one side."""
        both = [one.packets for one in self.instances if MetricsStamp.IN in one.packets and len(one.packets) > 1]
        gone = (MetricsStamp.OUT, MetricsStamp.FILTERED, MetricsStamp.REJECTED)
        came = add_packets(packets[MetricsStamp.IN] for packets in both)
        went = add_packets(packets.get(stamp, Packet()) for packets in both for stamp in gone)
        waits = sum(packets.get(MetricsStamp.DEFERRED, Packet()).count for packets in both)
        return not waits and came.matches(went) is True

    @property
    def missing(self) -> int:
        """Number of messages that are missing by count."""
        return self.dropped + self.aside + self.unplaced

    @property
    def stopped(self) -> int:
        """Number of messages that may have ended here on purpose, at most MAX_DROPPED."""
        if self.told != self.having_a_say or not self.heard:
            return MAX_DROPPED
        told = sum(one.stopped for one in self.instances)
        return min(told + self.dropped + self.aside, MAX_DROPPED)


def with_lags(books: CountedBooks) -> CountedBooks:
    """Return the account of a counting node with the digests of the lags that its instances told."""
    came = [lags for one in books.instances for lags in one.lags_in]
    left = [lags for one in books.instances for lags in one.lags_out]
    lags_in = digest_histograms(came)
    return replace(books, lags=CountLags(lags_in, lags_in if left == came else digest_histograms(left)))


class Neighbours(NamedTuple):
    """Ids of a window: its sets, prints by mask, and the messages by mask, all and those not in flight.

    ``servers`` are the messages by the names of probes, ``missing`` those that are missing at a node, None where there
    are more than were kept. ``are_complete``, ``misnamed`` and ``is_confused`` are by node, as for the verdict by ids.
    """

    sets: Sets
    counts: Int64s
    judged: Int64s
    prints: Prints | None
    servers: Sequence[ServerIds]
    missing: Callable[[int], LostIds | None]
    are_complete: NDArray[np.bool_]
    misnamed: Int64s
    is_confused: NDArray[np.bool_]


def conclude_counts(
    pathway: Pathway, ids: Neighbours, books: Sequence[CountedBooks], silent: Sequence[int], *, is_final: bool
) -> tuple[NodeCounts, ...]:
    """Return what is said of each counting node, in the pathway's order; no loss before the window is final.

    ``silent`` is what :func:`count_silent` says of each.
    """
    found = []
    stopped: dict[tuple[int | None, int | None], int] = {}
    for node, of_node, silent_here in zip(pathway.counting, books, silent, strict=True):
        between = node.before, node.behind
        elsewhere = stopped.get(between, 0) + silent_here
        lower = _bound_loss(pathway, node, ids, of_node, elsewhere) if is_final else 0
        found.append(_conclude_node(pathway, node, ids, of_node, lower))
        stopped[between] = min(elsewhere + of_node.stopped, MAX_DROPPED)
    return tuple(found)


def weigh_counts(
    pathway: Pathway, by_ids: Verdict, books: Sequence[CountedBooks], counts: Sequence[NodeCounts]
) -> Verdict:
    """Return the verdict by ids and counts: they may show a loss, and at the ends of a path leave doubts."""
    if any(one.lost_before_lower for one in counts):
        return Verdict.LOSSY
    if by_ids is Verdict.SILENT:
        return Verdict.UNKNOWN if any(one.heard for one in books) else Verdict.SILENT
    ends = [pair for pair in zip(pathway.counting, books, counts, strict=True) if pair[0].is_end]
    if by_ids is Verdict.IDLE and not all(one.is_complete and one.missing == one.most == 0 for _, one, _ in ends):
        return Verdict.UNKNOWN
    if by_ids is Verdict.CLEAN and not all(_proves_delivery(*end) for end in ends):
        return Verdict.UNKNOWN
    return by_ids


def explain_counts(pathway: Pathway, books: Sequence[CountedBooks], counts: Sequence[NodeCounts]) -> Iterator[str]:
    """Yield what counts say that ids do not, or why they say nothing."""
    for node, of_node, said in zip(pathway.counting, books, counts, strict=True):
        if said.lost_before_lower:
            missing = f"at least {said.lost_before_lower} of {said.left_before} messages that left {said.before}"
            yield f"{node.name}: {missing} were not counted, by count"
        if not of_node.heard:
            yield f"{node.name}: no probe instance was heard; nothing was counted"
        elif not of_node.is_complete:
            untold = of_node.having_a_say - of_node.complete
            yield f"{node.name}: {untold} of {of_node.having_a_say} probe instances did not tell all that they counted"
        elif node.is_end and not _proves_delivery(node, of_node, said) and not said.lost_before_lower:
            there = said.behind if node.before is None else said.before
            same = said.same_behind if node.before is None else said.same_before
            why = "counts alone prove no delivery" if same is None else "the messages are not the same, by fingerprint"
            if same:
                why = "not all that came is shown to have left"
            seen, mine = (said.seen_behind, said.departed) if node.before is None else (said.left_before, said.arrived)
            yield f"{node.name}: {mine} messages by count, {seen} by ids at {there}: {why}"
        elif not node.is_end and of_node.stopped:
            ended = f"up to {of_node.stopped} messages may have ended there on purpose, by count"
            yield f"{node.name}: {ended}; what is missing at {said.behind} may be among them"


def _conclude_node(
    pathway: Pathway, node: CountingNode, ids: Neighbours, books: CountedBooks, lower: int
) -> NodeCounts:
    arrived = add_packets(one.arrived for one in books.instances)
    departed = add_packets(one.departed for one in books.instances)
    left = None if node.before is None else _print_of(ids, ids.sets.departed[:, node.before])
    seen = None if node.behind is None else _print_of(ids, ids.sets.seen[:, node.behind])
    return NodeCounts(
        node=node.name,
        arrived=min(arrived.count, MAX_SHOWN),
        departed=min(departed.count, MAX_SHOWN),
        bytes=min(arrived.bytes, MAX_SHOWN),
        dropped=books.dropped,
        coverage=books.complete / books.having_a_say if books.having_a_say else None,
        before=None if node.before is None else pathway.nodes[node.before],
        left_before=None if left is None else left.count,
        same_before=None if left is None else arrived.matches(left),
        lost_before_lower=lower,
        behind=None if node.behind is None else pathway.nodes[node.behind],
        seen_behind=None if seen is None else seen.count,
        same_behind=None if seen is None or not node.is_alone else departed.matches(seen),
        servers=_compare_servers(pathway, node, ids, books),
        **books.lags.figures,
    )


def _compare_servers(
    pathway: Pathway, node: CountingNode, ids: Neighbours, books: CountedBooks
) -> tuple[ServerCount, ...]:
    """Return what was counted by the names of probes, beside the ids of probes of the same names."""
    counted: dict[str, CountedServer] = {}
    for one in books.instances:
        server = name_server(one.probe)
        known = counted.get(server, CountedServer(Packet(), Packet()))
        counted[server] = CountedServer(known.arrived.plus(one.arrived), known.departed.plus(one.departed))
    before, behind = node.before, node.behind
    left = select_servers(ids.servers, before, counted, has_left=True)
    seen = select_servers(ids.servers, behind, counted, has_left=False)
    missing = None
    if left and before is not None and behind is not None and (lost := ids.missing(behind)) is not None:
        names = pathway.nodes[before], pathway.nodes[behind]
        missing = find_missing(lost, *names, is_one_sided=pathway.stamps[before] != "both")
    return compare_servers(counted, ServersBeside(left, seen, missing, node.is_alone))


def _print_of(ids: Neighbours, chosen: NDArray[np.bool_]) -> Packet:
    """Return the messages of the chosen masks as a packet; one without a fingerprint where tallies have none."""
    count = int(ids.counts[chosen].sum())
    if ids.prints is None:
        return Packet(count)
    xors, sums = ids.prints[chosen, 0], ids.prints[chosen, 1]
    return Packet(count, int(np.bitwise_xor.reduce(xors)), int(sums.sum(dtype=np.uint64)), 0, count)


def _bound_loss(pathway: Pathway, node: CountingNode, ids: Neighbours, books: CountedBooks, elsewhere: int) -> int:
    """Return how many messages were surely lost between the node with ids before a counting one, and that.

    ``elsewhere`` of them may have ended on purpose at counting nodes on the way, or be with servers that are silent.
    """
    before, behind = node.before, node.behind
    if before is None or not (books.is_complete and ids.are_complete[before]) or ids.is_confused[before]:
        return 0
    left = ids.sets.departed[:, before]
    came_on = np.zeros(len(left), bool)
    if behind is not None:
        came_on = ids.sets.seen[:, behind] | ids.sets.seen @ pathway.downstream[behind]
    missing = int(ids.judged @ (left & ~came_on))
    uncounted = int(ids.judged @ left) - books.most
    return max(0, min(missing, uncounted) - books.missing - int(ids.misnamed[before]) - elsewhere)


def count_silent(node: CountingNode, books: CountedBooks, servers: Sequence[ServerIds]) -> int:
    """Return how many messages left for a counting node by servers that counted nothing, where others did.

    Cut off, they may still tell what became of these: they count as missing by count. ``servers`` has the messages of
    the window by server.
    """
    if node.before is None:
        return 0
    counted = {name_server(one.probe) for one in books.instances}
    left = select_servers(servers, node.before, counted, has_left=True)
    return sum(packet.count for server, packet in left.items() if server not in counted)


def _proves_delivery(node: CountingNode, books: CountedBooks, counts: NodeCounts) -> bool:
    """Return whether a node at an end of the path says that nothing was lost between it and the ids."""
    same = counts.same_behind if node.before is None else counts.same_before
    return books.is_complete and books.missing == 0 and books.is_whole_inside and same is True
