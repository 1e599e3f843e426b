"""Data points of charts over time, at most ``MAX_POINTS`` per chart; an unknown value has no point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.dashboards.queries import node_selection
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.display_range import MAX_POINTS, STEP_WORDS, limit_lines
from hopwatch.display import loss, step_marks, texts
from hopwatch.display.step_marks import StepNode, StepResult
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.results import Quantiles, Status, Verdict, WindowResult

END_TO_END: Final = "end to end"
PERCENTILES: Final = ("p50", "p95", "p99")
SIDES: Final = (("lag in", "lag_in_us", Quantity.LAG_IN_P95_US), ("lag out", "lag_out_us", Quantity.LAG_OUT_P95_US))
MAX_COLOURS: Final = node_selection.MAX_SLOW
NO_LAG: Final = (
    "No lag of the whole range is known: it has a part of an hour whose minutes have lost their digests. "
    "Each minute has its own lag, and so has a range of whole hours."
)
_UNKNOWN_VERDICTS: Final = frozenset({Verdict.UNKNOWN, Verdict.SILENT})


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A value of a line at a step, ``value`` in the unit of its chart; ``said`` is it in words."""

    start_us: int
    moment: str
    line: str
    part: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class StackPiece:
    """A part of a stack at a step: from where to where it reaches, and its own size in words."""

    start_us: int
    moment: str
    line: str
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A step of a row of the heat map; ``value`` is None where it is unknown or absent."""

    start_us: int
    end_us: int
    moment: str
    row: str
    value: float | None
    word: str
    icon: str
    text: str


@dataclass(frozen=True, slots=True)
class ShadedBand:
    """Steps in a row that are not as good as others: not final, or UNKNOWN or SILENT."""

    start_us: int
    end_us: int
    word: str


@dataclass(frozen=True, slots=True)
class OutlierMarker:
    """A step in which a lag is an outlier, or noticed as odd."""

    start_us: int
    moment: str
    line: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class MarkerLine:
    """A moment that somebody has marked, µs since 1970, and what is said of it."""

    at_us: int
    text: str


def build_marker_lines(stretch: StreamRange, zone: tzinfo) -> tuple[MarkerLine, ...]:
    """Return the markers of a range, by time."""
    return tuple(
        MarkerLine(
            one.at_us, f"{texts.format_moment(one.at_us, zone, '%Y-%m-%d %H:%M:%S')} {one.describe()}, by {one.by}"
        )
        for one in stretch.markers
    )


def find_newest_loss_us(stretch: StreamRange) -> int | None:
    """Return the start of the newest step in which messages were surely lost; none where none were."""
    steps: Sequence[StepResult] = stretch.steps
    return next(
        (step_marks.get_start_us(one) for one in reversed(steps) if one.lost_lower and step_marks.is_final(one)), None
    )


def build_lag_points(stretch: StreamRange, node: str, zone: tzinfo) -> tuple[ChartPoint, ...]:
    """Return the lag in and out of one node in ms, :func:`select_percentiles` each; none of an unstamped side."""
    points, parts = [], select_percentiles(stretch)
    for one, of_node in _list_node_steps(stretch, node):
        when = texts.format_moment(step_marks.get_start_us(one), zone)
        for side, name, _ in SIDES:
            lag: Quantiles | None = getattr(of_node, name)
            points += [
                ChartPoint(
                    step_marks.get_start_us(one),
                    when,
                    side,
                    part,
                    getattr(lag, part) / 1e3,
                    texts.format_lag(getattr(lag, part)),
                )
                for part in parts
                if lag
            ]
    return tuple(points)


def select_percentiles(stretch: StreamRange) -> tuple[str, ...]:
    """Return which percentiles of a lag are shown: the highest of them where all would be too many points."""
    return PERCENTILES[-limit_lines(len(stretch.steps), len(PERCENTILES)) :]


def build_outlier_markers(stretch: StreamRange, node: str, zone: tzinfo) -> tuple[OutlierMarker, ...]:
    """Return what the detector found in the lags of a node, in order of time.

    As many as are left of a chart's points: outliers before what is only odd, the newest of them.
    """
    sides = {quantity: side for side, _, quantity in SIDES}
    of_node = [found for found in stretch.findings if found.node == node and found.why.quantity in sides]
    left = MAX_POINTS - len(stretch.steps) * len(select_percentiles(stretch))
    kept = sorted(of_node, key=lambda found: (not found.is_outlier, -found.window_start_us))[:left]
    return tuple(
        OutlierMarker(
            found.window_start_us,
            texts.format_moment(found.window_start_us, zone),
            sides[found.why.quantity],
            found.why.observed / 1e3,
            ("outlier: " if found.is_outlier else "odd: ") + "; ".join(reason.words for reason in found.why.reasons),
        )
        for found in sorted(kept, key=lambda found: found.window_start_us)
    )


def is_running(stretch: StreamRange, one: StepResult) -> bool:
    """Return whether messages of a step still come, so that it would look like a collapse."""
    if isinstance(one, WindowResult):
        return one.status is Status.OPEN
    return stretch.running_from_us is not None and one.start_us >= stretch.running_from_us


def format_running(stretch: StreamRange) -> str:
    """Return that the newest step is not over, where it is not."""
    if not stretch.steps or not is_running(stretch, stretch.steps[-1]):
        return ""
    return f"the newest {STEP_WORDS[stretch.step_us]} is not over for the monitor yet"


def select_finished(stretch: StreamRange) -> tuple[StepResult, ...]:
    """Return the steps that are over."""
    return tuple(one for one in stretch.steps if not is_running(stretch, one))


def build_arrival_points(steps: Sequence[StepResult], node: str, zone: tzinfo) -> tuple[ChartPoint, ...]:
    """Return what should have arrived at each step and what did: at a node, or end to end where it names none."""
    points = []
    for one in steps:
        expected, seen = count_expected_and_seen(one, node)
        at, when = step_marks.get_start_us(one), texts.format_moment(step_marks.get_start_us(one), zone)
        points.append(ChartPoint(at, when, "expected", "", expected, texts.format_count(expected)))
        points.append(ChartPoint(at, when, "arrived", "", seen, texts.format_count(seen)))
    return tuple(points)


def count_expected_and_seen(one: StepResult, node: str) -> tuple[int, int]:
    """Return how many messages should have arrived at a node and did, or end to end where it names none."""
    found = next((each for each in one.nodes if each.node == node), None)
    return (found.expected, found.seen) if found else (one.known - one.filtered - one.rejected, one.delivered)


def build_duration_pieces(stretch: StreamRange, nodes: Sequence[str], zone: tzinfo) -> tuple[StackPiece, ...]:
    """Return the process duration p95 of some nodes in ms, one on top of the other at each step.

    One that is not over 0 has no piece: it has no height, or, below 0, would hide a part of another.
    """
    pieces = []
    for one in stretch.steps:
        at, when, low = step_marks.get_start_us(one), texts.format_moment(step_marks.get_start_us(one), zone), 0.0
        for node in one.nodes:
            lasted_us = node.process_duration_p95_us
            if node.node in nodes and lasted_us is not None and lasted_us > 0:
                pieces.append(StackPiece(at, when, node.node, low, low + lasted_us / 1e3, texts.format_lag(lasted_us)))
                low += lasted_us / 1e3
    return tuple(pieces)


def select_slowest(one: StepResult, most: int = MAX_COLOURS) -> tuple[str, ...]:
    """Return the nodes that have a process duration, the longest ones if there are many, in the pathway's order."""
    return node_selection.select_slowest(one, most)


