"""Page of a rating as one document: it asks no network for anything, and runs no script. Pure."""

from __future__ import annotations

import math
from typing import Final

from hopwatch.dashboards import markup
from hopwatch.dashboards.report import styles
from hopwatch.display import texts
from hopwatch.rate.curve_chart import Curve, RatePoint, draw_curves
from hopwatch.rate.processor_use import ProcessorUse
from hopwatch.rate.results import ConsumersResult, RatingResult, RunEnd, StepResult
from hopwatch.rate.saturation import PointFigures
from hopwatch.rate.step import StepState
from hopwatch.rate.texts import COLUMNS, describe_rating, describe_saturation, format_rate, format_span, format_step

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy: the document fetches nothing and runs no script."""
_ENDS: Final = {
    RunEnd.COMPLETE: "",
    RunEnd.TIME: "The time of the run was over before all was measured.",
    RunEnd.INTERRUPTED: "The run was interrupted: this is what was measured until then.",
}


def render_page(result: RatingResult, version: str) -> str:
    """Return the document."""
    title = f"Traffic rating of {result.stream}"
    made = (
        f"Measured {texts.format_moment(result.started_us)} by Hopwatch {version}; {result.arrivals} arrivals in "
        f"batches of at most {result.batch:,}; event time is when a message should have been sent."
    )
    notes = [one for one in (_ENDS[result.end], *result.notes) if one]
    body = (
        f"<h1>{markup.escape_html(title)}</h1>{markup.elements('p', [f'Target: {result.target}'])}"
        f"{markup.elements('p', [made], 'hw-note')}{markup.elements('p', notes, 'hw-grave')}"
        f"{''.join(_render_run(one, result) for one in result.runs)}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{markup.escape_html(title)}</title><style>{styles.build_styles()}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _render_run(run: ConsumersResult, result: RatingResult) -> str:
    steps = [step for repeat in run.repeats for step in repeat.steps]
    told = markup.elements("p", [describe_saturation(run.saturation)]) if steps else ""
    lags = [
        Curve(f"p{quantile * 100:.0f}", color, tuple(_build_lag_points(steps, place)))
        for place, (quantile, color) in enumerate(((0.5, 4), (0.95, 0), (0.99, 1)))
    ]
    limits = [(f"p{one.quantile * 100:.0f} bound", one.limit_s * 1e3) for one in result.target.lags]
    losses = Curve("lost", 5, tuple(_build_loss_points(steps)))
    charts = draw_curves("End-to-end lag by rate", "ms", lags, limits, run.rating_per_s)
    if any(point.value for point in losses.points):
        charts += draw_curves("Messages that did not arrive, by rate", "%", [losses], [], run.rating_per_s)
    tables = "".join(
        f"<h3>Search {number}</h3>{_render_steps(repeat.steps)}" for number, repeat in enumerate(run.repeats, 1)
    )
    return (
        f"<h2>{markup.escape_html(describe_rating(run))}</h2>{told}{charts}"
        f"{markup.elements('p', ['A circle: the target held; a cross: it did not.'], 'hw-note')}{tables}"
        f"{_render_points(steps)}"
    )


def _build_lag_points(steps: list[StepResult], place: int) -> list[RatePoint]:
    found = []
    for step in steps:
        lag_s = step.verdict.lags[place].lag_s
        if math.isfinite(lag_s) and step.verdict.state is not StepState.VOID:
            told = f"{format_rate(step.rate_per_s)}/s: {format_span(lag_s)}, {step.verdict.state}"
            found.append(RatePoint(step.rate_per_s, lag_s * 1e3, step.verdict.state is StepState.HOLDS, told))
    return found


def _build_loss_points(steps: list[StepResult]) -> list[RatePoint]:
    return [
        RatePoint(
            step.rate_per_s,
            100 * step.verdict.lost / step.messages,
            step.verdict.state is StepState.HOLDS,
            f"{format_rate(step.rate_per_s)}/s: {step.verdict.lost:,} of {step.messages:,}",
        )
        for step in steps
        if step.messages
    ]


def _render_steps(steps: tuple[StepResult, ...]) -> str:
    kinds = ("hw-number", "hw-narrow", *("hw-number" for _ in COLUMNS[2:]), "hw-sentence")
    head = list(zip((*COLUMNS, "why"), kinds, strict=True))
    rows = [[markup.escape_html(cell) for cell in (*format_step(one), "; ".join(one.verdict.reasons))] for one in steps]
    return markup.table(head, rows, "hw-rates", "Steps in the order in which they were run")


def _render_points(steps: list[StepResult]) -> str:
    """Return the lag at each point of the pathway by rate, and the processor share of each process."""
    seen = sorted((step for step in steps if len(step.points) > 1), key=lambda step: step.rate_per_s)
    if not seen:
        return ""
    names = list(dict.fromkeys((point.node, point.side) for step in seen for point in step.points))
    processes = sorted({name for step in seen for name in step.shares.by_name})
    head = [
        ("rate/s", "hw-number"),
        *((f"{node} {side}", "hw-number") for node, side in names),
        *((f"{name}, processor", "hw-number") for name in processes),
    ]
    rows = []
    for step in seen:
        points = {(point.node, point.side): point for point in step.points}
        shares = [_format_use(step.shares.by_name.get(name)) for name in processes]
        rows.append([format_rate(step.rate_per_s), *(_format_point(points.get(name)) for name in names), *shares])
    told = "p95 of the lag by event time at each point; an arrow: it grew. Processor: used, and waited for, of one."
    return f"<h3>Nodes</h3>{markup.elements('p', [told], 'hw-note')}" + markup.table(
        head, [[markup.escape_html(cell) for cell in row] for row in rows], "hw-points", "Lag at each point by rate"
    )


def _format_point(point: PointFigures | None) -> str:
    if point is None or point.p95_s is None:
        return texts.UNKNOWN
    return f"{format_span(point.p95_s)}{' ↗' if point.growth and point.growth.is_growing else ''}"


def _format_use(use: ProcessorUse | None) -> str:
    return texts.NONE if use is None else f"{use.used:.0%} + {use.waited:.0%}"
