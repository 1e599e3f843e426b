"""Tables of exact numbers behind the charts, for CSV files and for readers of tables.

Lags are in µs and parts are fractions, as in ``hopwatch report --json``; the name of a column says its unit.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.queries.models import Graph, StreamRange, StreamsOverview
from hopwatch.dashboards.views import pathway, series
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.service_map import ServiceMap
from hopwatch.display import step_marks
from hopwatch.display.step_marks import StepResult
from hopwatch.monitor.kernel.rollup import NODE_COUNTS
from hopwatch.monitor.results import NodeResult, Quantiles, format_iso

CellValue = str | int | float | None
_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")
_NO_MESSAGES: Final = frozenset({"lag_negative", "inversions"})
"""Counts of a node that are not of messages."""
_ORDER_COLUMNS: Final = ("compared_messages", "displacement_p95_messages", "displacement_max_messages")
_QUANTILE_NAMES: Final = ("count", "min", "p50", "p95", "p99", "max")
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME_CHARS: Final = 60
_MISSING_COLUMNS: Final = ("lost_lower_messages", "lost_upper_messages", "missing_messages", "missing_ratio")
"""Messages surely lost, possibly lost, and missing (lost or not): as a count and as a share of all."""
_MISSING_NAMES: Final = {"loss": "missing"} | {
    f"lost_{part}": f"missing_{part}" for part in ("in_transit", "inside", "after")
}
"""Counts of what was not seen again say so: a file is read without its verdict."""
_NO_LOSSES: Final = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Columns by name, and rows; what is not known is None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CellValue, ...], ...]

    def to_csv(self) -> str:
        """Return it as CSV (RFC 4180); a name that a spreadsheet would run as a formula has a ``'`` before it."""
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerow(self.columns)
        writer.writerows([escape_formula(value) for value in row] for row in self.rows)
        return written.getvalue()


def build_file_name(stream: str, what: str) -> str:
    """Return what a file of a stream is called, without its ending: letters, digits, dots and dashes alone."""
    return _UNSAFE.sub("-", f"hopwatch-{stream[:MAX_NAME_CHARS]}-{what}" if stream else f"hopwatch-{what}")


def build_arrivals(stretch: StreamRange, node: str) -> Sheet:
    """Return what should have arrived and what did, a row a step."""
    rows = [
        (*_describe_step(one), node or series.END_TO_END, *series.count_expected_and_seen(one, node))
        for one in stretch.steps
    ]
    return Sheet(("start", "seen_as", "node", "expected_messages", "arrived_messages"), tuple(rows))


def build_lags(stretch: StreamRange, node: str, side: str) -> Sheet:
    """Return the lag of one side of a node, a row a step, with what the detector said of it."""
    name, quantity = next((name, quantity) for known, name, quantity in series.SIDES if known == side)
    found: dict[int, str] = {}
    for finding in stretch.findings:
        start_us = finding.window_start_us - finding.window_start_us % stretch.step_us
        if finding.node == node and finding.why.quantity is quantity and found.get(start_us) != "outlier":
            found[start_us] = "outlier" if finding.is_outlier else "odd"
    rows = []
    for one in stretch.steps:
        of_node = next((each for each in one.nodes if each.node == node), None)
        lag: Quantiles | None = getattr(of_node, name, None)
        rows.append((*_describe_step(one), node, *_list_quantiles(lag), found.get(step_marks.get_start_us(one), "")))
    columns = ("start", "seen_as", "node", *_list_columns(name.removesuffix("_us")), "found")
    return Sheet(columns, tuple(rows))


def build_durations(stretch: StreamRange) -> Sheet:
    """Return the process duration of every node, a row a step and node."""
    rows = [
        (*_describe_step(one), node.node, node.process_duration_p95_us)
        for one in stretch.steps
        for node in one.nodes
        if node.process_duration_p95_us is not None
    ]
    return Sheet(("start", "seen_as", "node", "process_duration_p95_us"), tuple(rows))


def build_heat(stretch: StreamRange, measure: HeatMeasure) -> Sheet:
    """Return the heat map: a row a step end to end, and one a step and node."""
    rows: list[tuple[CellValue, ...]] = []
    for one in stretch.steps:
        lag = one.lag_us.p95 if one.lag_us else None
        losses = one.lost_lower, one.lost_upper, one.lost, one.loss_ratio
        rows.append((*_describe_step(one), series.END_TO_END, *(losses if measure is HeatMeasure.LOSS else (lag,))))
        for node in one.nodes:
            seen = step_marks.mark_node(node, is_final=step_marks.is_final(one)).mark.word
            of_node = node.lag_out_us or node.lag_in_us
            lags = (of_node.p95 if of_node else None,)
            losses = node.loss_lower, node.loss_upper, node.loss, node.loss_ratio
            figures = losses if measure is HeatMeasure.LOSS else lags
            rows.append((format_iso(step_marks.get_start_us(one)), seen, node.node, *figures))
    columns = {HeatMeasure.LOSS: _MISSING_COLUMNS, HeatMeasure.LAG: ("lag_p95_us",)}
    return Sheet(("start", "seen_as", "node", *columns[measure]), tuple(rows))