def format_left_out(one: StepResult, nodes: Sequence[str]) -> str:
    """Return which process durations a chart of some nodes does not show, and why; nothing where it has all."""
    timed = [node for node in one.nodes if node.process_duration_p95_us is not None]
    flat = [node.node for node in timed if (node.process_duration_p95_us or 0) <= 0]
    shorter = sum(node.node not in nodes and node.node not in flat for node in timed)
    untimed = len(one.nodes) - len(timed)
    parts = (
        f"{shorter:,} {_pluralize_node(shorter)} with shorter ones" if shorter else "",
        f"{untimed:,} {_pluralize_node(untimed)} without one, as not both sides were stamped" if untimed else "",
        f"{flat[0]}{f' and {len(flat) - 1:,} more' if flat[1:] else ''}, at 0 or below" if flat else "",
    )
    told = "; ".join(part for part in parts if part)
    return f" Not shown: {told}." if told else ""


def _pluralize_node(count: int) -> str:
    return "node" if count == 1 else "nodes"


def build_share_points(one: StepResult, nodes: Sequence[str]) -> tuple[ChartPoint, ...]:
    """Return the process duration p95 of some nodes over a whole, ms; one that is not over 0 has no share."""
    timed = [node for node in one.nodes if node.node in nodes and (node.process_duration_p95_us or 0) > 0]
    total_us = sum(node.process_duration_p95_us or 0 for node in timed)
    return tuple(
        ChartPoint(
            step_marks.get_start_us(one),
            "",
            node.node,
            texts.format_percent(node.process_duration_p95_us or 0, total_us),
            (node.process_duration_p95_us or 0) / 1e3,
            texts.format_lag(node.process_duration_p95_us),
        )
        for node in timed
    )


