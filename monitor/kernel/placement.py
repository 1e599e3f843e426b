"""Place of an undeclared node in a pathway, by the messages that it and the declared nodes saw, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.pathway import Pathway

MIN_SHARED: Final = 0.02
"""Share of a node's messages that another node must have, to be a neighbour of it."""
MIN_IN_ORDER: Final = 0.9
"""Share of the messages of both that must have passed two nodes in the same order."""
MIN_WHOLE: Final = 0.99
"""Share of the messages on an arrow from which on a node is taken to see all of them."""
MAX_OVERLAP: Final = 0.01
"""Share of a node's messages that may be seen elsewhere, too, where each message is taken to go one way."""

Arrow = tuple[str, tuple[str, ...]]
"""Source and targets: of several targets each message takes one."""


@dataclass(frozen=True, slots=True)
class NodeSightings:
    """Messages that a node saw: ids as 64-bit folds, sorted and distinct, shape (n,), and when first, µs, (n,)."""

    ids: NDArray[np.uint64]
    moments_us: NDArray[np.int64]
    has_in: bool = True
    has_out: bool = True

    def select(self, ids: NDArray[np.uint64]) -> NodeSightings:
        """Return the sightings of some ids alone."""
        return self._take(np.isin(self.ids, ids))

    def without(self, ids: NDArray[np.uint64]) -> NodeSightings:
        """Return the sightings of all other ids."""
        return self._take(np.isin(self.ids, ids, invert=True))

    def _take(self, chosen: NDArray[np.bool_]) -> NodeSightings:
        return NodeSightings(self.ids[chosen], self.moments_us[chosen], self.has_in, self.has_out)


class NeighbourCounts(NamedTuple):
    """Neighbour of a node, and how many of the node's messages it saw, too."""

    node: str
    messages: int


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """Place of a node: its direct neighbours ``before`` and ``behind``, each with the messages that both saw.

    ``messages`` are those that it saw, ``since_us`` is when it saw the first, None without any.
    """

    node: str
    messages: int
    before: tuple[NeighbourCounts, ...]
    behind: tuple[NeighbourCounts, ...]
    since_us: int | None


class PathEdit(NamedTuple):
    """Change of a path that declares a node: arrows to take out, and arrows to add.

    ``unseen`` of ``passing`` messages took an arrow that would be expected to pass the node, and were not seen there:
    once it is declared, so many of them would be lost.
    """

    removed: tuple[Arrow, ...]
    added: tuple[Arrow, ...]
    unseen: int = 0
    passing: int = 0


class PlacementError(ValueError):
    """No change of the path has a node where its messages say that it is."""


def find_placement(node: str, sightings: Mapping[str, NodeSightings]) -> NodePlacement:
    """Return the place of a node among all nodes that saw messages of its stream."""
    own = sightings[node]
    least = max(1, round(MIN_SHARED * len(own.ids)))
    near = {name: seen.select(own.ids) for name, seen in sightings.items() if name != node}
    near = {name: seen for name, seen in near.items() if len(seen.ids) >= least}
    before = {name: seen for name, seen in near.items() if _is_in_order(seen, own)}
    behind = {name: seen for name, seen in near.items() if _is_in_order(own, seen)}
    return NodePlacement(
        node,
        len(own.ids),
        _select_neighbours(before, is_behind=False),
        _select_neighbours(behind, is_behind=True),
        int(own.moments_us.min()) if len(own.ids) else None,
    )


def _is_in_order(first: NodeSightings, second: NodeSightings) -> bool:
    """Return whether messages pass two nodes in this order; False without a message of both."""
    _, places, other = np.intersect1d(first.ids, second.ids, assume_unique=True, return_indices=True)
    is_earlier = first.moments_us[places] < second.moments_us[other]
    return bool(len(places)) and bool(is_earlier.mean() >= MIN_IN_ORDER)


def _select_neighbours(near: Mapping[str, NodeSightings], *, is_behind: bool) -> tuple[NeighbourCounts, ...]:
    """Return those of the nodes on one side between which and the node no other of them lies."""
    return tuple(
        NeighbourCounts(name, len(seen.ids))
        for name, seen in near.items()
        if not any(_lies_between(seen, other, is_behind=is_behind) for key, other in near.items() if key != name)
    )


def _lies_between(seen: NodeSightings, other: NodeSightings, *, is_behind: bool) -> bool:
    """Return whether most of what one neighbour saw passes another one between it and the node."""
    shared = np.intersect1d(seen.ids, other.ids, assume_unique=True)
    pair = (other, seen) if is_behind else (seen, other)
    return 2 * len(shared) > len(seen.ids) and _is_in_order(*pair)


