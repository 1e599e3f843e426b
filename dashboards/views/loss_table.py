"""The loss table of the source talk: nodes as columns; count, loss of each node, loss end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dashboards.views import texts
from dashboards.views.colours import Mark
from dashboards.views.judged import Judged, JudgedNode, is_final, of_node
from monitor.results import NodeResult, Quantiles

LOSSES: Final = frozenset({"lost end to end", "surely lost", "in flight"})
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


def figures(one: Judged) -> tuple[tuple[str, str], ...]:
    """Return what is told of the whole, end to end: name and figure."""
    final = is_final(one)
    lost = one.lost if final else one.in_flight
    told_lost = texts.lost(lost, one.lost_upper) if final else texts.count(lost)
    part = texts.UNKNOWN if told_lost == texts.UNKNOWN else texts.percent(lost, one.known)
    told = [
        ("known", texts.count(one.known)),
        ("delivered", texts.count(one.delivered)),
        *((name, texts.count(getattr(one, name))) for name in ("filtered", "rejected") if getattr(one, name)),
        ("lost end to end" if final else "in flight", told_lost),
        ("of known", part),
        ("surely lost", texts.count(one.lost_lower)),
        ("at most", texts.count(one.lost_upper)),
        ("lag p95", texts.span(one.lag_us.p95 if one.lag_us else None)),
    ]
    return tuple(told if final else [one for one in told if one[0] not in {"surely lost", "at most"}])


def _loss(node: JudgedNode) -> Cell:
    return Cell(texts.lost(node.loss, node.loss_upper), is_bad=node.loss > 0)


def _loss_ratio(node: JudgedNode) -> Cell:
    is_unknown = texts.lost(node.loss, node.loss_upper) == texts.UNKNOWN
    return Cell(texts.UNKNOWN if is_unknown else texts.ratio(node.loss_ratio), is_bad=node.loss > 0)


def _bounds(node: JudgedNode) -> Cell:
    if node.loss_upper == node.loss_lower:
        return Cell(texts.NONE)
    return Cell(f"{texts.count(node.loss_lower)} to {texts.count(node.loss_upper)}")


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
    ("loss, %", _loss_ratio),
    ("surely lost to at most", _bounds),
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
