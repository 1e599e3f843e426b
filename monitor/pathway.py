"""The declared graph of a stream: its nodes, and what is expected where.

An arrow says that what leaves its left side is expected on its right side. ``a -> b`` and ``a -> b & c`` are *must*
edges: everything that leaves a goes to b, and to c. ``a -> b | c`` is a *one-of* group: each message goes to one of
them. What is said twice is said once. A node that only counts has no ids: arrows go past it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, get_args

import numpy as np

from hopwatch.probes.contract.limits import NAME_PATTERN

Stamps = Literal["both", "in", "out"]
"""Sides that a node stamps; a node that stamps one side counts any stamp for both."""

MAX_NODES: Final = 255
"""Nodes of a pathway at most: an observation carries its node's number in a byte."""

COUNT: Final = "count"
"""In place of the sides of a node that sends counts instead of stamps."""

_STAMPS: Final[tuple[str, ...]] = (*get_args(Stamps), COUNT)


class PathwayError(ValueError):
    """A path that is no pathway; ``hop`` is the piece of it that is at fault."""

    def __init__(self, message: str, hop: str = "") -> None:
        """Keep the piece at fault beside the sentence."""
        super().__init__(message)
        self.hop = hop


@dataclass(frozen=True, slots=True)
class Group:
    """One arrow out of a node: a single target must take everything, of several each message takes one."""

    source: int
    targets: tuple[int, ...]

    @property
    def is_must(self) -> bool:
        """Return whether all that leaves the source is expected at the one target."""
        return len(self.targets) == 1


@dataclass(frozen=True, slots=True)
class CountingNode:
    """Node that counts messages and knows no ids, with its nearest neighbours that do, by their places.

    ``before`` and ``behind`` are None without one; ``is_alone`` says that all that comes to the one behind passes here.
    """

    name: str
    before: int | None
    behind: int | None
    is_alone: bool = True

    @property
    def is_end(self) -> bool:
        """Return whether the path has no ids before it, or none behind it."""
        return self.before is None or self.behind is None


