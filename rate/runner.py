"""Run of a rating: steps are sent, received and judged until the search has ended, as often as it is repeated."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.rate.arrival_log import ArrivalLog
from hopwatch.rate.entrance import Entrance, StepLoad, StepSending
from hopwatch.rate.late_counter import LateCounter
from hopwatch.rate.message_ids import MAX_MESSAGES
from hopwatch.rate.point_log import PointLog
from hopwatch.rate.processor_use import ProcessorShares
from hopwatch.rate.processors import ProcessorMeter
from hopwatch.rate.receiver import RatingReceiver
from hopwatch.rate.results import RepeatResult, StepResult
from hopwatch.rate.saturation import RECEIVER, PointLag, Saturation, Side, find_saturation, measure_point
from hopwatch.rate.schedule import Arrivals, build_due_s, group_requests
from hopwatch.rate.search import SearchPlan, advance_search, start_search
from hopwatch.rate.step import (
    StepMeasurement,
    StepSize,
    StepState,
    count_bearable,
    judge_step,
    plan_step,
)
from hopwatch.rate.target import Target

LEAD_S: Final = 0.2
"""Time from the plan of a step to its first message."""
LOOK_S: Final = 0.05
OBSERVATIONS_S: Final = 4.0
"""Wait for the last observations: probes announce theirs within a second, a spool publishes them within another."""
HELLO_MESSAGES: Final = 10
HELLO_EVERY_S: Final = 1.0


class NothingArrivedError(Exception):
    """Messages were acknowledged, and none has arrived: the stream does not run, or ends elsewhere."""


@dataclass(frozen=True, slots=True)
class LoadShape:
    """Shape of the load beside its rate."""

    arrivals: Arrivals
    batch: int
    linger_s: float
    patience_s: float
    """Time without an arrival after which what is missing counts as lost."""


@dataclass(slots=True)
class RatingParts:
    """Parts of a run; ``report`` takes a line for a person, ``tick`` is called a few times a second."""

    entrance: Entrance
    receiver: RatingReceiver
    arrivals: ArrivalLog
    meter: ProcessorMeter
    target: Target
    shape: LoadShape
    points: PointLog
    nodes: Sequence[str]
    stop: Event
    deadline_s: float
    """End of the time that the run has, on the monotonic clock."""
    random: np.random.Generator
    report_step: Callable[[StepResult], object]
    report_progress: Callable[[float, float, float], object]
    """Takes the rate of a step, the seconds that have passed of it, and its length in seconds."""
    tick: Callable[[], object] = field(default=lambda: None)


class RatingRun:
    """Runs steps over the parts, one after the other."""

    def __init__(self, parts: RatingParts) -> None:
        """Take the parts."""
        self._parts = parts
        self._next = 0
        self._measured: list[tuple[StepMeasurement, int]] = []

    @property
    def is_out_of_time(self) -> bool:
        """Mark of a run whose time is over."""
        return time.monotonic() >= self._parts.deadline_s

    async def await_stream(self, patience_s: float) -> None:
        """Send a few messages a second until one arrives, and wait for the others.

        Raises:
            NothingArrivedError: none has arrived in time.
            EntranceError: the entrance refuses them for good.
            ReceiverError: the receiver does not receive any more.
        """
        give_up_s, refusals = time.monotonic() + patience_s, dict[str, int]()
        while not self._parts.stop.is_set():
            size = StepSize(0, HELLO_MESSAGES)
            sending, _ = await self._send(self._plan_load(HELLO_MESSAGES / HELLO_EVERY_S, size), size)
            refusals = refusals | sending.refusals
            if await self._drain(HELLO_MESSAGES, 1.0):
                return
            if time.monotonic() > give_up_s:
                why = f", the last answers were {', '.join(refusals)}" if refusals else ""
                raise NothingArrivedError(
                    f"no message has arrived within {patience_s:g} s{why}: see that the nodes of the stream run, that "
                    "they pass on the header hopwatch-id, and that the receiver is at the end of the stream"
                )

    async def search(self, plan: SearchPlan) -> RepeatResult:
        """Search for the rating, until it is found, the time is over, or the run is stopped.

        Raises:
            EntranceError: the entrance refuses the events for good.
            ReceiverError: the receiver does not receive any more.
        """
        state, steps = start_search(plan), list[StepResult]()
        while state.end is None:
            size = plan_step(state.next_per_s, self._parts.target, state.stretch)
            step = await self._run_step(state.next_per_s, size)
            if step is None:
                break
            steps.append(step)
            state = advance_search(plan, state, step.verdict.state)
        return RepeatResult(tuple(steps), state.held_per_s, state.end)

    async def hold(self, rates_per_s: Sequence[float], seconds: float) -> RepeatResult:
        """Hold each rate for so long, and judge it.

        Raises:
            EntranceError: the entrance refuses the events for good.
            ReceiverError: the receiver does not receive any more.
        """
        steps = []
        for rate_per_s in rates_per_s:
            needed = plan_step(rate_per_s, self._parts.target)
            size = replace_measured(needed, max(needed.measured, math.ceil(rate_per_s * seconds)))
            if (step := await self._run_step(rate_per_s, size)) is None:
                break
            steps.append(step)
        return RepeatResult(tuple(steps), None, None)

    async def find_points(self, repeats: Sequence[RepeatResult], first_step: int) -> list[RepeatResult]:
        """Add to the steps what the stream's own observations say of them; ``first_step`` is the number of the first.

        Raises:
            ReceiverError: the receiver does not receive any more.
        """
        await self._pause(OBSERVATIONS_S)
        found, number = [], first_step
        for repeat in repeats:
            steps = []
            for step in repeat.steps:
                points = [measure_point(one) for one in self._list_points(number)]
                steps.append(replace(step, points=tuple(points)))
                number += 1
            found.append(replace(repeat, steps=tuple(steps)))
        return found

    @property
    def steps(self) -> int:
        """The number of the steps that were measured."""
        return len(self._measured)

    def _list_points(self, number: int) -> list[PointLag]:
        measured, place = self._measured[number]
        is_there = np.isfinite(measured.lags_s)
        end = PointLag(RECEIVER, Side.IN, measured.due_s[is_there], measured.lags_s[is_there])
        return [*self._parts.points.get_points(place, self._parts.nodes), end]

    async def _run_step(self, rate_per_s: float, size: StepSize) -> StepResult | None:
        """Run and judge a step; None if there is no time for it, or it was stopped."""
        left_s, expected_s = self._parts.deadline_s - time.monotonic(), (size.warm_up + size.measured - 1) / rate_per_s
        # Before it is planned: a step of days has more messages than the memory holds.
        if self._parts.stop.is_set() or expected_s > left_s:
            return None
        load = self._plan_load(rate_per_s, size)
        if float(load.sent_s[-1]) > left_s:
            return None
        place = self._parts.points.begin_step(load.first, load.begun_us, size.warm_up, size.measured)
        self._parts.meter.begin()
        sending, is_hopeless = await self._send(load, size)
        shares, backlog = self._parts.meter.end(), self._count_backlog(load, sending)
        await self._drain(int(load.starts[sending.sent_requests]), self._parts.shape.patience_s)
        if self._parts.stop.is_set():
            return None
        measured = self._build_measurement(rate_per_s, load, size, sending, is_cut_short=is_hopeless)
        self._measured.append((measured, place))
        step = self._judge(measured, load, size, sending, backlog, shares)
        self._parts.report_step(step)
        return step

    def _plan_load(self, rate_per_s: float, size: StepSize) -> StepLoad:
        shape, count = self._parts.shape, size.warm_up + size.measured
        if self._next + count > MAX_MESSAGES:
            raise OverflowError(f"a run has {MAX_MESSAGES:,} messages at most")
        due_s = build_due_s(rate_per_s, count, shape.arrivals, self._parts.random)
        starts, sent_s = group_requests(due_s, shape.batch, shape.linger_s)
        first, self._next = self._next, self._next + count
        begun_s, begun_us = time.monotonic() + LEAD_S, time.time_ns() // 1_000 + round(LEAD_S * 1e6)
        return StepLoad(first, begun_s, begun_us, due_s, starts, sent_s)

    async def _send(self, load: StepLoad, size: StepSize) -> tuple[StepSending, bool]:
        """Send a step; return what became of it, and whether it was ended early as hopeless."""
        parts, is_hopeless = self._parts, [False]
        length_s = float(load.sent_s[-1])
        rate_per_s = load.due_s.size / max(length_s, 1e-9)
        late = [(LateCounter(load.due_s[size.warm_up :], one.limit_s), one) for one in parts.target.lags]

        def read_arrivals(start: int, stop: int) -> NDArray[np.float64]:
            return parts.arrivals.copy_arrivals(size.warm_up + start, size.warm_up + stop) - load.begun_s

        def is_over(passed_s: float) -> bool:
            parts.receiver.check()
            parts.tick()
            is_hopeless[0] = any(
                counter.count_late(passed_s, read_arrivals) > count_bearable(one, size.measured)
                for counter, one in late
            )
            return is_hopeless[0] or parts.stop.is_set()

        parts.arrivals.begin_step(load.first, load.due_s.size)
        sending = await parts.entrance.send_step(
            load, is_over, lambda passed_s: parts.report_progress(rate_per_s, passed_s, length_s)
        )
        return sending, is_hopeless[0]

    def _count_backlog(self, load: StepLoad, sending: StepSending) -> int:
        return int(load.starts[sending.sent_requests]) - self._parts.arrivals.count_arrived()

    async def _drain(self, count: int, patience_s: float) -> bool:
        """Wait until so many messages have arrived, or none has for so long; return whether any has."""
        arrivals, stop = self._parts.arrivals, self._parts.stop
        arrived, since_s = arrivals.count_arrived(), time.monotonic()
        while arrived < count and not stop.is_set() and time.monotonic() - since_s < patience_s:
            await self._pause(LOOK_S)
            if (now := arrivals.count_arrived()) > arrived:
                arrived, since_s = now, time.monotonic()
        return arrived > 0

    async def _pause(self, seconds: float) -> None:
        self._parts.receiver.check()
        self._parts.tick()
        await asyncio.sleep(seconds)

    def _build_measurement(
        self, rate_per_s: float, load: StepLoad, size: StepSize, sending: StepSending, *, is_cut_short: bool
    ) -> StepMeasurement:
        """Build the measurement of what was sent behind the warm-up."""
        kept = slice(size.warm_up, int(load.starts[sending.sent_requests]))
        arrived_s = self._parts.arrivals.copy_arrivals()[kept] - load.begun_s
        is_measured = load.starts[:-1] >= size.warm_up
        is_measured[sending.sent_requests :] = False
        due_s, lateness_s = load.due_s[kept], sending.lateness_s[is_measured]
        return StepMeasurement(
            rate_per_s, due_s, arrived_s - due_s, sending.is_accepted[kept], lateness_s, is_cut_short
        )

    def _judge(  # noqa: PLR0913, PLR0917 - what a step consists of
        self,
        measured: StepMeasurement,
        load: StepLoad,
        size: StepSize,
        sending: StepSending,
        backlog: int,
        shares: ProcessorShares,
    ) -> StepResult:
        span_s = float(measured.due_s[-1] - measured.due_s[0]) if measured.due_s.size else 0.0
        answered = sending.round_trip_s[np.isfinite(sending.round_trip_s)]
        return StepResult(
            measured.rate_per_s,
            (measured.due_s.size - 1) / span_s if span_s else 0.0,
            measured.due_s.size,
            float(load.due_s[min(size.warm_up, load.due_s.size - 1)]),
            span_s,
            judge_step(measured, self._parts.target),
            backlog,
            self._parts.arrivals.repeats,
            float(np.quantile(answered, 0.95)) if answered.size else None,
            sending.refusals,
            shares,
        )


def replace_measured(size: StepSize, measured: int) -> StepSize:
    """Return a size with another number of measured messages."""
    return size._replace(measured=measured)


def find_run_saturation(repeats: Sequence[RepeatResult]) -> Saturation | None:
    """Find what saturates by the lowest rate that failed; None if none did."""
    failed = [step for one in repeats for step in one.steps if step.verdict.state is StepState.FAILS]
    if not failed:
        return None
    lowest = min(failed, key=lambda step: step.rate_per_s)
    return find_saturation(lowest.points, lowest.shares.by_name)
