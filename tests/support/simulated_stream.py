"""Streams of known capacity for tests of the rating, and the search for their ratings without a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hopwatch.rate.schedule import Arrivals, build_due_s
from hopwatch.rate.search import SearchPlan, SearchState, advance_search, start_search
from hopwatch.rate.step import StepMeasurement, StepSize, judge_step, plan_step
from hopwatch.rate.target import Target

MAX_STEPS: Final = 200


@dataclass(frozen=True)
class SimulatedStream:
    """One server with a queue: it takes 1/``capacity_per_s`` for each message, and passes it on ``delay_s`` later.

    ``loss_ratio`` of its messages do not arrive; its sender sends no more than ``sender_per_s``.
    """

    capacity_per_s: float
    delay_s: float = 0.0
    loss_ratio: float = 0.0
    sender_per_s: float = float("inf")
    arrivals: Arrivals = Arrivals.CONSTANT

    def measure(self, rate_per_s: float, size: StepSize, random: np.random.Generator) -> StepMeasurement:
        """Return what a step would measure."""
        count = size.warm_up + size.measured
        due_s = build_due_s(rate_per_s, count, self.arrivals, random)
        sent_s = np.maximum(due_s, np.arange(count) / self.sender_per_s)
        served_s = np.arange(count) / self.capacity_per_s
        left_s = np.maximum.accumulate(sent_s - served_s) + served_s + 1 / self.capacity_per_s
        lags_s = np.where(random.random(count) < self.loss_ratio, np.inf, left_s + self.delay_s - due_s)
        kept = slice(size.warm_up, None)
        return StepMeasurement(
            rate_per_s, due_s[kept], lags_s[kept], np.ones(size.measured, bool), (sent_s - due_s)[kept]
        )


def search(stream: SimulatedStream, plan: SearchPlan, target: Target, seed: int = 0) -> tuple[SearchState, int]:
    """Return the end of the search, and the number of its steps."""
    random, state, steps = np.random.default_rng(seed), start_search(plan), 0
    while state.end is None:
        steps += 1
        if steps > MAX_STEPS:
            raise AssertionError(f"the search goes on: {state}")
        size = plan_step(state.next_per_s, target, state.stretch)
        state = advance_search(plan, state, judge_step(stream.measure(state.next_per_s, size, random), target).state)
    return state, steps
