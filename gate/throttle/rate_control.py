"""Rate that a throttle admits: that at which messages leave the queue, more or less as they wait too short or too long.

A queue integrates what enters and what leaves, so that a limit in proportion to the distance from the wanted wait leads
there without a swing, as long as the wait is known within a fraction of the target. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hopwatch.gate.throttle.queue_wait import QueueFigures

WANTED_RATIO: Final = 0.5
"""Part of the target that messages are to wait: never so short that consumers idle, and far from the target."""
MIN_RATIO: Final = 0.1
"""Part of the rate at which messages leave that is admitted at the least."""
MIN_LIMIT_PER_S: Final = 1.0
"""Limit at the least: a consumer that is back is noticed by what it gets."""
LIFT_AFTER_S: Final = 60.0
"""Time without a refusal, and with short waits, after which a limit is lifted."""


class Admission(NamedTuple):
    """Work of a gate: events a second that it admitted, and events that it refused since the last step."""

    admitted_per_s: float
    refused: int


class RateControl:
    """Limit of events a second; None while nothing is limited."""

    def __init__(self, target_s: float) -> None:
        """Keep waits under a target."""
        self._target_s = target_s
        self._quiet_since_s = 0.0
        self.limit_per_s: float | None = None

    def step(self, now_s: float, queue: QueueFigures, admission: Admission) -> None:
        """Change the limit by the figures of the queue, and by what this gate admitted.

        A gate answers for its share of what enters the queue, so that several gates need not know of each other.
        """
        missed = WANTED_RATIO - queue.wait_s / self._target_s
        if admission.refused or missed < 0:
            self._quiet_since_s = now_s
        if self.limit_per_s is None and missed >= 0:
            return
        if now_s - self._quiet_since_s > LIFT_AFTER_S:
            self.limit_per_s = None
            return
        share = min(admission.admitted_per_s / queue.entered_per_s, 1.0) if queue.entered_per_s else 1.0
        if queue.left_per_s is not None or missed < 0:
            left = share * (queue.left_per_s or 0.0)
            self.limit_per_s = max(left * max(1 + missed, MIN_RATIO), MIN_LIMIT_PER_S)

    def lift(self) -> None:
        """Limit nothing any more."""
        self.limit_per_s = None
