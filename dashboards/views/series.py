"""Points of charts over time: one a step and line, at most ``MOST_POINTS`` a chart; what is not known has no point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.dashboards.reading import chosen
from hopwatch.dashboards.reading.told import Stretch
from hopwatch.dashboards.views import judged, loss, texts
from hopwatch.dashboards.views.address import Measure
from hopwatch.dashboards.views.judged import Judged, JudgedNode
from hopwatch.dashboards.views.span import MOST_POINTS, STEP_WORDS, thinned
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.results import Quantiles, Status, Verdict, WindowResult

END_TO_END: Final = "end to end"
PERCENTILES: Final = ("p50", "p95", "p99")
SIDES: Final = (("lag in", "lag_in_us", Quantity.LAG_IN_P95_US), ("lag out", "lag_out_us", Quantity.LAG_OUT_P95_US))
MOST_COLOURS: Final = chosen.MOST_SLOW
_IGNORANT: Final = frozenset({Verdict.UNKNOWN, Verdict.SILENT})


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a line at a step, ``value`` in the unit of its chart; ``said`` is it in words."""

    start_us: int
    when: str
    line: str
    part: str
    value: float
    said: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stack at a step: from where to where it reaches, and its own size in words."""

    start_us: int
    when: str
    line: str
    low: float
    high: float
    said: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A step of a row of the heat map; ``value`` is None where nobody knows or there is nothing."""

    start_us: int
    end_us: int
    when: str
    row: str
    value: float | None
    word: str
    icon: str
    said: str


@dataclass(frozen=True, slots=True)
class Band:
    """Steps in a row that are not as good as others: not final, or UNKNOWN or SILENT."""

    start_us: int
    end_us: int
    word: str


@dataclass(frozen=True, slots=True)
class Outlier:
    """A step in which a lag is an outlier, or noticed as odd."""

    start_us: int
    when: str
    line: str
    value: float
    said: str


def newest_loss_us(stretch: Stretch) -> int | None:
    """Return the start of the newest step in which messages were surely lost; none where none were."""
    steps: Sequence[Judged] = stretch.steps
    return next((judged.start_us(one) for one in reversed(steps) if one.lost_lower and judged.is_final(one)), None)


def lags(stretch: Stretch, node: str, zone: tzinfo) -> tuple[Point, ...]:
    """Return the lag in and out of one node in ms, :func:`percentiles` each; a side that is not stamped has none."""
    points, parts = [], percentiles(stretch)
    for one, of_node in _steps_of(stretch, node):
        when = texts.moment(judged.start_us(one), zone)
        for side, name, _ in SIDES:
            lag: Quantiles | None = getattr(of_node, name)
            points += [
                Point(judged.start_us(one), when, side, part, getattr(lag, part) / 1e3, texts.span(getattr(lag, part)))
                for part in parts
                if lag
            ]
    return tuple(points)


def percentiles(stretch: Stretch) -> tuple[str, ...]:
    """Return which percentiles of a lag are shown: the highest of them where all would be too many points."""
    return PERCENTILES[-thinned(len(stretch.steps), len(PERCENTILES)) :]


def outliers(stretch: Stretch, node: str, zone: tzinfo) -> tuple[Outlier, ...]:
    """Return what the detector found in the lags of a node, in order of time.

    As many as are left of a chart's points: outliers before what is only odd, the newest of them.
    """
    sides = {quantity: side for side, _, quantity in SIDES}
    of_node = [found for found in stretch.findings if found.node == node and found.why.quantity in sides]
    left = MOST_POINTS - len(stretch.steps) * len(percentiles(stretch))
    kept = sorted(of_node, key=lambda found: (not found.is_outlier, -found.window_start_us))[:left]
    return tuple(
        Outlier(
            found.window_start_us,
            texts.moment(found.window_start_us, zone),
            sides[found.why.quantity],
            found.why.observed / 1e3,
            ("outlier: " if found.is_outlier else "odd: ") + "; ".join(reason.words for reason in found.why.reasons),
        )
        for found in sorted(kept, key=lambda found: found.window_start_us)
    )


def is_running(stretch: Stretch, one: Judged) -> bool:
    """Return whether messages of a step still come, so that it would look like a collapse."""
    if isinstance(one, WindowResult):
        return one.status is Status.OPEN
    return stretch.running_us is not None and one.start_us >= stretch.running_us


