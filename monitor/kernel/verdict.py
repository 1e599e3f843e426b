"""The verdict on a window, its bounds and the reasons: what the tally shows, weighed by what the books are worth.

The promise: no false loss. A lower bound counts only what was seen to leave one place and was not seen at the next by
probes whose accounts have no hole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.kernel import sets, tdigest
from monitor.kernel.figures import lag_fields, quantiles_of, ratio
from monitor.kernel.tally import NEVER_US, Tally
from monitor.pathway import Pathway
from monitor.results import NodeResult, Status, Verdict, WindowResult

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NodeBooks:
    """What a window's books say of each node; all of shape (nodes,).

    ``having_a_say`` counts the instances whose account matters, ``told`` and ``complete`` those of them with such an
    account, ``heard`` those that were heard, ``dropped`` the observations that they had to drop.
    """

    having_a_say: Int64s
    heard: Int64s
    told: Int64s
    complete: Int64s
    dropped: Int64s

    @property
    def are_complete(self) -> Bools:
        """Whether every account with a say is complete, and somebody was heard."""
        return np.asarray((self.complete == self.having_a_say) & (self.heard > 0))

    @property
    def are_bounded(self) -> Bools:
        """Whether nothing is unknown but counted drops."""
        return np.asarray((self.told == self.having_a_say) & (self.heard > 0))


@dataclass(frozen=True, slots=True)
class Standing:
    """Which window is judged, and where it stands in its life.

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


def conclude(pathway: Pathway, standing: Standing, tally: Tally, books: NodeBooks) -> WindowResult:
    """Return all that is said of a window. Until it is final, nothing is lost: what is missing is in flight."""
    found = sets.classify(pathway, tally.masks)
    final = standing.status.is_final
    all_counts = tally.counts
    judged = tally.settled(standing.settled_before_us) if final else np.zeros_like(all_counts)
    bounds = _bounds(pathway, found, judged, books)
    lost, known = int(judged @ found.lost), int(all_counts.sum())
    verdict = _verdict(pathway, known, int((judged @ found.loss).sum()), bounds, books) if final else None
    return WindowResult(
        stream=standing.stream,
        window_start_us=standing.window_start_us,
        status=standing.status,
        revision=standing.revision,
        verdict=verdict,
        reasons=_reasons(pathway, books, verdict) if final else (),
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
        nodes=tuple(_node_results(pathway, found, tally, judged, books, bounds if final else None)),
    )


def _bounds(pathway: Pathway, found: sets.Sets, judged: Int64s, books: NodeBooks) -> _Bounds:
    complete, bounded = books.are_complete, books.are_bounded
    surely = sets.surely_lost(pathway, found, complete)
    lower = int(judged @ (found.lost & surely.any(axis=1)))
    if pathway.sends_to_several and not complete[pathway.terminals].all():
        # What one way lost, another may have delivered to a terminal that cannot tell.
        lower = 0
    loss = judged @ found.loss + books.dropped
    # Where a message came in, and where its ways part, hides a loss from all others if it does not tell.
    telling = pathway.origins | pathway.splits
    upper = int(judged @ found.lost) + int(books.dropped[telling].sum()) if bounded[telling].all() else None
    node_upper = [int(of_node) if is_bounded else None for of_node, is_bounded in zip(loss, bounded, strict=True)]
    return _Bounds(judged @ surely, node_upper, lower, upper)


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


def _reasons(pathway: Pathway, books: NodeBooks, verdict: Verdict | None) -> tuple[str, ...]:
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
    return tuple(said)


def _node_results(  # noqa: PLR0913, PLR0917 - the six inputs of a row, each needed
    pathway: Pathway, found: sets.Sets, tally: Tally, judged: Int64s, books: NodeBooks, bounds: _Bounds | None
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
        )
        for node, name in enumerate(pathway.nodes)
    ]


def _whole(columns: Mapping[str, Int64s], node: int) -> dict[str, Any]:
    return {field: int(column[node]) for field, column in columns.items()}
