"""What is shown, as sheets of exact numbers: for files, and for whoever reads a table rather than a chart.

Lags are in µs and parts are fractions, as in ``hopwatch report --json``; the name of a column says its unit.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.reading.told import Graph, Standing, Stretch
from hopwatch.dashboards.views import judged, pathway, series
from hopwatch.dashboards.views.address import Measure
from hopwatch.dashboards.views.judged import Judged
from hopwatch.monitor.kernel.rollup import NODE_COUNTS
from hopwatch.monitor.results import NodeResult, Quantiles, format_iso

Value = str | int | float | None
_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")
_FIGURES: Final = ("count", "min", "p50", "p95", "p99", "max")
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._-]+")
MOST_NAME: Final = 60
_MISSING: Final = ("lost_lower_messages", "lost_upper_messages", "missing_messages", "missing_ratio")
"""What was surely lost, what may be, and what is missing, lost or not: as a number and as a part of the whole."""
_OF_MISSING: Final = {"loss": "missing"} | {
    f"lost_{part}": f"missing_{part}" for part in ("in_transit", "inside", "after")
}
"""Counts of what was not seen again say so: a file is read without its verdict."""
_NOTHING: Final = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Columns by name, and rows; what is not known is None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def csv(self) -> str:
        """Return it as CSV (RFC 4180); a name that a spreadsheet would run as a formula has a ``'`` before it."""
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerow(self.columns)
        writer.writerows([safe(value) for value in row] for row in self.rows)
        return written.getvalue()


def file_name(stream: str, what: str) -> str:
    """Return what a file of a stream is called, without its ending: letters, digits, dots and dashes alone."""
    return _STRANGE.sub("-", f"hopwatch-{stream[:MOST_NAME]}-{what}" if stream else f"hopwatch-{what}")


def arrivals(stretch: Stretch, node: str) -> Sheet:
    """Return what should have arrived and what did, a row a step."""
    rows = [(*_step(one), node or series.END_TO_END, *series.due_and_seen(one, node)) for one in stretch.steps]
    return Sheet(("start", "seen_as", "node", "expected_messages", "arrived_messages"), tuple(rows))


def lags(stretch: Stretch, node: str, side: str) -> Sheet:
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
        rows.append((*_step(one), node, *_quantiles(lag), found.get(judged.start_us(one), "")))
    columns = ("start", "seen_as", "node", *_columns(name.removesuffix("_us")), "found")
    return Sheet(columns, tuple(rows))


def durations(stretch: Stretch) -> Sheet:
    """Return the process duration of every node, a row a step and node."""
    rows = [
        (*_step(one), node.node, node.process_duration_p95_us)
        for one in stretch.steps
        for node in one.nodes
        if node.process_duration_p95_us is not None
    ]
    return Sheet(("start", "seen_as", "node", "process_duration_p95_us"), tuple(rows))


def heat(stretch: Stretch, measure: Measure) -> Sheet:
    """Return the heat map: a row a step end to end, and one a step and node."""
    rows: list[tuple[Value, ...]] = []
    for one in stretch.steps:
        lag = one.lag_us.p95 if one.lag_us else None
        losses = one.lost_lower, one.lost_upper, one.lost, one.loss_ratio
        rows.append((*_step(one), series.END_TO_END, *(losses if measure is Measure.LOSS else (lag,))))
        for node in one.nodes:
            seen = judged.of_node(node, is_final=judged.is_final(one)).mark.word
            of_node = node.lag_out_us or node.lag_in_us
            lags = (of_node.p95 if of_node else None,)
            losses = node.loss_lower, node.loss_upper, node.loss, node.loss_ratio
            figures = losses if measure is Measure.LOSS else lags
            rows.append((format_iso(judged.start_us(one)), seen, node.node, *figures))
    columns = {Measure.LOSS: _MISSING, Measure.LAG: ("lag_p95_us",)}
    return Sheet(("start", "seen_as", "node", *columns[measure]), tuple(rows))


