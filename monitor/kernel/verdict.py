"""Verdict on a window, with bounds and reasons: the tally, weighed by how complete the books are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from hopwatch.monitor.kernel import sets, tdigest
from hopwatch.monitor.kernel.bounds import (
    Doubts,
    Int64s,
    LowerBounds,
    NodeBooks,
    bound_from_below,
    count_all_silent,
    find_doubts,
)
from hopwatch.monitor.kernel.counts import (
    CountedBooks,
    Neighbours,
    conclude_counts,
    explain_counts,
    weigh_counts,
)
from hopwatch.monitor.kernel.figures import lag_fields, quantiles_of, ratio
from hopwatch.monitor.kernel.overdue import Overdue
from hopwatch.monitor.kernel.relations import Relation
from hopwatch.monitor.kernel.tally import ALWAYS_US, NEVER_US, LostIds, Tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import NodeCounts, NodeResult, Status, Verdict, WindowResult

ID_TYPE_QUESTION: Final = "do the nodes use one type of id?"
"""End of the reason for a probe instance whose ids no earlier node knows."""
MAX_NAMED: Final = 3
"""Most probes of a node, and most nodes, that a reason names."""


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
    lower: LowerBounds
    node_upper: list[int | None]
    upper: int | None


def conclude_window(  # noqa: PLR0913, PLR0917 - a window, what was seen of it, and how much that is to be believed
    pathway: Pathway,
    standing: WindowStage,
    tally: Tally,
    books: NodeBooks,
    undeclared: Sequence[str] = (),
    counted: Sequence[CountedBooks] = (),
    overdue: Overdue | None = None,
) -> WindowResult:
    """Return all that is said of a window. Until it is final, nothing is lost: what is missing is in flight.

    ``undeclared`` names the nodes that ``books.unplaced`` counts, ``counted`` are the books of the nodes that count.
    ``overdue`` is what was overdue when that was last counted, while it is not final; what came since is not.
    """
    found = sets.classify(pathway, tally.masks)
    final = standing.status.is_final
    all_counts = tally.counts
    judged = tally.settled(standing.settled_before_us) if final else np.zeros_like(all_counts)
    # How many of each node's loss wait for longer than anybody looks.
    endless = np.where(tally.sighted_us == NEVER_US, all_counts, 0) @ found.loss
    doubts = find_doubts(pathway, found, tally)
    deferred = tally.deferred if tally.deferred is not None else np.zeros(len(pathway.nodes) + 1, np.int64)
    silent = count_all_silent(pathway, tally, counted)
    lower = bound_from_below(pathway, found, judged, books, doubts, counted, silent)
    bounds = _Bounds(lower, *_bound_from_above(pathway, found, judged, books, endless))
    counts: tuple[NodeCounts, ...] = ()
    if counted:
        ids = Neighbours(
            found, all_counts, judged, tally.prints, tally.servers,
            partial(_find_missing, tally, found, standing), books.are_complete, *doubts.misnamed,
        )  # fmt: skip
        counts = conclude_counts(pathway, ids, counted, silent, is_final=final)
    lost, known = int(judged @ found.lost), int(all_counts.sum())
    in_flight = int((all_counts - judged) @ found.lost)
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
            doubts,
            books,
            verdict,
            undeclared,
            endless,
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
        lost_lower=bounds.lower.end_to_end,
        lost_upper=bounds.upper if final else 0,
        loss_ratio=ratio(lost, known),
        in_flight=in_flight,
        recovered=standing.recovered,
        lag_us=quantiles_of(tdigest.merge([tally.lags[node].lag_out_us for node in np.flatnonzero(pathway.terminals)])),
        nodes=tuple(_node_results(pathway, found, tally, judged, books, bounds if final else None, deferred, overdue)),
        deferred=int(deferred[-1]),
        counts=counts,
        overdue=min(overdue.end_to_end, in_flight) if overdue else 0,
    )


def _bound_from_above(
    pathway: Pathway, found: sets.Sets, judged: Int64s, books: NodeBooks, endless: Int64s
) -> tuple[list[int | None], int | None]:
    """Return the most that each node, and all of them end to end, may have lost; None where nobody can tell."""
    told = books.are_bounded
    loss = judged @ found.loss + books.dropped
    # Where a message came in, and where its ways part, hides a loss from all others if it does not tell.
    telling = pathway.origins | pathway.splits
    is_bounded = told[telling].all() and not endless.any()
    upper = int(judged @ found.lost) + int(books.dropped[telling].sum()) if is_bounded else None
    is_known = told & (endless == 0)
    return [int(of_node) if is_told else None for of_node, is_told in zip(loss, is_known, strict=True)], upper


def _find_missing(tally: Tally, found: sets.Sets, standing: WindowStage, node: int) -> LostIds | None:
    """Return the messages that are missing at a node, none before it is judged; None of more than were kept."""
    if int(tally.counts @ found.loss[:, node]) > len(tally.lost_ids[node].message_ids):
        return None
    return tally.lost(node, standing.settled_before_us if standing.status.is_final else ALWAYS_US)


def _verdict(pathway: Pathway, known: int, loss_of_nodes: int, bounds: _Bounds, books: NodeBooks) -> Verdict:
    origins_complete = bool(books.are_complete[pathway.origins].all())
    # 1. Nobody spoke: nothing was measured, which is neither good nor bad news about messages.
    if not books.heard.any():
        return Verdict.SILENT
    # 2. Nothing came in, and the entrance says so without a hole.
    if known == 0 and origins_complete:
        return Verdict.IDLE
    # 3. A loss is shown, whatever else stays unknown.
    if bounds.lower.end_to_end > 0 or bool((bounds.lower.nodes > 0).any()):
        return Verdict.LOSSY
    # 4. No room for a loss is left: what came in is known, and all of it is accounted for.
    if bounds.upper == 0 and loss_of_nodes == 0 and origins_complete:
        return Verdict.CLEAN
    # 5. Neither can be shown.
    return Verdict.UNKNOWN


def _reasons(  # noqa: PLR0913, PLR0917 - all that leaves a window unknown
    pathway: Pathway,
    doubts: Doubts,
    books: NodeBooks,
    verdict: Verdict | None,
    undeclared: Sequence[str],
    endless: Int64s,
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
        said += _describe_waits(node, int(doubts.renamed_waits[place]))
        said += [_describe_stranger(node, one) for one in doubts.strangers if one.node == place][:MAX_NAMED]
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
    overdue: Overdue | None,
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
            loss_lower=int(bounds.lower.nodes[node]) if bounds else 0,
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
            overdue=min(overdue.nodes[node], int(pending[node])) if overdue else 0,
            overdue_ids=overdue.ids[node] if overdue and pending[node] else (),
        )
        for node, name in enumerate(pathway.nodes)
    ]


def _whole(columns: Mapping[str, Int64s], node: int) -> dict[str, Any]:
    return {field: int(column[node]) for field, column in columns.items()}
