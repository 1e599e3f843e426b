"""The declared graph of a stream; it only ever reads right configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Counting:
    """A node that only counts, and its neighbours with ids."""

    name: str
    before: str | None
    behind: str | None
    is_alone: bool
    """Whether a single arrow leads to the one behind."""

    @property
    def is_end(self) -> bool:
        """Return whether there are no ids on one of its sides."""
        return self.before is None or self.behind is None


@dataclass(frozen=True, slots=True)
class Pathway:
    """Nodes in pathway order, and where what leaves a node goes."""

    nodes: tuple[str, ...]
    must: Mapping[str, frozenset[str]]
    """To every one of these."""
    one_of: Mapping[str, tuple[frozenset[str], ...]]
    """To one of each of these groups."""
    one_sided: frozenset[str]
    counting: tuple[Counting, ...] = ()
    reached: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    """What :meth:`downstream` has said: it is asked more often than anything else."""

    @property
    def declared(self) -> tuple[str, ...]:
        """All nodes, with and without ids."""
        return (*self.nodes, *(one.name for one in self.counting))

    def next_nodes(self, node: str) -> frozenset[str]:
        """Give the nodes at the other end of the node's edges."""
        return self.must[node].union(*self.one_of[node])

    def downstream(self, node: str) -> frozenset[str]:
        """Give all nodes that can be reached from the node, itself not among them."""
        if node not in self.reached:
            nodes = self.next_nodes(node)
            self.reached[node] = nodes.union(*(self.downstream(below) for below in nodes))
        return self.reached[node]

    def upstream(self, node: str) -> frozenset[str]:
        """Give all nodes from which the node can be reached."""
        return frozenset(other for other in self.nodes if node in self.downstream(other))

    def must_come_from(self, node: str) -> frozenset[str]:
        """Give every U with an edge U→node that everything must take."""
        return frozenset(other for other in self.nodes if node in self.must[other])

    @property
    def origins(self) -> tuple[str, ...]:
        """The nodes without an edge to them."""
        return tuple(node for node in self.nodes if not self.upstream(node))

    @property
    def terminals(self) -> tuple[str, ...]:
        """The nodes without an edge from them."""
        return tuple(node for node in self.nodes if not self.next_nodes(node))

    @property
    def splits(self) -> tuple[str, ...]:
        """The nodes that send a message to more than one place; a one-of group is one place."""
        return tuple(node for node in self.nodes if len(self.must[node]) + len(self.one_of[node]) > 1)

    @property
    def sends_to_several_places(self) -> bool:
        """Return whether some node sends a message to more than one place."""
        return bool(self.splits)


def parse(path: str | Sequence[str], stamps: Mapping[str, str]) -> Pathway:
    """Read a `path` and a `stamps` table of the configuration."""
    must: dict[str, set[str]] = {}
    one_of: dict[str, list[frozenset[str]]] = {}
    for line in [path] if isinstance(path, str) else path:
        hops = [hop.strip() for hop in line.split("->")]
        for hop in hops:
            for node in _names(hop):
                must.setdefault(node, set())
                one_of.setdefault(node, [])
        for left, right in pairwise(hops):
            for node in _names(left):
                if "|" in right:
                    one_of[node].append(frozenset(_names(right)))
                else:
                    must[node].update(_names(right))
    every = _in_pathway_order(list(must), {node: must[node].union(*one_of[node]) for node in must})
    counts = [node for node in every if stamps.get(node) == "count"]
    counting = tuple(_counting(node, counts, must, one_of) for node in counts)
    for node in counts:
        for targets in must.values():
            if node in targets:
                targets.remove(node)
                targets.update(must[node])
    return Pathway(
        nodes=tuple(node for node in every if node not in counts),
        must={node: frozenset(targets) for node, targets in must.items() if node not in counts},
        one_of={node: tuple(groups) for node, groups in one_of.items() if node not in counts},
        one_sided=frozenset(node for node, side in stamps.items() if side not in {"both", "count"}),
        counting=counting,
    )


def _counting(
    node: str, counts: Sequence[str], must: Mapping[str, set[str]], one_of: Mapping[str, list[frozenset[str]]]
) -> Counting:
    """Walk both ways from a node that counts, past others of its kind."""
    before = behind = node
    while before in counts:
        before = next((source for source, targets in must.items() if before in targets), "")
    while behind in counts:
        behind = next(iter(must[behind]), "")
    to_it = sum(behind in targets for targets in must.values())
    to_it += sum(behind in group for groups in one_of.values() for group in groups)
    return Counting(node, before or None, behind or None, to_it == 1)


def _names(hop: str) -> list[str]:
    return [name.strip() for name in hop.replace("&", "|").split("|")]


def _in_pathway_order(mentioned: list[str], edges: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Take again and again the first mentioned of the nodes that no node left leads to."""
    left, order = list(mentioned), []
    while left:
        order.append(next(node for node in left if not any(node in edges[other] for other in left)))
        left.remove(order[-1])
    return tuple(order)