def running(stretch: Stretch) -> str:
    """Return that the newest step is not over, where it is not."""
    if not stretch.steps or not is_running(stretch, stretch.steps[-1]):
        return ""
    return f"the newest {STEP_WORDS[stretch.step_us]} is not over for the monitor yet"


def finished(stretch: Stretch) -> tuple[Judged, ...]:
    """Return the steps that are over."""
    return tuple(one for one in stretch.steps if not is_running(stretch, one))


def arrivals(steps: Sequence[Judged], node: str, zone: tzinfo) -> tuple[Point, ...]:
    """Return what should have arrived at each step and what did: at a node, or end to end where it names none."""
    points = []
    for one in steps:
        expected, seen = due_and_seen(one, node)
        at, when = judged.start_us(one), texts.moment(judged.start_us(one), zone)
        points.append(Point(at, when, "expected", "", expected, texts.count(expected)))
        points.append(Point(at, when, "arrived", "", seen, texts.count(seen)))
    return tuple(points)


def due_and_seen(one: Judged, node: str) -> tuple[int, int]:
    """Return how many messages should have arrived at a node and did, or end to end where it names none."""
    found = next((each for each in one.nodes if each.node == node), None)
    return (found.expected, found.seen) if found else (one.known - one.filtered - one.rejected, one.delivered)


def durations(stretch: Stretch, nodes: Sequence[str], zone: tzinfo) -> tuple[Piece, ...]:
    """Return the process duration p95 of some nodes in ms, one on top of the other at each step.

    One that is not over 0 has no piece: it has no height, or, below 0, would hide a part of another.
    """
    pieces = []
    for one in stretch.steps:
        at, when, low = judged.start_us(one), texts.moment(judged.start_us(one), zone), 0.0
        for node in one.nodes:
            lasted_us = node.process_duration_p95_us
            if node.node in nodes and lasted_us is not None and lasted_us > 0:
                pieces.append(Piece(at, when, node.node, low, low + lasted_us / 1e3, texts.span(lasted_us)))
                low += lasted_us / 1e3
    return tuple(pieces)


def slowest(one: Judged, most: int = MOST_COLOURS) -> tuple[str, ...]:
    """Return the nodes that have a process duration, the longest ones if there are many, in the pathway's order."""
    return chosen.slowest(one, most)


def left_out(one: Judged, nodes: Sequence[str]) -> str:
    """Return which process durations a chart of some nodes does not show, and why; nothing where it has all."""
    timed = [node for node in one.nodes if node.process_duration_p95_us is not None]
    flat = [node.node for node in timed if (node.process_duration_p95_us or 0) <= 0]
    shorter = sum(node.node not in nodes and node.node not in flat for node in timed)
    untimed = len(one.nodes) - len(timed)
    parts = (
        f"{shorter:,} {_nodes(shorter)} with shorter ones" if shorter else "",
        f"{untimed:,} {_nodes(untimed)} without one, as not both sides were stamped" if untimed else "",
        f"{flat[0]}{f' and {len(flat) - 1:,} more' if flat[1:] else ''}, at 0 or below" if flat else "",
    )
    told = "; ".join(part for part in parts if part)
    return f" Not shown: {told}." if told else ""


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def shares(one: Judged, nodes: Sequence[str]) -> tuple[Point, ...]:
    """Return the process duration p95 of some nodes over a whole, ms; one that is not over 0 has no share."""
    timed = [node for node in one.nodes if node.node in nodes and (node.process_duration_p95_us or 0) > 0]
    total_us = sum(node.process_duration_p95_us or 0 for node in timed)
    return tuple(
        Point(
            judged.start_us(one),
            "",
            node.node,
            texts.percent(node.process_duration_p95_us or 0, total_us),
            (node.process_duration_p95_us or 0) / 1e3,
            texts.span(node.process_duration_p95_us),
        )
        for node in timed
    )


