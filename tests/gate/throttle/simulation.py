"""Simulation of a gate, a topic and consumers that are too slow, in steps of a tenth of a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from hopwatch.gate.throttle.queue_wait import GroupOffsets
from hopwatch.gate.throttle.stream_throttle import StreamThrottle
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.testing import ManualClock

STEP_S: Final = 0.1
LOOK_EVERY_STEPS: Final = 10


class SimulatedRun(NamedTuple):
    """Waits in s of all messages in the order in which they were consumed, and counts."""

    waits_s: np.ndarray
    consumed: int
    refused: int


def simulate(
    target_s: float,
    *,
    offered_per_s: Callable[[float], float],
    consumed_per_s: Callable[[float], float],
    commit_every_s: float,
    duration_s: float,
    gates: int = 1,
    is_throttled: bool = True,
    is_dry_run: bool = False,
) -> SimulatedRun:
    """Return what becomes of messages that are offered and consumed at such rates."""
    clock = ManualClock()
    throttles = [StreamThrottle("orders", target_s, clock, is_dry_run=is_dry_run) for _ in range(gates)]
    arrived_s: list[float] = []
    waits_s: list[float] = []
    committed = refused = 0
    offered, taken = 0.0, 0.0
    for step in range(int(duration_s / STEP_S)):
        now_s = step * STEP_S
        clock.advance(STEP_S)
        offered += offered_per_s(now_s) * STEP_S
        for one in range(int(offered)):
            try:
                if is_throttled:
                    throttles[one % gates].admit(1)
                arrived_s.append(now_s)
            except HttpProblem:
                refused += 1
        offered -= int(offered)
        taken = min(taken + consumed_per_s(now_s) * STEP_S, float(len(arrived_s)))
        waits_s += [now_s - at_s for at_s in arrived_s[len(waits_s) : int(taken)]]
        if step % max(int(commit_every_s / STEP_S), 1) == 0:
            committed = int(taken)
        if step % LOOK_EVERY_STEPS == 0:
            for throttle in throttles:
                throttle.observe(split_offsets(len(arrived_s), committed))
    return SimulatedRun(np.array(waits_s), int(taken), refused)


def split_offsets(end: int, committed: int, partitions: Sequence[int] = (0, 1)) -> GroupOffsets:
    """Return the offsets of a topic into whose partitions messages go in turn."""
    count = len(partitions)
    return GroupOffsets(
        {one: (end + count - 1 - one) // count for one in partitions},
        {one: (committed + count - 1 - one) // count for one in partitions},
    )
