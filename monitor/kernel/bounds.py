"""Bounds of a loss: what a window's books and the names of its messages leave open of what is missing.

The promise: no false loss. A lower bound counts only what was seen to leave one place and was not seen at the next by
probes whose accounts have no hole, less all that is known to be missing by count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import sets
from hopwatch.monitor.kernel.books import MAX_DROPPED
from hopwatch.monitor.kernel.counts import CountedBooks, count_silent
from hopwatch.monitor.kernel.relations import NO_COUNT, Relation
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.pathway import Pathway

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]


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


class MisnamedMessages(NamedTuple):
    """Number of messages that may have another id at a node than before it, shape (nodes,).

    What one node names otherwise, any node behind it may name otherwise again. Where ways meet behind it, a message may
    come by two names: there no loss is sure.
    """

    messages: Int64s
    is_confused: Bools


class Doubts(NamedTuple):
    """Messages that may look like a loss at a node and are none, apart from what the books say is missing by count.

    ``strangers`` are instances that name messages otherwise than all before them; ``renamed_waits`` counts the deferred
    messages of each node that another of its instances may have handled by another name, shape (nodes,).
    """

    strangers: list[Relation]
    misnamed: MisnamedMessages
    renamed_waits: Int64s


class LowerBounds(NamedTuple):
    """Number of messages that were surely lost at each node, shape (nodes,), and end to end."""

    nodes: Int64s
    end_to_end: int


def find_doubts(pathway: Pathway, found: sets.Sets, tally: Tally) -> Doubts:
    """Return what the names of a window's messages leave open; ``found`` are the sets of the tally's rows."""
    strangers = _find_strangers(pathway, found, tally)
    is_shared = _find_shared_waits(pathway, tally)
    misnamed = _count_misnamed(pathway, found, tally, strangers, is_shared)
    return Doubts(strangers, misnamed, _count_renamed_waits(pathway, tally, is_shared))


def count_all_silent(pathway: Pathway, tally: Tally, counted: Sequence[CountedBooks]) -> list[int]:
    """Return of each node that only counts how many messages left for servers of it that counted nothing."""
    return [count_silent(*of_node, tally.servers) for of_node in zip(pathway.counting, counted, strict=False)]


def bound_from_below(  # noqa: PLR0913, PLR0917 - what is missing, and all that explains it
    pathway: Pathway,
    found: sets.Sets,
    counts: Int64s,
    books: NodeBooks,
    doubts: Doubts,
    counted: Sequence[CountedBooks],
    silent: Sequence[int],
    due: Bools | None = None,
) -> LowerBounds:
    """Return how many of the messages that are missing were surely lost.

    ``found`` are sets by row and ``counts`` the messages of each row, shape (rows,). ``due`` says which rows count at
    which node, shape (rows, nodes); without it all do.
    """
    told = books.are_bounded
    shown = sets.shown_lost(pathway, found, told)
    if due is not None:
        shown &= due
    of_nodes = counts @ shown
    # Any of a node's loss may be what is missing there by count.
    misnamed = _add_stopped(pathway, doubts.misnamed, counted, silent)
    explained = _count_explained(pathway, told, of_nodes, books.missing, misnamed) + doubts.renamed_waits
    lower = int(counts @ (found.lost & shown.any(axis=1))) - int(np.minimum(of_nodes, explained).sum())
    if pathway.sends_to_several and not told[pathway.terminals].all():
        # What one way lost, another may have delivered to a terminal that cannot tell.
        lower = 0
    return LowerBounds(np.maximum(of_nodes - explained, 0), max(0, lower))


def _find_strangers(pathway: Pathway, found: sets.Sets, tally: Tally) -> list[Relation]:
    """Return the instances that name messages otherwise than all before them; an origin may stamp departures alone."""
    arrives = (found.arrived & (tally.counts > 0)[:, None]).any(axis=0)
    may_be = ~pathway.origins | arrives
    return [one for one in tally.relations if one.strange and may_be[one.node]]


def _count_misnamed(
    pathway: Pathway, found: sets.Sets, tally: Tally, strangers: Sequence[Relation], is_shared: Bools
) -> MisnamedMessages:
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
    return MisnamedMessages(here, is_confused)


def _count_renamed_waits(pathway: Pathway, tally: Tally, is_shared: Bools) -> Int64s:
    """Return how many deferred messages of each node another of its instances may have handled by another name.

    Shape (nodes,). Nothing before an origin shows that its instances use the same names: only what is seen behind does.
    """
    apart = np.zeros(len(pathway.nodes), bool)
    for one in tally.relations:
        is_followed = one.unfollowed == 0 and not pathway.terminals[one.node]
        apart[one.node] |= not is_followed if pathway.origins[one.node] else one.strange > 0
    return np.where(apart & is_shared, 0 if tally.deferred is None else tally.deferred[:-1], 0)


def _find_shared_waits(pathway: Pathway, tally: Tally) -> Bools:
    """Return at which nodes several instances have observations, shape (nodes,); none where nothing was deferred."""
    if tally.deferred is None:
        return np.zeros(len(pathway.nodes), np.bool_)
    nodes = [one.node for one in tally.relations if one.came != NO_COUNT or one.left != NO_COUNT]
    return np.bincount(np.array(nodes, np.int64), minlength=len(pathway.nodes)) > 1


def _add_stopped(
    pathway: Pathway, misnamed: MisnamedMessages, counted: Sequence[CountedBooks], silent: Sequence[int]
) -> MisnamedMessages:
    """Add what counting nodes may have stopped on the way to each node, whose ids nobody knows either."""
    messages = misnamed.messages.copy()
    for node, of_node, silent_here in zip(pathway.counting, counted, silent, strict=False):
        if node.before is not None and node.behind is not None:
            messages[node.behind] = min(messages[node.behind] + of_node.stopped + silent_here, MAX_DROPPED)
    return misnamed._replace(messages=messages)


def _count_explained(
    pathway: Pathway, told: Bools, of_nodes: Int64s, missing: Int64s, misnamed: MisnamedMessages
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