def build_heat_cells(stretch: StreamRange, measure: HeatMeasure, zone: tzinfo) -> tuple[HeatCell, ...]:
    """Return the heat map: a row end to end, and one a node, the worst ones if there are too many for a chart."""
    names = select_lossiest(stretch, limit_lines(len(stretch.steps), len(stretch.nodes) + 1) - 1)
    cells = []
    for one in stretch.steps:
        end = _measure_step(one, measure)
        at = (
            step_marks.get_start_us(one),
            step_marks.get_start_us(one) + stretch.step_us,
            texts.format_moment(step_marks.get_start_us(one), zone),
        )
        cells.append(_build_cell(at, END_TO_END, end, step_marks.mark_step(one)))
        for node in one.nodes:
            if node.node in names:
                seen = step_marks.mark_node(node, is_final=step_marks.is_final(one))
                cells.append(_build_cell(at, node.node, _measure_node(node, measure), seen))
    return tuple(cells)


def select_lossiest(stretch: StreamRange, most: int) -> tuple[str, ...]:
    """Return at most so many nodes, those that lost most, in the pathway's order."""
    return node_selection.select_lossiest(stretch.nodes, stretch.total, most)


def find_newest_unknown(stretch: StreamRange) -> WindowResult | None:
    """Return the newest window of the range of which neither loss nor its absence is shown; none without any."""
    steps = (one for one in reversed(stretch.steps) if isinstance(one, WindowResult))
    return next((one for one in steps if one.verdict in _UNKNOWN_VERDICTS), None)


def format_unknown_windows(stretch: StreamRange) -> str:
    """Return of how many windows of a range neither loss nor its absence is shown; nothing of none."""
    whole = stretch.total
    blind = whole.unknown + whole.silent if whole else 0
    if whole is None or not blind:
        return ""
    return f"Of {blind:,} of {whole.windows:,} windows neither loss nor its absence can be shown."


def select_lag_node(stretch: StreamRange, one: StepResult | None) -> str:
    """Return the node whose lags are shown where none is chosen: the one that lost most, else the last."""
    losses = {node.node: node.loss for node in one.nodes} if one is not None else {}
    lossiest = max(losses, key=lambda name: losses[name], default="")
    return lossiest if losses.get(lossiest) else stretch.graph.nodes[-1]


def build_bands(stretch: StreamRange) -> tuple[ShadedBand, ...]:
    """Return where steps are not final, or nothing can be shown; steps in a row are one band."""
    found: list[ShadedBand] = []
    for one in stretch.steps:
        seen, at = step_marks.mark_step(one), step_marks.get_start_us(one)
        word = "not final" if not seen.is_final else seen.mark.word if seen.mark.word in {"UNKNOWN", "SILENT"} else ""
        if not word:
            continue
        if found and found[-1].word == word and found[-1].end_us == at:
            found[-1] = ShadedBand(found[-1].start_us, at + stretch.step_us, word)
        else:
            found.append(ShadedBand(at, at + stretch.step_us, word))
    return tuple(found)


def _list_node_steps(stretch: StreamRange, node: str) -> list[tuple[StepResult, StepNode]]:
    return [(one, each) for one in stretch.steps for each in one.nodes if each.node == node]


def _build_cell(
    at: tuple[int, int, str], row: str, figure: tuple[float | None, str], seen: step_marks.StepMark
) -> HeatCell:
    is_known = seen.is_final and seen.mark.word not in {"UNKNOWN", "SILENT"}
    value, said = figure
    if not is_known and not value:
        # Bounds say more than the word unknown; a lone question mark does not.
        said = "not judged yet" if not seen.is_final else said if " to " in said else "unknown"
    return HeatCell(*at, row, value if is_known else None, seen.mark.word, seen.mark.icon, said)


def _measure_step(one: StepResult, measure: HeatMeasure) -> tuple[float | None, str]:
    if measure is HeatMeasure.LAG:
        return _measure_lag(one.lag_us)
    unknown = loss.format_unknown(one.lost_lower, one.lost_upper)
    return _compute_lost_percent(
        one.loss_ratio, one.lost, one.lost_lower
    ), f"{loss.format_loss_ratio(one)} lost{unknown}"


def _measure_node(node: StepNode, measure: HeatMeasure) -> tuple[float | None, str]:
    if measure is HeatMeasure.LAG:
        return _measure_lag(node.lag_out_us or node.lag_in_us)
    unknown = loss.format_unknown(node.loss_lower, node.loss_upper)
    return _compute_lost_percent(
        node.loss_ratio, node.loss, node.loss_lower
    ), f"{loss.format_node_loss_ratio(node)} lost{unknown}"


def _compute_lost_percent(ratio: float | None, missing: int, lower: int) -> float | None:
    """Return the part that is surely lost, in per cent: a colour of loss stands for no more."""
    return None if ratio is None else 100 * ratio * lower / missing if missing else 0.0


def _measure_lag(lag: Quantiles | None) -> tuple[float | None, str]:
    return (lag.p95 / 1e3 if lag else None), f"lag p95 {texts.format_lag(lag.p95 if lag else None)}"
