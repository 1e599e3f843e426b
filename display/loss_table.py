"""Loss table of a window or a range: nodes as columns; counts, loss and lag as rows; and the figures end to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hopwatch.display import loss, texts
from hopwatch.display.colours import Mark
from hopwatch.display.step_marks import StepNode, StepResult, is_final, mark_node
from hopwatch.monitor.results import NodeResult, Quantiles, WindowResult
from hopwatch.monitor.texts import loss_bounds

LOSS_FIGURES: Final = frozenset(
    {"lost end to end", "missing", "surely lost", "delivered elsewhere", "in flight", "overdue"}
)
"""The figures that lead to the ids behind them."""
_OTHER_FATES: Final = ("filtered", "rejected", "deferred")
"""Counts of a window that stand behind delivered, where there are any."""


@dataclass(frozen=True, slots=True)
class LossCell:
    """A figure, and whether it is one of loss."""

    text: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class LossRow:
    """A row: its name, and a cell a node."""

    name: str
    cells: tuple[LossCell, ...]


@dataclass(frozen=True, slots=True)
class LossTable:
    """Nodes in the pathway's order, a mark each, and the rows."""

    nodes: tuple[str, ...]
    marks: tuple[Mark, ...]
    rows: tuple[LossRow, ...]


def build_loss_table(one: StepResult) -> LossTable:
    """Return the table of a window or a range."""
    judged = is_final(one)
    marks = tuple(mark_node(node, is_final=judged).mark for node in one.nodes)
    return LossTable(tuple(node.node for node in one.nodes), marks, build_loss_rows(one.nodes))


def build_loss_rows(nodes: Sequence[StepNode], lag_parts: Sequence[str] = ("p95",)) -> tuple[LossRow, ...]:
    """Return the rows of some nodes, lags by these percentiles; rows that say nothing of any node are left out."""
    lags = [(f"{name} {part}", _format_lag_of(field, part)) for name, field in _LAGS for part in lag_parts]
    duration = ("process duration p95", _format_process_duration)
    order = (("displacement p95", _format_displacement("p95")), ("displacement max", _format_displacement("max")))
    lines = (LossRow(name, tuple(map(cell, nodes))) for name, cell in (*_COUNT_ROWS, *order, *lags, duration))
    return tuple(line for line in lines if any(cell.text != texts.NONE for cell in line.cells))


def has_negative_duration(one: StepResult) -> bool:
    """Return whether a process duration is below 0, as no time is."""
    return any((node.process_duration_p95_us or 0) < 0 for node in one.nodes)


def build_figures(one: StepResult) -> tuple[tuple[str, str], ...]:
    """Return the figures of the whole, end to end: name and figure."""
    return (
        ("known", texts.format_count(one.known)),
        ("delivered", texts.format_count(one.delivered)),
        *((name, texts.format_count(getattr(one, name))) for name in _OTHER_FATES if getattr(one, name)),
        *(_build_lost(one) if is_final(one) else _build_in_flight(one)),
        ("lag p95", texts.format_lag(one.lag_us.p95 if one.lag_us else None)),
    )


def _build_in_flight(one: StepResult) -> tuple[tuple[str, str], ...]:
    overdue = one.overdue if isinstance(one, WindowResult) else 0
    return (
        ("in flight", texts.format_count(one.in_flight)),
        ("of known", texts.format_percent(one.in_flight, one.known)),
        *((("overdue", texts.format_count(overdue)),) if overdue else ()),
    )


def _build_lost(one: StepResult) -> tuple[tuple[str, str], ...]:
    return (
        ("lost end to end", loss.format_loss(one) + loss.format_unknown(one.lost_lower, one.lost_upper)),
        ("of known", loss.format_loss_ratio(one)),
        *((("missing", texts.format_count(one.lost)),) if one.lost != one.lost_lower else ()),
        ("surely lost", texts.format_count(one.lost_lower)),
        ("at most", texts.format_count(one.lost_upper)),
        *((("delivered elsewhere", texts.format_count(one.partial)),) if one.partial else ()),
    )


def _format_loss(node: StepNode) -> LossCell:
    return LossCell(loss.format_node_loss(node), is_bad=node.loss_lower > 0)


def _format_loss_ratio(node: StepNode) -> LossCell:
    return LossCell(loss.format_node_loss_ratio(node), is_bad=node.loss_lower > 0)


def _format_missing(node: StepNode) -> LossCell:
    return LossCell(texts.NONE if node.loss == node.loss_lower else texts.format_count(node.loss))


def _format_count_of(name: str) -> Callable[[StepNode], LossCell]:
    return lambda node: LossCell(texts.format_count(getattr(node, name)) if getattr(node, name) else texts.NONE)


def _format_part_of(name: str) -> Callable[[StepNode], LossCell]:
    def cell(node: StepNode) -> LossCell:
        if not getattr(node, name):
            return LossCell(texts.NONE)
        lower, upper = loss.bound_part(node, name)
        return LossCell(loss_bounds.format_bounds(getattr(node, name), lower, upper), is_bad=lower > 0)

    return cell


def _format_lag_of(name: str, part: str) -> Callable[[StepNode], LossCell]:
    def cell(node: StepNode) -> LossCell:
        lag: Quantiles | None = getattr(node, name)
        return LossCell(texts.format_lag(getattr(lag, part) if lag else None))

    return cell


def _format_inversions(node: StepNode) -> LossCell:
    return LossCell(texts.format_count(node.inversions) if node.displacement else texts.NONE)


def _format_displacement(part: str) -> Callable[[StepNode], LossCell]:
    def cell(node: StepNode) -> LossCell:
        found = node.displacement
        return LossCell(texts.format_count(getattr(found, part)) if found else texts.NONE)

    return cell


def _format_process_duration(node: StepNode) -> LossCell:
    return LossCell(texts.format_lag(node.process_duration_p95_us))


def _format_overdue(node: StepNode) -> LossCell:
    overdue = node.overdue if isinstance(node, NodeResult) else 0
    return LossCell(texts.format_count(overdue) if overdue else texts.NONE, is_bad=overdue > 0)


def _format_coverage(node: StepNode) -> LossCell:
    return LossCell(texts.format_ratio(node.coverage) if isinstance(node, NodeResult) else texts.NONE)


_COUNT_ROWS: Final[tuple[tuple[str, Callable[[StepNode], LossCell]], ...]] = (
    ("count", lambda node: LossCell(texts.format_count(node.seen))),
    ("loss of node", _format_loss),
    ("loss %", _format_loss_ratio),
    ("missing", _format_missing),
    ("lost in transit", _format_part_of("lost_in_transit")),
    ("lost inside", _format_part_of("lost_inside")),
    ("lost after", _format_part_of("lost_after")),
    ("filtered", _format_count_of("filtered")),
    ("rejected", _format_count_of("rejected")),
    ("deferred", _format_count_of("deferred")),
    ("in flight", _format_count_of("in_flight")),
    ("overdue", _format_overdue),
    ("unobserved", _format_count_of("unobserved")),
    ("orphans", _format_count_of("orphans")),
    ("duplicates in", _format_count_of("duplicates_in")),
    ("duplicates out", _format_count_of("duplicates_out")),
    ("negative lags", _format_count_of("lag_negative")),
    ("dropped by probe", _format_count_of("dropped")),
    ("coverage", _format_coverage),
    ("inversions", _format_inversions),
)
_LAGS: Final = (("lag in", "lag_in_us"), ("lag out", "lag_out_us"), ("inside", "inside_us"))
