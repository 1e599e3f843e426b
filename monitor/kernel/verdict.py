"""Verdict on a window, with bounds and reasons: the tally, weighed by how complete the books are.

The promise: no false loss. A lower bound counts only what was seen to leave one place and was not seen at the next by
probes whose accounts have no hole, less all that is known to be missing by count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import sets, tdigest
from hopwatch.monitor.kernel.books import MAX_DROPPED
from hopwatch.monitor.kernel.counts import (
    CountedBooks,
    Neighbours,
    conclude_counts,
    count_silent,
    explain_counts,
    weigh_counts,
)
from hopwatch.monitor.kernel.figures import lag_fields, quantiles_of, ratio
from hopwatch.monitor.kernel.relations import NO_COUNT, Relation
from hopwatch.monitor.kernel.tally import ALWAYS_US, NEVER_US, LostIds, Tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import NodeCounts, NodeResult, Status, Verdict, WindowResult

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]

ID_TYPE_QUESTION: Final = "do the nodes use one type of id?"
"""End of the reason for a probe instance whose ids no earlier node knows."""
MAX_NAMED: Final = 3
"""Most probes of a node, and most nodes, that a reason names."""


@dataclass(frozen=True, slots=True)
class NodeBooks:
    """Summary of a window's books by node; all of shape (nodes,).

    ``having_a_say`` counts the instances whose account matters, ``told`` and ``complete`` those of them with such an
    account, ``heard`` those that were heard, ``dropped`` the observations that they had to drop, ``aside`` those that
    were set aside as implausible, ``unplaced`` those of nodes that are not declared: each of them may be of any node.
    """

    having_a_say: Int64s
    heard: Int64s
    told: Int64s
    complete: Int64s
    dropped: Int64s
    aside: Int64s
    unplaced: Int64s

    @property
    def are_complete(self) -> Bools:
        """Return whether every account with a say is complete, and at least one instance was heard."""
        return np.asarray((self.complete == self.having_a_say) & (self.heard > 0))

    @property
    def are_bounded(self) -> Bools:
        """Return whether nothing is unknown but observations that are missing by count."""
        return np.asarray((self.told == self.having_a_say) & (self.heard > 0))

    @property
    def missing(self) -> Int64s:
        """Number of messages of each node that are missing by count: each may look like a loss."""
        return self.dropped + self.aside + self.unplaced


@dataclass(frozen=True, slots=True)
class WindowStage:
    """Window to judge, and its stage of life.

    What was first sighted at ``settled_before_us`` or later is in flight.
    """

    stream: str
    window_start_us: int
    status: Status
    settled_before_us: int = NEVER_US
    revision: int = 0
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class _Bounds:
    node_lower: Int64s
    node_upper: list[int | None]
    lower: int
    upper: int | None


class _MisnamedMessages(NamedTuple):
    """Number of messages that may have another id at a node than before it, shape (nodes,).

    What one node names otherwise, any node behind it may name otherwise again. Where ways meet behind it, a message may
    come by two names: there no loss is sure.
    """

    messages: Int64s
    is_confused: Bools


def conclude_window(  # noqa: PLR0913, PLR0917 - a window, what was seen of it, and how much that is to be believed
    pathway: Pathway,
    standing: WindowStage,
    tally: Tally,
    books: NodeBooks,
    undeclared: Sequence[str] = (),
    counted: Sequence[CountedBooks] = (),
) -> WindowResult:
    """Return all that is said of a window. Until it is final, nothing is lost: what is missing is in flight.

    ``undeclared`` names the nodes that ``books.unplaced`` counts, ``counted`` are the books of the nodes that count.
    """
    found = sets.classify(pathway, tally.masks)
    final = standing.status.is_final
    all_counts = tally.counts
    judged = tally.settled(standing.settled_before_us) if final else np.zeros_like(all_counts)
    strangers = _find_strangers(pathway, found, tally)
    # How many of each node's loss wait for longer than anybody looks.
    endless = np.where(tally.sighted_us == NEVER_US, all_counts, 0) @ found.loss
    is_shared = _find_shared_waits(pathway, tally)
    misnamed = _count_misnamed(pathway, found, tally, strangers, is_shared)
    deferred = tally.deferred if tally.deferred is not None else np.zeros(len(pathway.nodes) + 1, np.int64)
    renamed_waits = _count_renamed_waits(pathway, tally, deferred, is_shared)
    silent = [count_silent(*of_node, tally.servers) for of_node in zip(pathway.counting, counted, strict=False)]
    stopped = _add_stopped(pathway, misnamed, counted, silent)
    bounds = _bounds(pathway, found, judged, books, stopped, endless, renamed_waits)
    counts: tuple[NodeCounts, ...] = ()
    if counted:
        ids = Neighbours(
            found, all_counts, judged, tally.prints, tally.servers,
            partial(_find_missing, tally, found, standing), books.are_complete, *misnamed,
        )  # fmt: skip
        counts = conclude_counts(pathway, ids, counted, silent, is_final=final)
    lost, known = int(judged @ found.lost), int(all_counts.sum())
    verdict = None
    if final:
        by_ids = _verdict(pathway, known, int((judged @ found.loss).sum()), bounds, books)
        verdict = weigh_counts(pathway, by_ids, counted, counts)
    return WindowResult(
        stream=standing.stream,
        window_start_us=standing.window_start_us,
        status=standing.status,
        revision=standing.revision,
        verdict=verdict,
        reasons=_reasons(
            pathway,
            strangers,
            books,
            verdict,
            undeclared,
            endless,
            renamed_waits,
            explain_counts(pathway, counted, counts),
        )
        if final
        else (),
        known=known,
        delivered=int(all_counts @ found.delivered),
        filtered=int(all_counts @ found.filtered_end_to_end),
        rejected=int(all_counts @ found.rejected_end_to_end),
        lost=lost,
        partial=int(judged @ found.partial),
        lost_lower=bounds.lower,
        lost_upper=bounds.upper if final else 0,
        loss_ratio=ratio(lost, known),
        in_flight=int((all_counts - judged) @ found.lost),
        recovered=standing.recovered,
        lag_us=quantiles_of(tdigest.merge([tally.lags[node].lag_out_us for node in np.flatnonzero(pathway.terminals)])),
        nodes=tuple(_node_results(pathway, found, tally, judged, books, bounds if final else None, deferred)),
        deferred=int(deferred[-1]),
        counts=counts,
    )


def _bounds(  # noqa: PLR0913, PLR0917 - all that bounds a loss
    pathway: Pathway,
    found: sets.Sets,
    judged: Int64s,
    books: NodeBooks,
    misnamed: _MisnamedMessages,
    endless: Int64s,
    renamed_waits: Int64s,
) -> _Bounds:
    told = books.are_bounded
    shown = sets.shown_lost(pathway, found, told)
    of_nodes = judged @ shown
    # Any of a node's loss may be what is missing there by count.
    explained = _count_explained(pathway, told, of_nodes, books.missing, misnamed) + renamed_waits
    lower = int(judged @ (found.lost & shown.any(axis=1))) - int(np.minimum(of_nodes, explained).sum())
    if pathway.sends_to_several and not told[pathway.terminals].all():
        # What one way lost, another may have delivered to a terminal that cannot tell.
        lower = 0
    loss = judged @ found.loss + books.dropped
    # Where a message came in, and where its ways part, hides a loss from all others if it does not tell.
    telling = pathway.origins | pathway.splits
    is_bounded = told[telling].all() and not endless.any()
    upper = int(judged @ found.lost) + int(books.dropped[telling].sum()) if is_bounded else None
    is_known = told & (endless == 0)
    node_upper = [int(of_node) if is_told else None for of_node, is_told in zip(loss, is_known, strict=True)]
    return _Bounds(np.maximum(of_nodes - explained, 0), node_upper, max(0, lower), upper)


def _find_missing(tally: Tally, found: sets.Sets, standing: WindowStage, node: int) -> LostIds | None:
    """Return the messages that are missing at a node, none before it is judged; None of more than were kept."""
    if int(tally.counts @ found.loss[:, node]) > len(tally.lost_ids[node].message_ids):
        return None
    return tally.lost(node, standing.settled_before_us if standing.status.is_final else ALWAYS_US)


def _find_strangers(pathway: Pathway, found: sets.Sets, tally: Tally) -> list[Relation]:
    """Return the instances that name messages otherwise than all before them; an origin may stamp departures alone."""
    arrives = (found.arrived & (tally.counts > 0)[:, None]).any(axis=0)
    may_be = ~pathway.origins | arrives
    return [one for one in tally.relations if one.strange and may_be[one.node]]


def _count_misnamed(
    pathway: Pathway, found: sets.Sets, tally: Tally, strangers: Sequence[Relation], is_shared: Bools
) -> _MisnamedMessages:
    """Return how many messages may have another name at each node than before it."""
    strange, unfollowed = np.zeros((2, len(pathway.nodes)), np.int64)
    for one in strangers:
        strange[one.node] += one.strange
    for one in tally.relations:
        unfollowed[one.node] += max(one.unfollowed, 0)
    renamed, gone = tally.counts @ (found.orphan | found.unleft), unfollowed @ pathway.downstream
    # What was deferred may have left by both names: then no orphan shows that it did.
    gone_of_several = (unfollowed * is_shared) @ pathway.downstream
    before = strange @ pathway.downstream
    here = strange + before + np.maximum(np.minimum(renamed, gone), gone_of_several)
    renamed_so_far = renamed + renamed @ pathway.downstream
    may_be_renamed = before + np.minimum(renamed_so_far, gone) + gone_of_several > 0
    is_confused = may_be_renamed & (pathway.edges.sum(axis=0) > 1)
    return _MisnamedMessages(here, is_confused)


def _count_renamed_waits(pathway: Pathway, tally: Tally, deferred: Int64s, is_shared: Bools) -> Int64s:
    """Return how many deferred messages of each node another of its instances may have handled by another name.

    Shape (nodes,). Nothing before an origin shows that its instances use the same names: only what is seen behind does.
    """
    apart = np.zeros(len(pathway.nodes), bool)
    for one in tally.relations:
        is_followed = one.unfollowed == 0 and not pathway.terminals[one.node]
        apart[one.node] |= not is_followed if pathway.origins[one.node] else one.strange > 0
    return np.where(apart & is_shared, deferred[:-1], 0)


def _find_shared_waits(pathway: Pathway, tally: Tally) -> Bools:
    """Return at which nodes several instances have observations, shape (nodes,); none where nothing was deferred."""
    if tally.deferred is None:
        return np.zeros(len(pathway.nodes), np.bool_)
    nodes = [one.node for one in tally.relations if one.came != NO_COUNT or one.left != NO_COUNT]
    return np.bincount(np.array(nodes, np.int64), minlength=len(pathway.nodes)) > 1


def _add_stopped(
    pathway: Pathway, misnamed: _MisnamedMessages, counted: Sequence[CountedBooks], silent: Sequence[int]
) -> _MisnamedMessages:
    """Add what counting nodes may have stopped on the way to each node, whose ids nobody knows either."""
    messages = misnamed.messages.copy()
    for node, of_node, silent_here in zip(pathway.counting, counted, silent, strict=False):
        if node.before is not None and node.behind is not None:
            messages[node.behind] = min(messages[node.behind] + of_node.stopped + silent_here, MAX_DROPPED)
    return misnamed._replace(messages=messages)


def _count_explained(
    pathway: Pathway, told: Bools, of_nodes: Int64s, missing: Int64s, misnamed: _MisnamedMessages
) -> Int64s:
    """Return how much of each node's shown loss what is missing by count can explain, shape (nodes,).

    What was lost behind a branch may have been at any of its next nodes.
    """
    targets = np.zeros_like(pathway.edges)
    for _, branch in sets.told_branches(pathway, told):
        targets[branch.source, list(branch.targets)] = True
    missing = np.minimum(missing + misnamed.messages, MAX_DROPPED)
    is_confused = misnamed.is_confused | (targets @ misnamed.is_confused)
    return np.where(is_confused, of_nodes, missing + targets @ missing)


def _verdict(pathway: Pathway, known: int, loss_of_nodes: int, bounds: _Bounds, books: NodeBooks) -> Verdict:
    origins_complete = bool(books.are_complete[pathway.origins].all())
    # 1. Nobody spoke: nothing was measured, which is neither good nor bad news about messages.
    if not books.heard.any():
        return Verdict.SILENT
    # 2. Nothing came in, and the entrance says so without a hole.
    if known == 0 and origins_complete:
        return Verdict.IDLE
    # 3. A loss is shown, whatever else stays unknown.
    if bounds.lower > 0 or bool((bounds.node_lower > 0).any()):
        return Verdict.LOSSY
    # 4. No room for a loss is left: what came in is known, and all of it is accounted for.
    if bounds.upper == 0 and loss_of_nodes == 0 and origins_complete:
        return Verdict.CLEAN
    # 5. Neither can be shown.
    return Verdict.UNKNOWN


def _reasons(  # noqa: PLR0913, PLR0917 - all that leaves a window unknown
    pathway: Pathway,
    strangers: Sequence[Relation],
    books: NodeBooks,
    verdict: Verdict | None,
    undeclared: Sequence[str],
    endless: Int64s,
    renamed_waits: Int64s,
    by_count: Iterable[str] = (),
) -> tuple[str, ...]:
    if verdict in (Verdict.CLEAN, Verdict.IDLE):
        return ()
    if verdict is Verdict.SILENT:
        return ("no probe instance was heard at any node",)
    said: list[str] = []
    for place, node in enumerate(pathway.nodes):
        having, told = int(books.having_a_say[place]), int(books.told[place])
        if not books.heard[place]:
            said.append(f"{node}: no probe instance was heard; what a hole hid has no number")
        elif told < having:
            missing = f"{having - told} of {having} probe instances did not tell all"
            said.append(f"{node}: {missing}; what a hole hid has no number, and a loss here may belong further down")
        if books.dropped[place]:
            said.append(f"{node}: its probes dropped {int(books.dropped[place])} observations")
        if books.aside[place]:
            said.append(f"{node}: {int(books.aside[place])} observations have event times that cannot be")
        if endless[place]:
            waiting = f"{node}: {int(endless[place])} messages that are missing here are deferred beyond amend_for"
            said.append(f"{waiting}; raise it above the longest time that a node keeps messages for")
        said += _describe_waits(node, int(renamed_waits[place]))
        said += [_describe_stranger(node, one) for one in strangers if one.node == place][:MAX_NAMED]
    if undeclared:
        names = ", ".join(undeclared[:MAX_NAMED]) + (", …" if len(undeclared) > MAX_NAMED else "")
        said.append(
            f"probes report nodes that the path does not have: {names}; correct them, or list them in ignore_nodes"
        )
    return (*said, *by_count)


def _describe_waits(node: str, count: int) -> list[str]:
    what = f"{node}: {count} messages were deferred, and another instance may have handled them under other ids"
    return [f"{what}: {ID_TYPE_QUESTION}"] if count else []


def _describe_stranger(node: str, one: Relation) -> str:
    what = f"none of the {one.strange} messages of the probe {one.probe} was seen before {node}"
    return f"{node}: {what}: {ID_TYPE_QUESTION}"


def _node_results(  # noqa: PLR0913, PLR0917 - the inputs of a row, each needed
    pathway: Pathway,
    found: sets.Sets,
    tally: Tally,
    judged: Int64s,
    books: NodeBooks,
    bounds: _Bounds | None,
    deferred: Int64s,
) -> list[NodeResult]:
    every = tally.counts
    names = ("expected", "seen", "arrived", "departed", "filtered", "rejected", "unobserved")
    counted = {name: every @ getattr(found, name) for name in names}
    lost = {name: judged @ getattr(found, name) for name in ("lost_in_transit", "lost_inside", "lost_after")}
    loss, pending = judged @ found.loss, (every - judged) @ found.loss
    orphans, eligible = every @ found.orphan, every @ (found.expected | found.seen)
    duplicates = tally.stamps - np.stack((counted["arrived"], counted["departed"]), axis=1)
    return [
        NodeResult(
            node=name,
            **_whole(counted | lost, node),
            loss=int(loss[node]),
            loss_lower=int(bounds.node_lower[node]) if bounds else 0,
            loss_upper=bounds.node_upper[node] if bounds else 0,
            loss_ratio=ratio(int(loss[node]), int(eligible[node])),
            in_flight=int(pending[node]),
            orphans=int(orphans[node]),
            duplicates_in=int(duplicates[node, 0]),
            duplicates_out=int(duplicates[node, 1]),
            lag_negative=int(tally.negative[node]),
            dropped=int(books.dropped[node]),
            coverage=ratio(int(books.complete[node]), int(books.having_a_say[node])),
            **lag_fields(tally.lags[node], is_one_sided=pathway.stamps[node] != "both"),
            deferred=int(deferred[node]),
            inversions=0 if tally.inversions is None else int(tally.inversions[node]),
        )
        for node, name in enumerate(pathway.nodes)
    ]


def _whole(columns: Mapping[str, Int64s], node: int) -> dict[str, Any]:
    return {field: int(column[node]) for field, column in columns.items()}
