"""The pathway as a drawing: where each node stands, what it and each edge are seen as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.reading.told import Edge, Graph
from hopwatch.dashboards.views import loss, texts
from hopwatch.dashboards.views.colours import NOTHING, Mark
from hopwatch.dashboards.views.judged import Judged, JudgedNode, is_final, of_node
from hopwatch.monitor.texts import loss_bounds

MOST_COLUMNS: Final = 8
"""As many nodes in a row have room for their figures."""
CLOSE_COLUMNS: Final = 14
"""As many have room for their names: in lines, each back the way that the one before came."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: where it stands, in columns and rows from 0; what it is seen as; its figures in words.

    ``after`` is what of its loss was lost after it, where a message takes one of several ways: nobody knows on which.
    """

    name: str
    column: int
    row: float
    mark: Mark
    count: str
    loss: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge by the places of its nodes: how many are missing at its end, how many surely lost and at most.

    ``label`` is that in short, ``said`` in words; both are empty where nothing is known of the edge, as of each of
    several ways of which a message takes one.
    """

    source: int
    target: int
    is_must: bool
    missing: int
    surely: int
    most: int | None
    label: str
    said: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes in the pathway's order, and its edges; ``said`` is it in words.

    One that ``is_close`` has room for names alone.
    """

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    said: str
    is_close: bool

    @property
    def columns(self) -> int:
        """How many nodes stand beside each other."""
        return max((node.column for node in self.nodes), default=0) + 1


def of(graph: Graph, one: Judged | None) -> Drawing:
    """Return the drawing, with the figures of a window or a range if there is one."""
    columns = _columns(graph)
    rows = _rows(columns)
    is_close = max(columns, default=0) >= MOST_COLUMNS
    if is_close:
        columns, rows = _folded(columns, rows)
    found = {node.node: node for node in one.nodes} if one else {}
    nodes = []
    for place, name in enumerate(graph.nodes):
        node = found.get(name)
        seen = of_node(node, is_final=one is not None and is_final(one)).mark if node else NOTHING
        count = texts.count(node.seen) if node else texts.NONE
        lost = f"{loss.of_node(node)} lost ({loss.share_of_node(node)})" if node and node.loss else ""
        after = _lost(node, "lost_after", "after it") if node and node.lost_after else ""
        nodes.append(Node(name, columns[place], rows[place], seen, count, lost, after))
    arrows = tuple(_arrow(graph, edge, one) for edge in graph.edges)
    said = "; ".join(
        " ".join(filter(None, (f"{node.name}: {node.mark.word}, {node.count} messages", node.loss, node.after)))
        for node in nodes
    )
    return Drawing(tuple(nodes), arrows, f"Pathway. {said}", is_close)


def _arrow(graph: Graph, edge: Edge, one: Judged | None) -> Arrow:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    found = {node.node: node for node in one.nodes} if one else {}
    if target not in found or source not in found or not edge.is_must:
        return Arrow(edge.source, edge.target, edge.is_must, 0, 0, 0, "", "")
    node, name = found[target], "lost_in_transit"
    missing = int(getattr(node, name))
    lower, upper = loss.part(node, name) if missing else (0, 0)
    label = f"{loss_bounds.format_bounds(missing, lower, upper)}{loss.unknown(lower, upper) or ' lost'}"
    said = _lost(node, name, f"on the way to {target}")
    return Arrow(edge.source, edge.target, edge.is_must, missing, lower, upper, label, said)


def _lost(node: JudgedNode, name: str, where: str) -> str:
    """Return a part of the loss of a node by its bounds, and where it was lost."""
    missing = int(getattr(node, name))
    lower, upper = loss.part(node, name) if missing else (0, 0)
    return f"{loss_bounds.format_bounds(missing, lower, upper)} lost {where}{loss.unknown(lower, upper)}"


def _columns(graph: Graph) -> tuple[int, ...]:
    """Return how many edges lie before each node at most; nodes stand behind all that lead to them."""
    columns = [0] * len(graph.nodes)
    for edge in sorted(graph.edges, key=lambda one: one.source):
        columns[edge.target] = max(columns[edge.target], columns[edge.source] + 1)
    return tuple(columns)


def _rows(columns: tuple[int, ...]) -> tuple[float, ...]:
    """Return where each node stands in its column, the columns' middles at 0."""
    placed: dict[int, int] = {}
    rows = []
    for column in columns:
        rows.append(placed.get(column, 0) - (columns.count(column) - 1) / 2)
        placed[column] = placed.get(column, 0) + 1
    return tuple(rows)


def _folded(columns: tuple[int, ...], rows: tuple[float, ...]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return where nodes stand if the drawing is folded to lines, the lines' middle at 0."""
    high, lines = max(rows) - min(rows) + 1, max(columns) // CLOSE_COLUMNS
    folded = []
    for column, row in zip(columns, rows, strict=True):
        line, place = divmod(column, CLOSE_COLUMNS)
        back = line % 2 == 1
        folded.append((CLOSE_COLUMNS - 1 - place if back else place, row + (line - lines / 2) * high))
    return tuple(column for column, _ in folded), tuple(row for _, row in folded)