@dataclass(frozen=True)
class Pathway:
    """A stream's nodes in topological order (ties by first mention), its arrows, and the sides that each node stamps.

    Nodes are numbered by their place in ``nodes``; a matrix is boolean, of shape (nodes, nodes). The nodes that only
    count are in ``counting`` alone, in the same order.
    """

    nodes: tuple[str, ...]
    groups: tuple[Group, ...]
    stamps: tuple[Stamps, ...]
    counting: tuple[CountingNode, ...] = ()

    @classmethod
    def parse(cls, path: str | Sequence[str], stamps: Mapping[str, str] | None = None) -> Pathway:
        """Read the ``path`` and ``stamps`` of a stream's configuration.

        Raises:
            PathwayError: a name or a hop that cannot be, too many nodes, a cycle, an edge of two kinds, stamps of an
                unknown node.
        """
        chains = [path] if isinstance(path, str) else list(path)
        if not chains:
            raise PathwayError("a path names at least one node, got an empty list")
        mentioned: dict[str, None] = {}
        arrows: dict[tuple[str, tuple[str, ...]], str] = {}
        for chain in chains:
            for source, targets, text in _arrows(chain, mentioned):
                arrows.setdefault((source, targets), text)
        if len(mentioned) > MAX_NODES:
            raise PathwayError(f"a path has at most {MAX_NODES} nodes, got {len(mentioned)}: split the stream in two")
        _refuse_two_kinds(arrows)
        every = _topological(list(mentioned), [(source, target) for source, targets in arrows for target in targets])
        sides = _check_stamps(every, stamps or {})
        counting = [node for node in every if sides.get(node) == COUNT]
        declared = list(arrows)
        between = _pass_by(arrows, every, counting)
        nodes = tuple(node for node in every if node not in counting)
        index = {node: place for place, node in enumerate(nodes)}
        groups = {
            Group(index[source], tuple(sorted(index[target] for target in targets))) for source, targets in arrows
        }
        return cls(
            nodes,
            tuple(sorted(groups, key=lambda g: (g.source, g.targets))),
            tuple(sides.get(node, "both") for node in nodes),  # type: ignore[misc]  # checked above
            _place_counting(between, index, declared),
        )

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """Names of all nodes, those that only count last."""
        return (*self.nodes, *(node.name for node in self.counting))

    @cached_property
    def edges(self) -> np.ndarray:
        """Return a matrix: true where an arrow leads from the row's node to the column's."""
        edges = np.zeros((len(self.nodes), len(self.nodes)), bool)
        for group in self.groups:
            edges[group.source, list(group.targets)] = True
        return edges

    @cached_property
    def named_edges(self) -> tuple[tuple[str, str], ...]:
        """The edges by the names of their nodes, in order."""
        return tuple((self.nodes[source], self.nodes[target]) for source, target in np.argwhere(self.edges).tolist())

    @cached_property
    def downstream(self) -> np.ndarray:
        """Return a matrix: true where the column's node lies anywhere downstream of the row's."""
        reach = self.edges.copy()
        for node in reversed(range(len(self.nodes))):
            # Later nodes are complete already, because the order is topological.
            reach[node] |= reach[self.edges[node]].any(axis=0)
        return reach

    @cached_property
    def must(self) -> np.ndarray:
        """Return a matrix: true where all that leaves the row's node is expected at the column's."""
        must = np.zeros_like(self.edges)
        for group in self.groups:
            if group.is_must:
                must[group.source, group.targets[0]] = True
        return must

    @cached_property
    def branches(self) -> tuple[Group, ...]:
        """The one-of groups."""
        return tuple(group for group in self.groups if not group.is_must)

    @cached_property
    def origins(self) -> np.ndarray:
        """Mask of the nodes that no arrow leads to; shape (nodes,)."""
        return np.asarray(~self.edges.any(axis=0))

    @cached_property
    def terminals(self) -> np.ndarray:
        """Mask of the nodes that no arrow leaves; shape (nodes,)."""
        return np.asarray(~self.edges.any(axis=1))

    @cached_property
    def terminal_names(self) -> frozenset[str]:
        """Names of the nodes that no arrow leaves."""
        return frozenset(self.nodes[place] for place in np.flatnonzero(self.terminals))

    @cached_property
    def splits(self) -> np.ndarray:
        """Mask of the nodes that send a message to several places; shape (nodes,). A one-of group is one place."""
        return np.bincount(np.array([group.source for group in self.groups], np.int64), minlength=len(self.nodes)) > 1

    @property
    def sends_to_several(self) -> bool:
        """Return whether any node sends a message to more than one place."""
        return bool(self.splits.any())


