"""ScalingDecision on the number of processes, as the Kubernetes HorizontalPodAutoscaler makes it; pure.

The formula, the tolerance, the stabilisation windows and the rate limits are those of ``autoscaling/v2``:
https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/ describes them, and
``pkg/controller/podautoscaler/horizontal.go`` and ``replica_calculator.go`` of Kubernetes implement them.

One thing is stricter. A moment without a metric counts as a recommendation of the current number, where Kubernetes
records nothing: so after a gap processes end only once a whole stabilisation window has asked for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

TOLERANCE_RATIO: Final = 0.1
"""``--horizontal-pod-autoscaler-tolerance`` of Kubernetes, by default."""
SCALE_DOWN_WINDOW_S: Final = 300.0
"""``--horizontal-pod-autoscaler-downscale-stabilization``, by default."""
MAX_RECOMMENDED: Final = 1_000_000.0
"""Most that a metric without measure asks for."""
SYNC_PERIOD_S: Final = 15.0
"""``--horizontal-pod-autoscaler-sync-period``, by default."""


class MetricKind(StrEnum):
    """Kinds of metric, as the targets of Kubernetes have them."""

    VALUE = "value"
    """One number for all processes, such as a lag in seconds: desired = ceil(current * metric / target)."""
    TOTAL = "total"
    """Sum that the processes share, such as a backlog (``AverageValue``): desired = ceil(metric / target)."""


class Reason(StrEnum):
    """Reasons of a decision."""

    METRIC = "metric"
    STEADY = "steady"
    """The metric asks for as many as there are."""
    NO_METRIC = "no_metric"
    STABILISATION = "stabilisation"
    RATE = "rate"
    BOUNDS = "bounds"


class RateUnit(StrEnum):
    """Units of a rate limit."""

    PROCESSES = "processes"
    PERCENT = "percent"


class RateLimit(NamedTuple):
    """Limit of change: so many processes, or so many percent of them, within a period."""

    unit: RateUnit
    value: int
    period_s: float


@dataclass(frozen=True, slots=True)
class ScalingBehaviour:
    """Behaviour in one direction.

    Of several limits the one that allows the largest change counts, as by Kubernetes' default ``selectPolicy: Max``;
    without any the rate is not limited.
    """

    window_s: float
    limits: tuple[RateLimit, ...]


SCALE_UP: Final = ScalingBehaviour(
    0.0, (RateLimit(RateUnit.PERCENT, 100, SYNC_PERIOD_S), RateLimit(RateUnit.PROCESSES, 4, SYNC_PERIOD_S))
)
SCALE_DOWN: Final = ScalingBehaviour(SCALE_DOWN_WINDOW_S, (RateLimit(RateUnit.PERCENT, 100, SYNC_PERIOD_S),))


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """Target of a metric, bounds of the number of processes, and the behaviour between them.

    Raises:
        ValueError: a value is outside its range.
    """

    target: float
    minimum: int
    maximum: int
    kind: MetricKind
    tolerance_ratio: float = TOLERANCE_RATIO
    up: ScalingBehaviour = SCALE_UP
    down: ScalingBehaviour = SCALE_DOWN

    def __post_init__(self) -> None:
        """Check the values."""
        if not (math.isfinite(self.target) and self.target > 0):
            raise ValueError(f"the target is a number above 0, got {self.target}")
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"the numbers of processes are 1 <= min <= max, got {self.minimum} and {self.maximum}")
        if not 0 <= self.tolerance_ratio < 1:
            raise ValueError(f"the tolerance is a ratio from 0 to below 1, got {self.tolerance_ratio}")


class Recommendation(NamedTuple):
    """Number of processes that the metric asked for at a moment, before stabilisation."""

    at_s: float
    processes: int


class Change(NamedTuple):
    """Change of the number of processes at a moment, below 0 when some ended."""

    at_s: float
    processes: int


class ScalingState(NamedTuple):
    """Current number of processes, and what the next decision has to remember."""

    current: int
    recommendations: tuple[Recommendation, ...] = ()
    changes: tuple[Change, ...] = ()


class ScalingDecision(NamedTuple):
    """New number of processes, the number that the metric asked for, the reason, and the state afterwards."""

    processes: int
    recommended: int
    reason: Reason
    state: ScalingState


def start_state(processes: int, now_s: float) -> ScalingState:
    """Return the first state; the number at the start counts as recommended, so that no process ends at once."""
    return ScalingState(processes, (Recommendation(now_s, processes),))


def decide_processes(policy: ScalingPolicy, state: ScalingState, metric: float | None, now_s: float) -> ScalingDecision:
    """Decide on the number of processes by one reading of the metric; None stands for one that cannot be had."""
    current = min(max(state.current, policy.minimum), policy.maximum)
    known = metric is not None and math.isfinite(metric)
    recommended = recommend_processes(policy, current, metric) if metric is not None and known else current
    bounded = min(max(recommended, policy.minimum), policy.maximum)
    stable = _stabilise_recommendation(policy, state, current, bounded, now_s)
    allowed = _limit_rate(policy, state.changes, current, stable, now_s)
    if not known:
        reason = Reason.NO_METRIC
    elif allowed != stable:
        reason = Reason.RATE
    elif stable != bounded:
        reason = Reason.STABILISATION
    elif bounded != recommended:
        reason = Reason.BOUNDS
    else:
        reason = Reason.STEADY if recommended == current else Reason.METRIC
    return ScalingDecision(
        allowed, recommended, reason, _remember(policy, state, Recommendation(now_s, bounded), allowed)
    )


def recommend_processes(policy: ScalingPolicy, current: int, metric: float) -> int:
    """Return how many processes the metric asks for, within no bounds yet."""
    is_total = policy.kind is MetricKind.TOTAL
    ratio = metric / policy.target / (current if is_total else 1)
    if 1 - policy.tolerance_ratio <= ratio <= 1 + policy.tolerance_ratio:
        return current
    wanted = metric / policy.target if is_total else ratio * current
    return math.ceil(min(max(wanted, 0.0), MAX_RECOMMENDED))


def average_shares(shares: Iterable[float | None], target: float) -> float | None:
    """Return the average of what processes use, where some are not known; None if none is.

    As Kubernetes does: what is not known counts against a change, as 0 where the others ask for more processes, and as
    all of a processor, or the target if that is more, where they ask for fewer. If that turns the direction, the
    average is the target.
    """
    given = tuple(shares)
    known = [share for share in given if share is not None]
    if not known:
        return None
    average = sum(known) / len(known)
    missing = len(given) - len(known)
    if not missing or average == target:
        return average
    filled = (sum(known) + missing * (0.0 if average > target else max(1.0, target))) / len(given)
    return filled if (filled > target) == (average > target) else target


def _stabilise_recommendation(
    policy: ScalingPolicy, state: ScalingState, current: int, bounded: int, now_s: float
) -> int:
    """Return the number within the windows: upwards the least, downwards the most that was recommended in them."""
    up = min([bounded, *_recent(state.recommendations, policy.up.window_s, now_s)])
    down = max([bounded, *_recent(state.recommendations, policy.down.window_s, now_s)])
    return min(max(current, up), down)


def _recent(recommendations: Iterable[Recommendation], window_s: float, now_s: float) -> list[int]:
    return [one.processes for one in recommendations if one.at_s > now_s - window_s]


def _limit_rate(policy: ScalingPolicy, changes: tuple[Change, ...], current: int, wanted: int, now_s: float) -> int:
    """Return the number that the rate limits allow on the way from the current to the wanted one."""
    if wanted > current and policy.up.limits:
        most = max(_limit_up(limit, current, changes, now_s) for limit in policy.up.limits)
        return min(wanted, max(most, current))
    if wanted < current and policy.down.limits:
        least = min(_limit_down(limit, current, changes, now_s) for limit in policy.down.limits)
        return max(wanted, min(least, current))
    return wanted


def _limit_up(limit: RateLimit, current: int, changes: tuple[Change, ...], now_s: float) -> int:
    before = _count_at_period_start(limit, current, changes, now_s)
    return before + limit.value if limit.unit is RateUnit.PROCESSES else -(-before * (100 + limit.value) // 100)


def _limit_down(limit: RateLimit, current: int, changes: tuple[Change, ...], now_s: float) -> int:
    before = _count_at_period_start(limit, current, changes, now_s)
    return before - limit.value if limit.unit is RateUnit.PROCESSES else before * (100 - limit.value) // 100


def _count_at_period_start(limit: RateLimit, current: int, changes: tuple[Change, ...], now_s: float) -> int:
    return current - sum(change.processes for change in changes if change.at_s > now_s - limit.period_s)


def _remember(policy: ScalingPolicy, state: ScalingState, newest: Recommendation, allowed: int) -> ScalingState:
    """Return the state after a decision, without what no later one will ask for."""
    now_s = newest.at_s
    window_s = max(policy.up.window_s, policy.down.window_s)
    period_s = max((limit.period_s for limit in (*policy.up.limits, *policy.down.limits)), default=0.0)
    changed = (Change(now_s, allowed - state.current),) if allowed != state.current else ()
    return ScalingState(
        allowed,
        (*(one for one in state.recommendations if one.at_s > now_s - window_s), newest),
        (*(one for one in state.changes if one.at_s > now_s - period_s), *changed),
    )
