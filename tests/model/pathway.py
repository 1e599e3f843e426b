"""The declared graph of a stream; it only ever reads right configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Pathway:
    """Nodes in pathway order, and where what leaves a node goes."""

    nodes: tuple[str, ...]
    must: Mapping[str, frozenset[str]]
    """To every one of these."""
    one_of: Mapping[str, tuple[frozenset[str], ...]]
    """To one of each of these groups."""
    one_sided: frozenset[str]
    reached: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    """What :meth:`downstream` has said: it is asked more often than anything else."""

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
    return Pathway(
        nodes=_in_pathway_order(list(must), {node: must[node].union(*one_of[node]) for node in must}),
        must={node: frozenset(targets) for node, targets in must.items()},
        one_of={node: tuple(groups) for node, groups in one_of.items()},
        one_sided=frozenset(node for node, side in stamps.items() if side != "both"),
    )


def _names(hop: str) -> list[str]:
    return [name.strip() for name in hop.replace("&", "|").split("|")]


def _in_pathway_order(mentioned: list[str], edges: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Take again and again the first mentioned of the nodes that no node left leads to."""
    left, order = list(mentioned), []
    while left:
        order.append(next(node for node in left if not any(node in edges[other] for other in left)))
        left.remove(order[-1])
    return tuple(order)