def pathway_of(graph: Graph, one: Judged | None) -> Sheet:
    """Return the pathway: a row a node, and one an edge with what was lost on it."""
    drawing = pathway.of(graph, one)
    found = {node.node: node for node in one.nodes} if one else {}
    rows: list[tuple[Value, ...]] = []
    for node in drawing.nodes:
        known = found.get(node.name)
        losses = (known.loss_lower, known.loss_upper, known.loss, known.loss_ratio) if known else _NOTHING
        rows.append(("node", node.name, "", node.mark.word, known.seen if known else None, *losses))
    for arrow in drawing.arrows:
        source, target = graph.nodes[arrow.source], graph.nodes[arrow.target]
        takes = "all take it" if arrow.is_must else "one of several"
        missing = (arrow.surely, arrow.most, arrow.missing, None) if arrow.said else _NOTHING
        rows.append(("edge", source, target, takes, None, *missing))
    return Sheet(("kind", "node", "to_node", "seen_as", "seen_messages", *_MISSING), tuple(rows))


def shares(one: Judged | None) -> Sheet:
    """Return the process duration p95 of each node, and its share of their sum."""
    nodes = one.nodes if one else ()
    timed = [(node.node, node.process_duration_p95_us) for node in nodes if node.process_duration_p95_us is not None]
    total_us = sum(lasted_us for _, lasted_us in timed if lasted_us > 0)
    rows = [(node, us, us / total_us if total_us and us > 0 else None) for node, us in timed]
    return Sheet(("node", "process_duration_p95_us", "share_ratio"), tuple(rows))


def losses(one: Judged) -> Sheet:
    """Return all figures of each node of a window or a range, a row a node."""
    rows = []
    for node in one.nodes:
        seen = judged.of_node(node, is_final=judged.is_final(one)).mark.word
        counts = [getattr(node, name) for name in NODE_COUNTS]
        coverage = node.coverage if isinstance(node, NodeResult) else None
        lags = [figure for name in _LAGS for figure in _quantiles(getattr(node, name))]
        rows.append(
            (node.node, seen, *counts, node.loss_upper, node.loss_ratio, coverage, *lags, node.process_duration_p95_us)
        )
    named = [_OF_MISSING.get(name, name) for name in NODE_COUNTS]
    counted = [name if name == "lag_negative" else f"{name}_messages" for name in named]
    of_lags = [column for name in _LAGS for column in _columns(name.removesuffix("_us"))]
    parts = ("loss_upper_messages", "missing_ratio", "coverage_ratio")
    return Sheet(("node", "seen_as", *counted, *parts, *of_lags, "process_duration_p95_us"), tuple(rows))


def overview(standing: Standing) -> Sheet:
    """Return how all streams stand, a row a stream, by its newest final window."""
    rows: list[tuple[Value, ...]] = []
    for one in standing.streams:
        newest = one.newest
        if newest is None:
            rows.append((one.stream, *[None] * (len(_OVERVIEW) - 1)))
            continue
        covered = [node.coverage for node in newest.nodes if node.coverage is not None]
        bounds = newest.lost_lower, newest.lost_upper, newest.lost, newest.loss_ratio
        lag = newest.lag_us.p95 if newest.lag_us else None
        start = format_iso(newest.window_start_us)
        rows.append((one.stream, newest.verdict, start, newest.known, *bounds, lag, min(covered, default=None)))
    return Sheet(_OVERVIEW, tuple(rows))


_OVERVIEW: Final = (
    *("stream", "verdict", "window_start", "known_messages", "lost_lower_messages", "lost_upper_messages"),
    *("missing_messages", "missing_ratio", "lag_p95_us", "least_coverage_ratio"),
)


def _step(one: Judged) -> tuple[str, str]:
    return format_iso(judged.start_us(one)), judged.of(one).mark.word


def _quantiles(lag: Quantiles | None) -> tuple[int | None, ...]:
    return tuple(getattr(lag, name) if lag else None for name in _FIGURES)


def _columns(lag: str) -> tuple[str, ...]:
    return tuple(f"{lag}_stamps" if name == "count" else f"{lag}_{name}_us" for name in _FIGURES)


def safe(value: Value) -> Value:
    """Return a value as a file has it: what a spreadsheet would run as a formula has a ``'`` before it."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
