"""Tests of the loop: it reads, decides and scales, and a metric that is slow or missing holds up nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from hopwatch.probes.metrics.metric import Sample
from hopwatch.scale import metrics
from hopwatch.scale.metric import MetricUnavailableError
from hopwatch.scale.metrics import ScalingAccount
from hopwatch.scale.policy import SCALE_UP, MetricKind, RateLimit, RateUnit, Reason, ScalingBehaviour, ScalingPolicy
from hopwatch.scale.scaler import Scaler, ScalingStep
from hopwatch.scale.supervisor import Supervisor
from tests.scale.manual_clock import ManualClock

RULES = ScalingPolicy(
    100, 1, 4, MetricKind.TOTAL, up=SCALE_UP, down=ScalingBehaviour(30, (RateLimit(RateUnit.PROCESSES, 1, 15),))
)


class Backlog:
    """Source that has what the test says, or fails as it says."""

    def __init__(self) -> None:
        """Begin without a backlog."""
        self.waiting = 0.0
        self.fault: Exception | None = None

    def read(self) -> float:
        """Return the backlog."""
        if self.fault is not None:
            raise self.fault
        return self.waiting


class Reader:
    """Runs calls when the test lets it."""

    def __init__(self) -> None:
        """Begin without delay."""
        self.is_slow = False
        self.asked: list[tuple[Future[float], Callable[[], float]]] = []

    def submit(self, call: Callable[[], float]) -> Future[float]:
        """Run the call, or keep it until :meth:`answer`."""
        self.asked.append((Future(), call))
        future = self.asked[-1][0]
        if not self.is_slow:
            self.answer()
        return future

    def answer(self) -> None:
        """Run the newest call."""
        future, call = self.asked[-1]
        try:
            future.set_result(call())
        except OSError as error:
            future.set_exception(error)


class Bench:
    """A scaler of processes that sleep, its clock and its metric."""

    def __init__(self) -> None:
        """Start the least number of processes."""
        self.clock, self.backlog, self.reader = ManualClock(), Backlog(), Reader()
        self.supervisor = Supervisor(
            (sys.executable, "-c", "import time; time.sleep(600)"), self.clock, lambda _: None, 30
        )
        self.scaler = Scaler(
            self.supervisor, RULES, self.backlog, clock_s=self.clock, submit=self.reader.submit, every_s=15
        )
        self.scaler.start()

    def next(self) -> ScalingStep | None:
        """Return the step 15 s later."""
        self.clock.move(15)
        return self.scaler.step()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Yield a scaler; its processes end with the test."""
    made = Bench()
    yield made
    made.supervisor.resize(0)
    made.clock.move(1_000)
    made.supervisor.close(lambda _: time.sleep(0.01))


def test_a_backlog_starts_processes_and_its_end_ends_them(bench: Bench) -> None:
    """One at a time, once the window of 30 s has passed."""
    bench.backlog.waiting = 1_000
    counts = []
    for number in range(8):
        bench.backlog.waiting = 1_000 if number < 2 else 0
        step = bench.next()
        assert step is not None
        counts.append(step.running)
    assert counts == [4, 4, 4, 3, 2, 1, 1, 1]


def test_nothing_is_read_before_its_time(bench: Bench) -> None:
    """Neither at the start nor between."""
    assert bench.scaler.step() is None
    bench.clock.move(14.9)
    assert bench.scaler.step() is None
    assert bench.reader.asked == []


def test_a_slow_metric_holds_up_no_restart(bench: Bench) -> None:
    """While it is awaited processes are looked after, and it is asked for once."""
    bench.reader.is_slow = True
    (pid,) = bench.supervisor.running
    assert bench.next() is None
    os.kill(pid, 9)
    give_up_s = time.monotonic() + 20
    while bench.supervisor.restarts == 0:
        assert time.monotonic() < give_up_s
        assert bench.next() is None
    assert len(bench.supervisor.running) == 1
    assert len(bench.reader.asked) == 1
    bench.backlog.waiting = 400
    bench.reader.answer()
    step = bench.scaler.step()
    assert step is not None
    assert (step.running, step.restarts) == (4, 1)


def test_without_a_metric_no_process_ends(bench: Bench) -> None:
    """The step says why there is none."""
    bench.backlog.waiting = 1_000
    bench.next()
    bench.backlog.fault = MetricUnavailableError("no broker answers")
    for _ in range(10):
        step = bench.next()
        assert step is not None
        assert (step.running, step.metric, step.fault) == (4, None, "no broker answers")
        assert step.decision.reason is Reason.NO_METRIC


def test_a_fault_of_the_source_is_not_swallowed(bench: Bench) -> None:
    """A fault of the source other than a missing metric ends the command."""
    bench.backlog.fault = ConnectionError("of our own")
    with pytest.raises(ConnectionError, match="of our own"):
        bench.next()


def test_the_account_has_the_last_decision(bench: Bench) -> None:
    """Before the first one there is the target alone; without a metric there is no sample of it."""
    account = ScalingAccount("lag", RULES)
    assert {sample.metric for sample in account.build_samples()} == {metrics.TARGET, metrics.DECISIONS}
    bench.backlog.waiting = 250
    for _ in range(2):
        step = bench.next()
        assert step is not None
        account.note_step(step)
    samples = list(account.build_samples())
    assert {sample.metric for sample in samples} == set(metrics.SCALING_METRICS)
    assert Sample(metrics.WANTED, ("lag",), 3) in samples
    assert Sample(metrics.METRIC, ("lag",), 250) in samples
    assert Sample(metrics.DECISIONS, ("lag", "metric"), 1) in samples
    assert Sample(metrics.DECISIONS, ("lag", "steady"), 1) in samples
    bench.backlog.fault = MetricUnavailableError("no broker answers")
    step = bench.next()
    assert step is not None
    account.note_step(step)
    assert metrics.METRIC not in {sample.metric for sample in account.build_samples()}