def plan_edit(placement: NodePlacement, sightings: Mapping[str, NodeSightings], pathway: Pathway) -> PathEdit:
    """Return the smallest change of a path that has a node where its messages say that it is.

    Where a node sees all that takes an arrow, it comes between its ends; where it sees some, the arrow leads to one of
    both. Where it takes part in no arrow, it becomes an origin, a terminal, or another way between two nodes.

    Raises:
        PlacementError: the node shares no message with a declared one, or no path says what its messages do.
    """
    node, declared = placement.node, set(pathway.nodes)
    before = [one.node for one in placement.before if one.node in declared]
    behind = [one.node for one in placement.behind if one.node in declared]
    if not before and not behind:
        raise PlacementError(f"{node} shares no message with a declared node: its ids are others, or nothing comes on")
    if not before:
        return PathEdit((), tuple((node, targets) for targets in _group_ways(behind, placement, sightings)))
    onward: dict[tuple[str, ...], None] = {}
    removed: list[Arrow] = []
    added: list[Arrow] = []
    unseen = passing = 0
    for source in before:
        for targets in _list_groups(pathway, source):
            met = tuple(target for target in targets if target in behind)
            if not met:
                continue
            on_arrow = _find_on_arrow(source, met, sightings)
            count = int(np.isin(on_arrow, sightings[node].ids).sum())
            is_whole = count >= MIN_WHOLE * len(on_arrow)
            unseen, passing = unseen + (len(on_arrow) - count) * is_whole, passing + len(on_arrow) * is_whole
            left = tuple(target for target in targets if target not in met) if is_whole else targets
            removed.append((source, targets))
            added.append((source, (*left, node)))
            onward[met] = None
    if removed:
        ways = [targets for targets in onward if not any(set(targets) < set(other) for other in onward)]
        arrows = dict.fromkeys((*added, *((node, targets) for targets in ways)))
        return PathEdit(tuple(removed), tuple(arrows), unseen, passing)
    return _add_way(placement, before, behind, sightings, pathway)


def _add_way(
    placement: NodePlacement,
    before: list[str],
    behind: list[str],
    sightings: Mapping[str, NodeSightings],
    pathway: Pathway,
) -> PathEdit:
    """Return the change that leads to a node from where no arrow goes past it."""
    node, own = placement.node, sightings[placement.node]
    removed: list[Arrow] = []
    added: list[Arrow] = []
    unseen = passing = 0
    for source in before:
        groups = _list_groups(pathway, source)
        left = sightings[source].ids
        count = int(np.isin(left, own.ids).sum())
        elsewhere = [sightings[target].ids for targets in groups for target in targets if target in sightings]
        shared = own.select(left).ids
        overlap = np.isin(shared, np.concatenate([*elsewhere, shared[:0]])).mean() if len(shared) else 0.0
        if not groups or count >= MIN_WHOLE * len(left):
            added.append((source, (node,)))
            unseen, passing = unseen + len(left) - count, passing + len(left)
        elif overlap <= MAX_OVERLAP and len(groups) == 1:
            removed.append((source, groups[0]))
            added.append((source, (*groups[0], node)))
        else:
            raise PlacementError(
                f"{count:,} of {len(left):,} messages that {source} saw came to {node}, and some of them went on "
                "elsewhere, too: no path says that"
            )
    onward = ((node, targets) for targets in _group_ways(behind, placement, sightings))
    return PathEdit(tuple(removed), (*added, *onward), unseen, passing)


def _group_ways(
    behind: list[str], placement: NodePlacement, sightings: Mapping[str, NodeSightings]
) -> list[tuple[str, ...]]:
    """Return the arrows from a node to what is behind it: to one of all if no message goes to two, else to each."""
    if not behind:
        return []
    own = sightings[placement.node].ids
    went = np.concatenate([sightings[name].select(own).ids for name in behind])
    is_one_way = len(went) - len(np.unique(went)) <= MAX_OVERLAP * len(went)
    return [tuple(behind)] if len(behind) == 1 or is_one_way else [(name,) for name in behind]


def _list_groups(pathway: Pathway, source: str) -> list[tuple[str, ...]]:
    place = pathway.nodes.index(source)
    return [tuple(pathway.nodes[one] for one in group.targets) for group in pathway.groups if group.source == place]


def _find_on_arrow(source: str, targets: tuple[str, ...], sightings: Mapping[str, NodeSightings]) -> NDArray[np.uint64]:
    """Return the messages that a node and one of some targets saw."""
    behind = np.concatenate([sightings[target].ids for target in targets])
    return np.intersect1d(sightings[source].ids, behind)