def build_pathway(graph: Graph, one: StepResult | None) -> Sheet:
    """Return the pathway: a row a node, and one an edge with what was lost on it."""
    drawing = pathway.build_drawing(graph, one)
    found = {node.node: node for node in one.nodes} if one else {}
    rows: list[tuple[CellValue, ...]] = []
    for node in drawing.nodes:
        known = found.get(node.name)
        losses = (known.loss_lower, known.loss_upper, known.loss, known.loss_ratio) if known else _NO_LOSSES
        rows.append(("node", node.name, "", node.mark.word, known.seen if known else None, *losses))
    for arrow in drawing.arrows:
        source, target = graph.nodes[arrow.source], graph.nodes[arrow.target]
        takes = "all take it" if arrow.is_required else "one of several"
        missing = (arrow.surely_lost, arrow.at_most, arrow.missing, None) if arrow.description else _NO_LOSSES
        rows.append(("edge", source, target, takes, None, *missing))
    return Sheet(("kind", "node", "to_node", "seen_as", "seen_messages", *_MISSING_COLUMNS), tuple(rows))


def build_service_map(shown: ServiceMap) -> Sheet:
    """Return the figures of a map of services: a row a service and stream."""
    rows: list[tuple[CellValue, ...]] = []
    for service in shown.services:
        for node in service.nodes:
            one = node.result
            start = None if node.window_us is None else format_iso(node.window_us)
            losses = (one.loss_lower, one.loss_upper, one.loss, one.loss_ratio) if one else _NO_LOSSES
            lag = one and (one.lag_out_us or one.lag_in_us)
            p95_us = lag.p95 if lag else None
            rows.append((service.name, node.stream, node.mark.word, start, node.messages, *losses, p95_us))
    return Sheet(_SERVICE_COLUMNS, tuple(rows))


def build_shares(one: StepResult | None) -> Sheet:
    """Return the process duration p95 of each node, and its share of their sum."""
    nodes = one.nodes if one else ()
    timed = [(node.node, node.process_duration_p95_us) for node in nodes if node.process_duration_p95_us is not None]
    total_us = sum(lasted_us for _, lasted_us in timed if lasted_us > 0)
    rows = [(node, us, us / total_us if total_us and us > 0 else None) for node, us in timed]
    return Sheet(("node", "process_duration_p95_us", "share_ratio"), tuple(rows))


def build_losses(one: StepResult) -> Sheet:
    """Return all figures of each node of a window or a range, a row a node."""
    rows = []
    for node in one.nodes:
        seen = step_marks.mark_node(node, is_final=step_marks.is_final(one)).mark.word
        counts = [getattr(node, name) for name in NODE_COUNTS]
        coverage = node.coverage if isinstance(node, NodeResult) else None
        lags = [figure for name in _LAGS for figure in _list_quantiles(getattr(node, name))]
        order = [getattr(node.displacement, name) if node.displacement else None for name in ("count", "p95", "max")]
        figures = (node.loss_upper, node.loss_ratio, coverage, *lags, node.process_duration_p95_us, *order)
        rows.append((node.node, seen, *counts, *figures))
    named = [_MISSING_NAMES.get(name, name) for name in NODE_COUNTS]
    counted = [name if name in _NO_MESSAGES else f"{name}_messages" for name in named]
    of_lags = [column for name in _LAGS for column in _list_columns(name.removesuffix("_us"))]
    parts = ("loss_upper_messages", "missing_ratio", "coverage_ratio")
    columns = ("node", "seen_as", *counted, *parts, *of_lags, "process_duration_p95_us", *_ORDER_COLUMNS)
    return Sheet(columns, tuple(rows))


def build_overview(standing: StreamsOverview) -> Sheet:
    """Return how all streams stand, a row a stream, by its newest final window."""
    rows: list[tuple[CellValue, ...]] = []
    for one in standing.listed_streams:
        newest = one.newest
        if newest is None:
            rows.append((one.stream, *[None] * (len(_OVERVIEW_COLUMNS) - 1)))
            continue
        covered = [node.coverage for node in newest.nodes if node.coverage is not None]
        bounds = newest.lost_lower, newest.lost_upper, newest.lost, newest.loss_ratio
        lag = newest.lag_us.p95 if newest.lag_us else None
        start = format_iso(newest.window_start_us)
        rows.append((one.stream, newest.verdict, start, newest.known, *bounds, lag, min(covered, default=None)))
    return Sheet(_OVERVIEW_COLUMNS, tuple(rows))


_OVERVIEW_COLUMNS: Final = (
    *("stream", "verdict", "window_start", "known_messages", "lost_lower_messages", "lost_upper_messages"),
    *("missing_messages", "missing_ratio", "lag_p95_us", "least_coverage_ratio"),
)


_SERVICE_COLUMNS: Final = (
    *("node", "stream", "seen_as", "window_start", "seen_messages"),
    *(*_MISSING_COLUMNS, "lag_p95_us"),
)


def _describe_step(one: StepResult) -> tuple[str, str]:
    return format_iso(step_marks.get_start_us(one)), step_marks.mark_step(one).mark.word


def _list_quantiles(lag: Quantiles | None) -> tuple[int | None, ...]:
    return tuple(getattr(lag, name) if lag else None for name in _QUANTILE_NAMES)


def _list_columns(lag: str) -> tuple[str, ...]:
    return tuple(f"{lag}_stamps" if name == "count" else f"{lag}_{name}_us" for name in _QUANTILE_NAMES)


def escape_formula(value: CellValue) -> CellValue:
    """Return a value as a file has it: what a spreadsheet would run as a formula has a ``'`` before it."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
