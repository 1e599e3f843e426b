"""Sentences and cells that the terminal and the page of a rating share. Pure."""

from __future__ import annotations

import math
from typing import Final

from hopwatch.display import texts
from hopwatch.rate.results import ConsumersResult, StepResult
from hopwatch.rate.saturation import RECEIVER, Saturation, SaturationCause, Side
from hopwatch.rate.search import SearchEnd

COLUMNS: Final = (
    *("rate/s", "outcome", "messages", "p50", "p95", "p95 from", "p95 to", "p99", "lost", "backlog", "sender late"),
    "processors",
)
_CAUSES: Final = {
    SaturationCause.PROCESSOR: "its busiest process is bound by the processor",
    SaturationCause.MACHINE: "its busiest process waits for a processor, as the machine is busy",
    SaturationCause.WAITING: "its processes wait and do not compute",
    SaturationCause.UNKNOWN: "why is UNKNOWN: its processes are not known",
}


def format_rate(rate_per_s: float | None) -> str:
    """Return messages a second, with three figures at least."""
    if rate_per_s is None:
        return texts.NONE
    return f"{rate_per_s:,.0f}" if rate_per_s >= 100 else f"{rate_per_s:.3g}"  # noqa: PLR2004 - three figures


def format_span(span_s: float | None) -> str:
    """Return a span; a missing message's is none."""
    return texts.NONE if span_s is None or not math.isfinite(span_s) else texts.format_lag(span_s * 1e6)


def format_step(step: StepResult) -> tuple[str, ...]:
    """Return the cells of a step, in order of :data:`COLUMNS`."""
    verdict = step.verdict
    middle, p95, p99 = verdict.lags
    return (
        format_rate(step.rate_per_s),
        verdict.state,
        texts.format_count(step.messages),
        format_span(middle.lag_s),
        format_span(p95.lag_s),
        format_span(p95.interval.low),
        format_span(p95.interval.high),
        format_span(p99.lag_s),
        texts.format_count(verdict.lost),
        texts.format_count(step.backlog),
        format_span(verdict.lateness_s),
        texts.format_ratio(None if step.shares.machine is None else round(step.shares.machine, 3)),
    )


def describe_rating(run: ConsumersResult) -> str:
    """Return the rating of a number of consumers, with its spread."""
    whose = "" if run.consumers is None else f"{run.consumers} consumer{'s' * (run.consumers != 1)}: "
    found, rating = run.ratings_per_s, run.rating_per_s
    if rating is None:
        held = max((one.held_per_s or 0.0 for one in run.repeats), default=0.0)
        so_far = f"the target held at {format_rate(held)} messages/s so far" if held else "no rate held so far"
        return f"{whose}no search was finished; {so_far}"
    if not rating:
        return f"{whose}the target did not hold at any rate"
    spread = f"{format_rate(min(found))} to {format_rate(max(found))} in {len(found)} search{'es' * (len(found) != 1)}"
    if not run.is_lower_bound:
        return f"{whose}{format_rate(rating)} messages/s ({spread})"
    is_sender = any(one.end is SearchEnd.SENDER for one in run.repeats)
    why = "the sender cannot send more" if is_sender else "the highest rate that was tried held"
    return f"{whose}at least {format_rate(rating)} messages/s ({spread}): {why}"


def describe_saturation(found: Saturation | None) -> str:
    """Return what saturates, in words."""
    if found is None:
        return "nothing saturated: no rate that was tried failed"
    if found.node is None:
        return "what saturates is UNKNOWN: no probe of the stream was heard while a rate failed"
    if found.node == RECEIVER:
        return "what saturates is behind the last node: messages wait there for this receiver"
    where = "messages wait before it" if found.side is Side.IN else "messages wait inside of it"
    what = f"{found.node} saturates: {where}" if found.grows else f"{found.node} adds most to the lag"
    share = "" if found.use is None else f" (its busiest process used {found.use.used:.0%} of a processor)"
    return f"{what}; {_CAUSES[found.cause]}{share}"
