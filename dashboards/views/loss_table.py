"""The loss table of the source talk: nodes as columns; count, loss of each node, loss end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.views import loss, texts
from hopwatch.dashboards.views.colours import Mark
from hopwatch.dashboards.views.judged import Judged, JudgedNode, is_final, of_node
from hopwatch.monitor.results import NodeResult, Quantiles

LOSSES: Final = frozenset({"lost end to end", "missing", "surely lost", "delivered elsewhere", "in flight"})
"""The figures that lead to the ids behind them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, and whether it is one of loss."""

    words: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A row: its name, and a cell a node."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class LossTable:
    """Nodes in the pathway's order, a mark each, and the rows."""

    nodes: tuple[str, ...]
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]


def of(one: Judged) -> LossTable:
    """Return the table of a window or a range; rows that say nothing of any node are left out."""
    judged = is_final(one)
    lines = (Line(name, tuple(cell(node) for node in one.nodes)) for name, cell in _ROWS)
    kept = tuple(line for line in lines if any(cell.words != texts.NONE for cell in line.cells))
    marks = tuple(of_node(node, is_final=judged).mark for node in one.nodes)
    return LossTable(tuple(node.node for node in one.nodes), marks, kept)


def has_negative_duration(one: Judged) -> bool:
    """Return whether a process duration is below 0, as no time is."""
    return any((node.process_duration_p95_us or 0) < 0 for node in one.nodes)


def figures(one: Judged) -> tuple[tuple[str, str], ...]:
    """Return what is told of the whole, end to end: name and figure."""
    return (
        ("known", texts.count(one.known)),
        ("delivered", texts.count(one.delivered)),
        *((name, texts.count(getattr(one, name))) for name in ("filtered", "rejected") if getattr(one, name)),
        *(_lost(one) if is_final(one) else _in_flight(one)),
        ("lag p95", texts.span(one.lag_us.p95 if one.lag_us else None)),
    )


def _in_flight(one: Judged) -> tuple[tuple[str, str], ...]:
    return ("in flight", texts.count(one.in_flight)), ("of known", texts.percent(one.in_flight, one.known))


def _lost(one: Judged) -> tuple[tuple[str, str], ...]:
    return (
        ("lost end to end", loss.lost(one) + loss.unknown(one.lost_lower, one.lost_upper)),
        ("of known", loss.lost_share(one)),
        *((("missing", texts.count(one.lost)),) if one.lost != one.lost_lower else ()),
        ("surely lost", texts.count(one.lost_lower)),
        ("at most", texts.count(one.lost_upper)),
        *((("delivered elsewhere", texts.count(one.partial)),) if one.partial else ()),
    )


def _loss(node: JudgedNode) -> Cell:
    return Cell(loss.of_node(node), is_bad=node.loss_lower > 0)


def _loss_share(node: JudgedNode) -> Cell:
    return Cell(loss.share_of_node(node), is_bad=node.loss_lower > 0)


def _missing(node: JudgedNode) -> Cell:
    return Cell(texts.NONE if node.loss == node.loss_lower else texts.count(node.loss))


def _some(name: str) -> Callable[[JudgedNode], Cell]:
    return lambda node: Cell(texts.count(getattr(node, name)) if getattr(node, name) else texts.NONE)


def _p95(name: str) -> Callable[[JudgedNode], Cell]:
    def cell(node: JudgedNode) -> Cell:
        lag: Quantiles | None = getattr(node, name)
        return Cell(texts.span(lag.p95 if lag else None))

    return cell


def _coverage(node: JudgedNode) -> Cell:
    return Cell(texts.ratio(node.coverage) if isinstance(node, NodeResult) else texts.NONE)


_ROWS: Final[tuple[tuple[str, Callable[[JudgedNode], Cell]], ...]] = (
    ("count", lambda node: Cell(texts.count(node.seen))),
    ("loss of node", _loss),
    ("loss, %", _loss_share),
    ("missing", _missing),
    ("filtered", _some("filtered")),
    ("rejected", _some("rejected")),
    ("in flight", _some("in_flight")),
    ("unobserved", _some("unobserved")),
    ("orphans", _some("orphans")),
    ("duplicates in", _some("duplicates_in")),
    ("duplicates out", _some("duplicates_out")),
    ("negative lags", _some("lag_negative")),
    ("dropped by probe", _some("dropped")),
    ("coverage", _coverage),
    ("lag in p95", _p95("lag_in_us")),
    ("lag out p95", _p95("lag_out_us")),
    ("inside p95", _p95("inside_us")),
    ("process duration p95", lambda node: Cell(texts.span(node.process_duration_p95_us))),
)
