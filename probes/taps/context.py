"""Runtime context of a tap: clock, stop event, log callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from hopwatch.probes.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class RunContext:
    """Runtime context: ``report`` takes a log line for the operator; ``stop`` is set to end the tap."""

    report: Callable[[str], None]
    clock: Clock = field(default_factory=SystemClock)
    stop: Event = field(default_factory=Event)

    def wall_us(self) -> int:
        """Return the time of day, µs since 1970."""
        return self.clock.wall_ns() // 1_000

    def monotonic_s(self) -> float:
        """Return a time that never goes back."""
        return self.clock.monotonic_ns() / 1e9
