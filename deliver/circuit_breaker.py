"""Circuit breaker of a receiver: it stops requests to one that fails, and probes it with single requests. Pure.

=========  ==========================================================================================
state      requests
=========  ==========================================================================================
closed     all; after ``failures`` failed ones in a row it opens
open       none, until the time that it opened for is over, or longer if the receiver asked for that
half open  one, the probe: when it succeeds the breaker closes, when it fails it opens for twice as long
=========  ==========================================================================================

A request is sent with a permit. A result counts only for the state that its permit was given in: a request that began
before the breaker opened neither closes it nor lengthens its time.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from hopwatch.deliver.policy import BreakerPolicy


class BreakerState(Enum):
    """States of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Permit(NamedTuple):
    """Permission for one request."""

    generation: int


class CircuitBreaker:
    """Circuit breaker; each call passes the time, in seconds of a clock that never goes back."""

    def __init__(self, policy: BreakerPolicy) -> None:
        """Begin closed."""
        self._policy = policy
        self._state = BreakerState.CLOSED
        self._generation = 0
        self._failures_in_a_row = 0
        self._open_s = policy.open_s
        self._opens_again_s = 0.0

    @property
    def state(self) -> BreakerState:
        """State after the last call."""
        return self._state

    def remaining_s(self, now_s: float) -> float | None:
        """Return the seconds until a permit may be had; 0 if there is one, None while a probe is under way."""
        if self._state is BreakerState.HALF_OPEN:
            return None
        return max(self._opens_again_s - now_s, 0.0) if self._state is BreakerState.OPEN else 0.0

    def acquire_permit(self, now_s: float) -> Permit | None:
        """Return a permit for one request, or None."""
        if self.remaining_s(now_s) != 0.0:
            return None
        if self._state is BreakerState.OPEN:
            self._enter(BreakerState.HALF_OPEN)
        return Permit(self._generation)

    def is_valid(self, permit: Permit) -> bool:
        """Return whether a request may still begin with a permit: the state is the one that it was given in."""
        return permit.generation == self._generation

    def record_success(self, permit: Permit) -> None:
        """Record that the receiver answered."""
        if not self.is_valid(permit):
            return
        self._failures_in_a_row = 0
        if self._state is BreakerState.HALF_OPEN:
            self._open_s = self._policy.open_s
            self._enter(BreakerState.CLOSED)

    def record_failure(self, permit: Permit, now_s: float, wait_s: float = 0.0) -> None:
        """Record that the receiver failed; ``wait_s`` is the wait that it asked for."""
        if not self.is_valid(permit):
            return
        self._failures_in_a_row += 1
        if self._state is BreakerState.HALF_OPEN:
            self._open_s = min(2 * self._open_s, self._policy.max_open_s)
        elif self._failures_in_a_row < self._policy.failures:
            return
        self._opens_again_s = now_s + max(self._open_s, wait_s)
        self._enter(BreakerState.OPEN)

    def return_permit(self, permit: Permit, now_s: float) -> None:
        """Take back a permit whose request was given up, which says nothing about the receiver."""
        if self.is_valid(permit) and self._state is BreakerState.HALF_OPEN:
            self._opens_again_s = now_s
            self._enter(BreakerState.OPEN)

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._generation += 1
        self._failures_in_a_row = 0
