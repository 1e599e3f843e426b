"""Results of a rating, and their JSON. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hopwatch.rate.processor_use import ProcessorShares, ProcessorUse
from hopwatch.rate.saturation import PointFigures, Saturation
from hopwatch.rate.schedule import Arrivals
from hopwatch.rate.search import SearchEnd
from hopwatch.rate.step import StepState, StepVerdict
from hopwatch.rate.target import Target

Json = dict[str, Any]


class RunEnd(StrEnum):
    """Reason for the end of a run."""

    COMPLETE = "complete"
    TIME = "time"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class StepResult:
    """Step, as it was measured and judged; ``warm_up_s`` and ``measured_s`` by event time.

    ``offered_per_s`` is what was sent, ``backlog`` what had not arrived when the last message was due.
    """

    rate_per_s: float
    offered_per_s: float
    messages: int
    warm_up_s: float
    measured_s: float
    verdict: StepVerdict
    backlog: int
    duplicates: int
    round_trip_p95_s: float | None
    refusals: Mapping[str, int]
    shares: ProcessorShares
    points: tuple[PointFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatResult:
    """One search, or one row of given rates; without an ``end`` it was not finished."""

    steps: tuple[StepResult, ...]
    held_per_s: float | None
    end: SearchEnd | None


@dataclass(frozen=True, slots=True)
class ConsumersResult:
    """Repeats with one number of consumers; None if the rating started none."""

    consumers: int | None
    repeats: tuple[RepeatResult, ...]
    saturation: Saturation | None

    @property
    def ratings_per_s(self) -> tuple[float, ...]:
        """The ratings of the finished searches; 0 where the target never held."""
        return tuple(one.held_per_s or 0.0 for one in self.repeats if one.end is not None)

    @property
    def rating_per_s(self) -> float | None:
        """The median of the ratings; None without a finished search."""
        return statistics.median(self.ratings_per_s) if self.ratings_per_s else None

    @property
    def spread_ratio(self) -> float | None:
        """The difference of the highest and the lowest rating, by their median."""
        found = self.ratings_per_s
        return (max(found) - min(found)) / self.rating_per_s if self.rating_per_s else None

    @property
    def is_lower_bound(self) -> bool:
        """Mark of a stream that may take more: a search ended at the highest rate, or at what the sender can send."""
        return any(one.end in {SearchEnd.MAX_RATE, SearchEnd.SENDER} for one in self.repeats)


@dataclass(frozen=True, slots=True)
class RatingResult:
    """Result of a whole run."""

    stream: str
    target: Target
    arrivals: Arrivals
    batch: int
    started_us: int
    runs: tuple[ConsumersResult, ...]
    end: RunEnd
    notes: tuple[str, ...] = ()

    @property
    def has_held(self) -> bool:
        """Mark of a target that held: all ratings are above 0 or, of given rates, each step held."""
        steps = [step for run in self.runs for repeat in run.repeats for step in repeat.steps]
        if all(not run.ratings_per_s for run in self.runs):
            return bool(steps) and all(step.verdict.state is StepState.HOLDS for step in steps)
        return all(run.rating_per_s for run in self.runs)


def build_json(result: RatingResult) -> Json:
    """Build the JSON of a result; rates are messages a second, lags ms, what is infinite or unknown null."""
    return {
        "stream": result.stream,
        "target": str(result.target),
        "arrivals": result.arrivals,
        "batch": result.batch,
        "started_us": result.started_us,
        "end": result.end,
        "notes": list(result.notes),
        "runs": [_run_to_json(one) for one in result.runs],
    }


def _run_to_json(run: ConsumersResult) -> Json:
    found = run.ratings_per_s
    return {
        "consumers": run.consumers,
        "rating_per_s": _rounded(run.rating_per_s),
        "rating_low_per_s": _rounded(min(found, default=None)),
        "rating_high_per_s": _rounded(max(found, default=None)),
        "spread_ratio": _rounded(run.spread_ratio),
        "is_lower_bound": run.is_lower_bound,
        "saturation": _saturation_to_json(run.saturation),
        "repeats": [
            {"rating_per_s": _rounded(one.held_per_s), "end": one.end, "steps": [_step_to_json(of) for of in one.steps]}
            for one in run.repeats
        ],
    }


def _saturation_to_json(found: Saturation | None) -> Json | None:
    if found is None:
        return None
    return {
        "node": found.node,
        "side": found.side,
        "grows": found.grows,
        "cause": found.cause,
        **(_use_to_json(found.use) if found.use else {"processor": None, "processor_wait": None}),
    }


def _step_to_json(step: StepResult) -> Json:
    verdict = step.verdict
    lags = {
        f"p{one.quantile * 100:.0f}_ms": {"value": _ms(one.lag_s), "low": _ms(one.interval.low),
                                          "high": _ms(one.interval.high)}
        for one in verdict.lags
    }  # fmt: skip
    return {
        "rate_per_s": _rounded(step.rate_per_s),
        "offered_per_s": _rounded(step.offered_per_s),
        "state": verdict.state,
        "reasons": list(verdict.reasons),
        "messages": step.messages,
        "warm_up_s": _rounded(step.warm_up_s),
        "measured_s": _rounded(step.measured_s),
        **lags,
        "lag_growth": _rounded(verdict.growth.slope),
        "lost": verdict.lost,
        "lost_acknowledged": verdict.lost_accepted,
        "not_acknowledged": verdict.refused,
        "refusals": dict(step.refusals),
        "duplicates": step.duplicates,
        "backlog": step.backlog,
        "sender_lateness_p99_ms": _ms(verdict.lateness_s),
        "round_trip_p95_ms": _ms(step.round_trip_p95_s),
        "machine_share": _rounded(step.shares.machine),
        "processes": {name: _use_to_json(use) for name, use in sorted(step.shares.by_name.items())},
        "nodes": _points_to_json(step.points),
    }


def _points_to_json(points: Sequence[PointFigures]) -> list[Json]:
    return [
        {
            "node": one.node,
            "side": one.side,
            "messages": one.messages,
            "lag_p95_ms": _ms(one.p95_s),
            "lag_growth": _rounded(one.growth.slope) if one.growth else None,
            "grows": one.growth.is_growing if one.growth else None,
        }
        for one in points
    ]


def _use_to_json(use: ProcessorUse) -> Json:
    return {"processor": _rounded(use.used), "processor_wait": _rounded(use.waited)}


def _ms(span_s: float | None) -> float | None:
    return _rounded(None if span_s is None else span_s * 1e3)


def _rounded(value: float | None) -> float | None:
    """Return a value with five significant figures; None where it is not finite."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None
