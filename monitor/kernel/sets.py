"""Lost messages, and the other sets of SEMANTICS.md, as functions of a message's mask and the pathway.

Each field of :class:`Sets` says whether a message with the row's mask belongs to one set. Of the sets of the page,
``arrived`` is ``in(N)``, ``departed`` is ``out(N)``, ``expected`` is ``E(N)``, and ``filtered`` and ``rejected``
together are ``stopped(N)``; ``unleft`` is not on the page. ``deferred(N)`` is no function of a mask: see
:mod:`monitor.kernel.deferrals`. Which of the lost are in flight, and how many are surely lost, is decided in
:mod:`monitor.kernel.verdict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.pathway import Group, Pathway

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sets:
    """Membership by mask: per node of shape (masks, nodes), end to end of shape (masks,).

    ``lost_after_branch`` has a column for each branch, which is a place where a message takes one of several edges;
    shape (masks, branches).
    """

    arrived: Bools
    departed: Bools
    seen: Bools
    expected: Bools
    filtered: Bools
    rejected: Bools
    lost_in_transit: Bools
    lost_inside: Bools
    lost_after_branch: Bools
    lost_after: Bools
    loss: Bools
    unobserved: Bools
    orphan: Bools
    unleft: Bools
    """Seen at a node, and at one before it that it was not seen to leave: perhaps it left by another name."""
    delivered: Bools
    filtered_end_to_end: Bools
    rejected_end_to_end: Bools
    lost: Bools
    partial: Bools


def classify(pathway: Pathway, words: NDArray[np.uint64]) -> Sets:
    """Evaluate every set once for each distinct mask; ``words`` has the shape (masks, words)."""
    nodes = len(pathway.nodes)
    arrived, departed = masks.has_bit(words, masks.IN, nodes), masks.has_bit(words, masks.OUT, nodes)
    said_filtered, said_rejected = (
        masks.has_bit(words, masks.FILTERED, nodes),
        masks.has_bit(words, masks.REJECTED, nodes),
    )
    seen = arrived | departed | said_filtered | said_rejected
    after, before = seen @ pathway.downstream.T, seen @ pathway.downstream
    expected = np.where(pathway.must.any(axis=0), departed @ pathway.must, seen)
    stopped = (said_filtered | said_rejected) & ~departed & ~after
    lost_in_transit = expected & ~seen & ~after
    lost_inside = arrived & ~departed & ~stopped & ~after
    lost_after_branch = _lost_after_branch(pathway, departed, seen | after)
    lost_after = np.zeros_like(seen)
    for place, branch in enumerate(pathway.branches):
        lost_after[:, branch.source] |= lost_after_branch[:, place]
    rejected = stopped & said_rejected
    loss = lost_in_transit | lost_inside | lost_after
    # A message that one way lost is lost, whatever became of it on another.
    lost = np.asarray(loss.any(axis=1))
    left = np.asarray(departed[:, pathway.terminals].any(axis=1))
    ended = stopped.any(axis=1) & ~lost & ~left
    rejected_end_to_end = ended & rejected.any(axis=1)
    return Sets(
        arrived=arrived,
        departed=departed,
        seen=seen,
        expected=expected,
        filtered=stopped & ~said_rejected,
        rejected=rejected,
        lost_in_transit=lost_in_transit,
        lost_inside=lost_inside,
        lost_after_branch=lost_after_branch,
        lost_after=lost_after,
        loss=loss,
        unobserved=expected & ~seen & after,
        orphan=seen & ~before & ~pathway.origins,
        unleft=seen & ((seen & ~departed) @ pathway.downstream),
        delivered=left & ~lost,
        filtered_end_to_end=ended & ~rejected_end_to_end,
        rejected_end_to_end=rejected_end_to_end,
        lost=lost,
        partial=lost & left,
    )


def shown_lost(pathway: Pathway, sets: Sets, told: Bools) -> Bools:
    """Return the loss that each node shows, shape (masks, nodes): ``shown(N)`` of SEMANTICS.md.

    ``told`` says which nodes have told books, shape (nodes,). Only these show a loss, and a loss at a branch only where
    all its next nodes have told books, too.
    """
    shown = sets.lost_in_transit | sets.lost_inside
    for place, branch in told_branches(pathway, told):
        shown[:, branch.source] |= sets.lost_after_branch[:, place]
    return shown & told


def told_branches(pathway: Pathway, told: Bools) -> Iterator[tuple[int, Group]]:
    """Yield the one-of groups, with their places, all of whose next nodes have told accounts."""
    yield from ((place, one) for place, one in enumerate(pathway.branches) if told[list(one.targets)].all())


def _lost_after_branch(pathway: Pathway, departed: Bools, seen_or_below: Bools) -> Bools:
    lost = np.zeros((len(departed), len(pathway.branches)), bool)
    for place, branch in enumerate(pathway.branches):
        lost[:, place] = departed[:, branch.source] & ~seen_or_below[:, list(branch.targets)].any(axis=1)
    return lost
