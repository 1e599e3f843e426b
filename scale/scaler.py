"""Loop of ``hopwatch scale``: reads the metric, decides, and keeps as many processes running."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from hopwatch.scale.metric import MetricSource, MetricUnavailableError
from hopwatch.scale.policy import ScalingDecision, ScalingPolicy, decide_processes, start_state
from hopwatch.scale.supervisor import Supervisor


class Submit(Protocol):
    """Function that has a call made by another thread."""

    def __call__(self, call: Callable[[], float], /) -> Future[float]:
        """Return the answer that the call will have."""


class ScalingStep(NamedTuple):
    """One decision, with the metric it goes by, or why there was none, and the processes at that moment."""

    before: int
    decision: ScalingDecision
    metric: float | None
    fault: str
    running: int
    ending: int
    restarts: int


class Scaler:
    """Scales the processes of a supervisor; its methods are called by one thread."""

    def __init__(  # noqa: PLR0913 - its parts, each of which a test replaces
        self,
        supervisor: Supervisor,
        policy: ScalingPolicy,
        source: MetricSource,
        *,
        clock_s: Callable[[], float],
        submit: Submit,
        every_s: float,
    ) -> None:
        """Take the parts; nothing starts before :meth:`start`.

        A slow metric holds up nothing, as ``submit`` has it read by another thread.
        """
        self._supervisor, self._policy, self._source = supervisor, policy, source
        self._clock_s, self._submit, self._every_s = clock_s, submit, every_s
        self._state = start_state(policy.minimum, clock_s())
        self._reading: Future[float] | None = None
        self._read_at_s = clock_s() + every_s

    def start(self) -> None:
        """Start the least number of processes."""
        self._supervisor.resize(self._state.current)

    def step(self) -> ScalingStep | None:
        """Look after the processes, and decide if a metric has come; return the decision."""
        self._supervisor.look_after()
        now_s = self._clock_s()
        if self._reading is None and self._read_at_s <= now_s:
            self._read_at_s = now_s + self._every_s
            self._reading = self._submit(self._source.read)
        if self._reading is None or not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        metric, fault = _take_answer(reading)
        before, decision = self._state.current, decide_processes(self._policy, self._state, metric, now_s)
        self._state = decision.state
        self._supervisor.resize(decision.processes)
        running, ending = len(self._supervisor.running), self._supervisor.ending
        return ScalingStep(before, decision, metric, fault, running, ending, self._supervisor.restarts)


def _take_answer(reading: Future[float]) -> tuple[float | None, str]:
    """Return the metric, or why there is none."""
    try:
        return reading.result(), ""
    except MetricUnavailableError as error:
        return None, str(error)
