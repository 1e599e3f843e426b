"""Layout of the pathway graph: position, mark and figures of each node and edge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hopwatch.dashboards.queries.models import Edge, Graph
from hopwatch.display import loss, texts
from hopwatch.display.colours import NO_DATA, Mark
from hopwatch.display.path_times import format_percentiles
from hopwatch.display.recent import describe_edge, describe_traffic
from hopwatch.display.step_marks import StepNode, StepResult, is_final, mark_node
from hopwatch.monitor.results import RecentFigures, SpanTimes
from hopwatch.monitor.texts import loss_bounds

MAX_COLUMNS: Final = 8
"""As many nodes in a row have room for their figures."""
MAX_CLOSE_COLUMNS: Final = 14
"""As many have room for their names: a chain is in lines, each back the way that the one before came."""
MAX_SCROLLED_COLUMNS: Final = 40
"""Columns of a pathway with branches beyond which names may lie on each other."""


@dataclass(frozen=True, slots=True)
class PathwayNode:
    """A node: where it stands, in columns and rows from 0; what it is seen as; its figures in words.

    ``after`` is what of its loss was lost after it, where a message takes one of several ways: which one is unknown.
    ``now`` is what passes it in the last seconds, and how late.
    """

    name: str
    column: int
    row: float
    mark: Mark
    count: str
    loss: str
    after: str = ""
    now: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge by the places of its nodes: how many are missing at its end, how many surely lost and at most.

    ``label`` is that in short, ``said`` in words; both are empty where nothing is known of the edge, as of each of
    several ways of which a message takes one.
    """

    source: int
    target: int
    is_required: bool
    missing: int
    surely_lost: int
    at_most: int | None
    label: str
    description: str
    times: tuple[str, ...] = ()
    """Percentiles of the time on it, and what it is now; none where nothing was timed."""


@dataclass(frozen=True, slots=True)
class PathwayDrawing:
    """Nodes in the pathway's order, and its edges; ``said`` is it in words.

    One that ``is_close`` has room for names alone.
    """

    nodes: tuple[PathwayNode, ...]
    arrows: tuple[Arrow, ...]
    description: str
    is_close: bool

    @property
    def columns(self) -> int:
        """Return the number of columns of nodes."""
        return max((node.column for node in self.nodes), default=0) + 1


def build_drawing(
    graph: Graph, one: StepResult | None, recent: RecentFigures | None = None, span: SpanTimes | None = None
) -> PathwayDrawing:
    """Return the drawing, with what there is: figures of a window or a range, recent ones, and times on the path."""
    columns = _compute_columns(graph)
    rows = _compute_rows(columns)
    is_close = max(columns, default=0) >= MAX_COLUMNS
    if is_close and not any(rows):
        # With several nodes in a column, edges from line to line would cross them: such a drawing is scrolled.
        columns, rows = _fold_lines(columns)
    found = {node.node: node for node in one.nodes} if one else {}
    now = {node.node: f"now {describe_traffic(node)}" for node in recent.nodes} if recent else {}
    nodes = []
    for place, name in enumerate(graph.nodes):
        node = found.get(name)
        seen = mark_node(node, is_final=one is not None and is_final(one)).mark if node else NO_DATA
        count = texts.format_count(node.seen) if node else texts.NONE
        lost = f"{loss.format_node_loss(node)} lost ({loss.format_node_loss_ratio(node)})" if node and node.loss else ""
        after = _format_lost(node, "lost_after", "after it") if node and node.lost_after else ""
        nodes.append(PathwayNode(name, columns[place], rows[place], seen, count, lost, after, now.get(name, "")))
    times: dict[tuple[str, str], tuple[str, ...]] = (
        {} if span is None else {(one.source, one.node): format_percentiles(one, span.windows) for one in span.times}
    )
    for edge in recent.edges if recent else ():
        times[edge.source, edge.node] = (*times.get((edge.source, edge.node), ()), describe_edge(edge))
    arrows = tuple(
        replace(
            _build_arrow(graph, edge, one), times=times.get((graph.nodes[edge.source], graph.nodes[edge.target]), ())
        )
        for edge in graph.edges
    )
    said = "; ".join(
        " ".join(
            filter(None, (f"{node.name}: {node.mark.word}, {node.count} messages", node.loss, node.after, node.now))
        )
        for node in nodes
    )
    timed = "; ".join(
        f"{graph.nodes[arrow.source]} to {graph.nodes[arrow.target]}: {', '.join(arrow.times)}"
        for arrow in arrows
        if arrow.times
    )
    description = f"Pathway. {said}" + (f". Time on the way: {timed}" if timed else "")
    return PathwayDrawing(tuple(nodes), arrows, description, is_close)


def _build_arrow(graph: Graph, edge: Edge, one: StepResult | None) -> Arrow:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    found = {node.node: node for node in one.nodes} if one else {}
    if target not in found or source not in found or not edge.is_required:
        return Arrow(edge.source, edge.target, edge.is_required, 0, 0, 0, "", "")
    node, name = found[target], "lost_in_transit"
    missing = int(getattr(node, name))
    lower, upper = loss.bound_part(node, name) if missing else (0, 0)
    label = loss.format_missing(missing, lower, upper)
    said = _format_lost(node, name, f"on the way to {target}")
    return Arrow(edge.source, edge.target, edge.is_required, missing, lower, upper, label, said)


def _format_lost(node: StepNode, name: str, where: str) -> str:
    """Return a part of the loss of a node by its bounds, and where it was lost."""
    missing = int(getattr(node, name))
    lower, upper = loss.bound_part(node, name) if missing else (0, 0)
    return f"{loss_bounds.format_bounds(missing, lower, upper)} lost {where}{loss.format_unknown(lower, upper)}"


def _compute_columns(graph: Graph) -> tuple[int, ...]:
    """Return how many edges lie before each node at most; nodes stand behind all that lead to them."""
    columns = [0] * len(graph.nodes)
    for edge in sorted(graph.edges, key=lambda one: one.source):
        columns[edge.target] = max(columns[edge.target], columns[edge.source] + 1)
    return tuple(columns)


def _compute_rows(columns: tuple[int, ...]) -> tuple[float, ...]:
    """Return where each node stands in its column, the columns' middles at 0."""
    placed: dict[int, int] = {}
    rows = []
    for column in columns:
        rows.append(placed.get(column, 0) - (columns.count(column) - 1) / 2)
        placed[column] = placed.get(column, 0) + 1
    return tuple(rows)


def _fold_lines(columns: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return where the nodes of a chain stand if it is folded to lines, the lines' middle at 0."""
    lines = max(columns) // MAX_CLOSE_COLUMNS
    folded = []
    for column in columns:
        line, place = divmod(column, MAX_CLOSE_COLUMNS)
        back = line % 2 == 1
        folded.append((MAX_CLOSE_COLUMNS - 1 - place if back else place, line - lines / 2))
    return tuple(column for column, _ in folded), tuple(row for _, row in folded)
