"""A step of a rating: so many messages at one rate, and what they are judged to show. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.rate.growth import LagGrowth, find_growth
from hopwatch.rate.intervals import (
    SLICES,
    Interval,
    count_needed_messages,
    estimate_quantile,
    estimate_share,
)
from hopwatch.rate.target import LagCondition, Target

QUANTILES: Final = (0.5, 0.95, 0.99)
MIN_MEASURED_S: Final = 8.0
"""Shortest time that a step is measured: twenty slices of 0.4 s, longer than most pauses of a runtime."""
WARM_UP_RATIO: Final = 0.2
"""Warm-up of a step, relative to the time that is measured."""
MIN_WARM_UP_S: Final = 1.0
MAX_LATENESS_RATIO: Final = 0.1
"""Lateness of the sender that a step bears, relative to the smallest bound of a lag."""
MIN_LATENESS_S: Final = 0.01
LATENESS_QUANTILE: Final = 0.99
HOPELESS_FACTOR: Final = 2.0
"""A step is ended early once so many times the messages that may be late are late."""


class StepState(StrEnum):
    """Outcome of a step."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    VOID = "void"


class StepSize(NamedTuple):
    """Messages of a step: those of the warm-up, which are sent first, and those that are measured."""

    warm_up: int
    measured: int


@dataclass(frozen=True, slots=True)
class StepMeasurement:
    """Measurements of a step, warm-up left out.

    Of each message in order of its event time ``due_s`` is when it should have been sent, ``lags_s`` how much later it
    arrived, infinite if it did not, ``is_accepted`` whether the entrance acknowledged it. ``lateness_s`` is how much
    later than due each request was sent, by the sender's own fault.
    """

    rate_per_s: float
    due_s: NDArray[np.float64]
    lags_s: NDArray[np.float64]
    is_accepted: NDArray[np.bool_]
    lateness_s: NDArray[np.float64]
    is_cut_short: bool = False


class LagQuantile(NamedTuple):
    """Quantile of the lag in seconds, with its interval."""

    quantile: float
    lag_s: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """Verdict on a step, with its reasons and the figures that it goes by."""

    state: StepState
    reasons: tuple[str, ...]
    lags: tuple[LagQuantile, ...]
    lost: int
    lost_accepted: int
    refused: int
    growth: LagGrowth
    lateness_s: float


def plan_step(rate_per_s: float, target: Target, stretch: int = 1) -> StepSize:
    """Return how many messages a step needs at a rate; a longer one, after one that decided nothing, is stretched."""
    needed = max((count_needed_messages(one.quantile) for one in target.lags), default=SLICES * 4)
    measured = stretch * max(needed, math.ceil(rate_per_s * MIN_MEASURED_S))
    return StepSize(math.ceil(max(rate_per_s * MIN_WARM_UP_S, WARM_UP_RATIO * measured / stretch)), measured)


def count_bearable(condition: LagCondition, measured: int) -> float:
    """Return how many late messages a step bears before it is ended early, as it cannot hold any more."""
    return HOPELESS_FACTOR * (1 - condition.quantile) * measured + SLICES


def bearable_lateness_s(target: Target) -> float:
    """Return the lateness of the sender from which a step is void."""
    return max(MIN_LATENESS_S, MAX_LATENESS_RATIO * min((one.limit_s for one in target.lags), default=1.0))


def judge_step(measured: StepMeasurement, target: Target) -> StepVerdict:
    """Judge whether the target held in a step.

    A message that did not arrive is later than any bound. A step of a late sender is void, as its load was another one
    than that of its rate; so is one without messages.
    """
    lags = tuple(LagQuantile(quantile, *estimate_quantile(measured.lags_s, quantile)) for quantile in QUANTILES)
    is_lost = np.isinf(measured.lags_s)
    lateness_s = float(np.quantile(measured.lateness_s, LATENESS_QUANTILE)) if measured.lateness_s.size else 0.0
    growth = find_growth(measured.due_s, measured.lags_s)
    states = [_judge_sender(lateness_s, target)] if measured.due_s.size else [(StepState.VOID, "no message was sent")]
    states += [_judge_lag(measured.lags_s, one) for one in target.lags]
    states.append(_judge_loss(is_lost, target.max_loss_ratio))
    if growth.is_growing:
        grows = f"the lag grows by {growth.slope * 1e3:,.0f} ms a second"
        states.append((StepState.FAILS, grows))
    if measured.is_cut_short:
        states.append((StepState.FAILS, "it was ended early, as it could not hold any more"))
    state = next(
        (one for one in (StepState.VOID, StepState.FAILS, StepState.UNDECIDED) if one in {of for of, _ in states}),
        StepState.HOLDS,
    )
    return StepVerdict(
        state,
        tuple(why for of, why in states if of is state and why),
        lags,
        int(is_lost.sum()),
        int((is_lost & measured.is_accepted).sum()),
        int((~measured.is_accepted).sum()),
        growth,
        lateness_s,
    )


def _judge_sender(lateness_s: float, target: Target) -> tuple[StepState, str]:
    bearable_s = bearable_lateness_s(target)
    if lateness_s <= bearable_s:
        return StepState.HOLDS, ""
    late = f"the sender itself was late: p99 by {lateness_s * 1e3:,.0f} ms, {bearable_s * 1e3:,.0f} ms are allowed"
    return StepState.VOID, late


def _judge_lag(lags_s: NDArray[np.float64], condition: LagCondition) -> tuple[StepState, str]:
    late, bearable = estimate_share(lags_s > condition.limit_s), 1 - condition.quantile
    name = f"e2e p{condition.quantile * 100:.0f}"
    told = (
        f"{name}: {late.share:.1%} of the messages took longer than {condition.limit_s * 1e3:,.10g} ms "
        f"({late.interval.low:.1%} to {late.interval.high:.1%}), {bearable:.0%} may"
    )
    if late.interval.high <= bearable:
        return StepState.HOLDS, ""
    return (StepState.FAILS if late.interval.low > bearable else StepState.UNDECIDED), told


def _judge_loss(is_lost: NDArray[np.bool_], max_ratio: float | None) -> tuple[StepState, str]:
    if max_ratio is None or not is_lost.any():
        return StepState.HOLDS, ""
    told = f"loss: {int(is_lost.sum()):,} of {is_lost.size:,} messages did not arrive"
    if not max_ratio:
        return StepState.FAILS, told
    lost = estimate_share(is_lost)
    if lost.interval.high <= max_ratio:
        return StepState.HOLDS, ""
    return (StepState.FAILS if lost.interval.low > max_ratio else StepState.UNDECIDED), told