def _arrows(chain: str, mentioned: dict[str, None]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield (source, targets, text) for each arrow of one chain, and note its nodes in order of mention."""
    hops = [_hop(text, chain) for text in chain.split("->")]
    for names, _ in hops:
        mentioned.update(dict.fromkeys(names))
    for (sources, _), (targets, one_of) in pairwise(hops):
        for source in sources:
            text = f"{source} -> {(' | ' if one_of else ' & ').join(targets)}"
            yield from ((source, part, text) for part in ([targets] if one_of else [(name,) for name in targets]))


def _hop(text: str, chain: str) -> tuple[tuple[str, ...], bool]:
    """Read one hop: its names, and whether it is a one-of."""
    if "|" in text and "&" in text:
        raise PathwayError(f"a hop joins its nodes by | or by &, got both in {text.strip()!r}", text.strip())
    names = tuple(name.strip() for name in text.replace("&", "|").split("|"))
    for name in names:
        if not NAME_PATTERN.fullmatch(name):
            msg = f"a node is 1 to 128 of the characters A-Za-z0-9._-, got {name[:40]!r} in {chain.strip()[:80]!r}"
            raise PathwayError(msg, text.strip())
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PathwayError(f"a node stands once in a hop, got {twice!r} twice in {text.strip()!r}", text.strip())
    return names, "|" in text


def _refuse_two_kinds(arrows: Mapping[tuple[str, tuple[str, ...]], str]) -> None:
    must = {(source, targets[0]): text for (source, targets), text in arrows.items() if len(targets) == 1}
    for (source, targets), text in arrows.items():
        for target in targets if len(targets) > 1 else ():
            if (source, target) in must:
                two = f"of every message in {must[source, target]!r} and of some in {text!r}"
                raise PathwayError(f"{source} -> {target} is expected {two}: keep one", text)


def _topological(mentioned: list[str], edges: list[tuple[str, str]]) -> tuple[str, ...]:
    """Order the nodes so that each stands after all that lead to it; among those that may come, the first mentioned."""
    rank = {node: place for place, node in enumerate(mentioned)}
    waiting = {node: {source for source, target in edges if target == node} for node in mentioned}
    ready = [rank[node] for node in mentioned if not waiting[node]]
    heapq.heapify(ready)
    ordered: list[str] = []
    while ready:
        node = mentioned[heapq.heappop(ready)]
        ordered.append(node)
        for target in {target for source, target in edges if source == node}:
            waiting[target].discard(node)
            if not waiting[target]:
                heapq.heappush(ready, rank[target])
    if len(ordered) < len(mentioned):
        cycle = _cycle(edges, set(mentioned) - set(ordered), mentioned)
        told = f"a path leads on and never back, got the cycle {' -> '.join(cycle)}"
        raise PathwayError(told, " -> ".join(cycle[:2]))
    return tuple(ordered)


def _cycle(edges: list[tuple[str, str]], left: set[str], mentioned: list[str]) -> list[str]:
    """Return one cycle among the nodes that could not be ordered; each of them has a predecessor among them."""
    walked = [next(node for node in mentioned if node in left)]
    while walked.count(walked[-1]) == 1:
        walked.append(next(source for source, target in edges if target == walked[-1] and source in left))
    return walked[walked.index(walked[-1]) :][::-1]


def _check_stamps(nodes: tuple[str, ...], stamps: Mapping[str, str]) -> Mapping[str, str]:
    for node, side in stamps.items():
        if node not in nodes:
            raise PathwayError(f"stamps names the node {node!r}, which is not in the path: {', '.join(nodes)}", node)
        if side not in _STAMPS:
            raise PathwayError(f"stamps of {node!r} is one of {', '.join(_STAMPS)}, got {side!r}", node)
    return stamps


def _pass_by(
    arrows: dict[tuple[str, tuple[str, ...]], str], nodes: Sequence[str], counting: Sequence[str]
) -> dict[str, tuple[str | None, str | None]]:
    """Lead the arrows past the nodes that count; return the neighbours of each, the counting ones not among them."""
    if counting and len(counting) == len(nodes):
        raise PathwayError(f"some node of a path stamps ids, got {', '.join(counting)}, which all count", counting[0])
    found: dict[str, tuple[str | None, str | None]] = {}
    for node in counting:
        to_it = [(arrow, text) for arrow, text in arrows.items() if node in arrow[1]]
        from_it = [(arrow, text) for arrow, text in arrows.items() if node == arrow[0]]
        for either in (to_it, from_it):
            if len(either) > 1 or any(len(targets) > 1 for (_, targets), _ in either):
                got = " and ".join(sorted({text for _, text in either}))
                rule = "has one arrow to it and one from it at most, which everything takes"
                raise PathwayError(f"{node!r} counts, and such a node {rule}, got {got}", either[0][1])
        source, target = (to_it[0][0][0] if to_it else None), (from_it[0][0][1][0] if from_it else None)
        for arrow, _ in (*to_it, *from_it):
            del arrows[arrow]
        if source is not None and target is not None:
            arrows.setdefault((source, (target,)), to_it[0][1])
        found[node] = source, target
    _refuse_two_kinds(arrows)
    return {node: (source, _follow(target, found)) for node, (source, target) in found.items()}


def _follow(node: str | None, found: Mapping[str, tuple[str | None, str | None]]) -> str | None:
    """Return the first node with ids from one on; those before a node were passed by in their order already."""
    while node is not None and node in found:
        node = found[node][1]
    return node


def _place_counting(
    between: Mapping[str, tuple[str | None, str | None]],
    index: Mapping[str, int],
    declared: Collection[tuple[str, tuple[str, ...]]],
) -> tuple[CountingNode, ...]:
    placed = []
    for node, (source, target) in between.items():
        before, behind = (None if name is None else index[name] for name in (source, target))
        is_alone = sum(target in targets for _, targets in declared) == 1
        placed.append(CountingNode(node, before, behind, is_alone))
    return tuple(placed)