def heat(stretch: Stretch, measure: Measure, zone: tzinfo) -> tuple[Cell, ...]:
    """Return the heat map: a row end to end, and one a node, the worst ones if there are too many for a chart."""
    names = worst(stretch, thinned(len(stretch.steps), len(stretch.graph.nodes) + 1) - 1)
    cells = []
    for one in stretch.steps:
        end = _whole(one, measure)
        at = judged.start_us(one), judged.start_us(one) + stretch.step_us, texts.moment(judged.start_us(one), zone)
        cells.append(_cell(at, END_TO_END, end, judged.of(one)))
        for node in one.nodes:
            if node.node in names:
                seen = judged.of_node(node, is_final=judged.is_final(one))
                cells.append(_cell(at, node.node, _of_node(node, measure), seen))
    return tuple(cells)


def worst(stretch: Stretch, most: int) -> tuple[str, ...]:
    """Return at most so many nodes, those that lost most, in the pathway's order."""
    return chosen.worst(stretch.graph.nodes, stretch.whole, most)


def ignorant(stretch: Stretch) -> WindowResult | None:
    """Return the newest window of the range of which neither loss nor its absence is shown; none without any."""
    steps = (one for one in reversed(stretch.steps) if isinstance(one, WindowResult))
    return next((one for one in steps if one.verdict in _IGNORANT), None)


def ignorance(stretch: Stretch) -> str:
    """Return of how many windows of a range neither loss nor its absence is shown; nothing of none."""
    whole = stretch.whole
    blind = whole.unknown + whole.silent if whole else 0
    if whole is None or not blind:
        return ""
    return f"Of {blind:,} of {whole.windows:,} windows neither loss nor its absence can be shown."


def telling(stretch: Stretch, one: Judged | None) -> str:
    """Return the node whose lags are shown where none is chosen: the one that lost most, else the last."""
    losses = {node.node: node.loss for node in one.nodes} if one is not None else {}
    lossiest = max(losses, key=lambda name: losses[name], default="")
    return lossiest if losses.get(lossiest) else stretch.graph.nodes[-1]


def bands(stretch: Stretch) -> tuple[Band, ...]:
    """Return where steps are not final, or nothing can be shown; steps in a row are one band."""
    found: list[Band] = []
    for one in stretch.steps:
        seen, at = judged.of(one), judged.start_us(one)
        word = "not final" if not seen.is_final else seen.mark.word if seen.mark.word in {"UNKNOWN", "SILENT"} else ""
        if not word:
            continue
        if found and found[-1].word == word and found[-1].end_us == at:
            found[-1] = Band(found[-1].start_us, at + stretch.step_us, word)
        else:
            found.append(Band(at, at + stretch.step_us, word))
    return tuple(found)


def _steps_of(stretch: Stretch, node: str) -> list[tuple[Judged, JudgedNode]]:
    return [(one, each) for one in stretch.steps for each in one.nodes if each.node == node]


def _cell(at: tuple[int, int, str], row: str, figure: tuple[float | None, str], seen: judged.Figures) -> Cell:
    is_known = seen.is_final and seen.mark.word not in {"UNKNOWN", "SILENT"}
    value, said = figure
    if not is_known and not value:
        # Bounds say more than that nobody knows; a lone question mark does not.
        said = "not judged yet" if not seen.is_final else said if " to " in said else "nobody knows"
    return Cell(*at, row, value if is_known else None, seen.mark.word, seen.mark.icon, said)


def _whole(one: Judged, measure: Measure) -> tuple[float | None, str]:
    if measure is Measure.LAG:
        return _lag(one.lag_us)
    unknown = loss.unknown(one.lost_lower, one.lost_upper)
    return _surely(one.loss_ratio, one.lost, one.lost_lower), f"{loss.lost_share(one)} lost{unknown}"


def _of_node(node: JudgedNode, measure: Measure) -> tuple[float | None, str]:
    if measure is Measure.LAG:
        return _lag(node.lag_out_us or node.lag_in_us)
    unknown = loss.unknown(node.loss_lower, node.loss_upper)
    return _surely(node.loss_ratio, node.loss, node.loss_lower), f"{loss.share_of_node(node)} lost{unknown}"


def _surely(ratio: float | None, missing: int, lower: int) -> float | None:
    """Return the part that is surely lost, in per cent: a colour of loss stands for no more."""
    return None if ratio is None else 100 * ratio * lower / missing if missing else 0.0


def _lag(lag: Quantiles | None) -> tuple[float | None, str]:
    return (lag.p95 / 1e3 if lag else None), f"lag p95 {texts.span(lag.p95 if lag else None)}"
