"""Metrics of ``hopwatch scale``, and the account that they are made of."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hopwatch.probes.metrics.metric import Label, Metric, MetricType, Sample
from hopwatch.scale.policy import Reason, ScalingPolicy

if TYPE_CHECKING:
    from hopwatch.scale.scaler import ScalingStep

POLICY: Final = Label("policy", ("lag", "cpu"))

WANTED: Final = Metric(
    "hopwatch_scale_wanted_processes", MetricType.GAUGE, "Processes that the last decision was for.", (POLICY,)
)
RECOMMENDED: Final = Metric(
    "hopwatch_scale_recommended_processes",
    MetricType.GAUGE,
    "Processes that the metric asked for at last, before stabilisation, rates and bounds.",
    (POLICY,),
)
RUNNING: Final = Metric(
    "hopwatch_scale_running_processes",
    MetricType.GAUGE,
    "Processes that run and were not asked to end; less than wanted while one waits to be started again.",
    (POLICY,),
)
ENDING: Final = Metric(
    "hopwatch_scale_ending_processes", MetricType.GAUGE, "Processes that were asked to end and have not yet.", (POLICY,)
)
METRIC: Final = Metric(
    "hopwatch_scale_metric",
    MetricType.GAUGE,
    "Value of the metric at the last decision; none if it could not be had.",
    (POLICY,),
)
TARGET: Final = Metric("hopwatch_scale_target", MetricType.GAUGE, "Target of the metric.", (POLICY,))
DECISIONS: Final = Metric(
    "hopwatch_scale_decisions_total",
    MetricType.COUNTER,
    "Decisions by their reason; those without a metric have no_metric.",
    (POLICY, Label("reason", tuple(Reason))),
)
RESTARTS: Final = Metric(
    "hopwatch_scale_restarts_total",
    MetricType.COUNTER,
    "Processes that ended by themselves and were or will be started again.",
    (POLICY,),
)

SCALING_METRICS: Final = (WANTED, RECOMMENDED, RUNNING, ENDING, METRIC, TARGET, DECISIONS, RESTARTS)


class ScalingAccount:
    """Account of the decisions; one thread notes them, others make samples."""

    def __init__(self, policy: str, rules: ScalingPolicy) -> None:
        """Start without a decision."""
        self._labels, self._target = (policy,), rules.target
        self._lock = threading.Lock()
        self._last: ScalingStep | None = None
        self._decisions: Counter[Reason] = Counter()

    def note_step(self, step: ScalingStep) -> None:
        """Count a decision."""
        with self._lock:
            self._last = step
            self._decisions[step.decision.reason] += 1

    def build_samples(self) -> Iterator[Sample]:
        """Yield all samples, those of the last decision once there is one."""
        with self._lock:
            last, decisions = self._last, dict(self._decisions)
        yield Sample(TARGET, self._labels, self._target)
        for reason in Reason:
            yield Sample(DECISIONS, (*self._labels, reason), decisions.get(reason, 0))
        if last is None:
            return
        yield Sample(WANTED, self._labels, last.decision.processes)
        yield Sample(RECOMMENDED, self._labels, last.decision.recommended)
        yield Sample(RUNNING, self._labels, last.running)
        yield Sample(ENDING, self._labels, last.ending)
        yield Sample(RESTARTS, self._labels, last.restarts)
        if last.metric is not None:
            yield Sample(METRIC, self._labels, last.metric)
