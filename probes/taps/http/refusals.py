"""Refused observations: their maximum number, their node and their windows.

The client may not send them again, so they count as drops of their node: messages that the node is missing are unknown,
and never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.recorder import Refusals

WINDOWS_BACK: Final = 4
"""Windows, with the present one, that an observation without an event time may be of: by default a message is on its
way, and a window waits for it, for at most so long."""
MIN_OBSERVATION_BYTES: Final = 16
"""Minimum size of an observation in a body: id and event time do not fit into fewer bytes."""


class NodeName(NamedTuple):
    """Name of a node in a stream."""

    stream: str
    node: str


@dataclass(frozen=True, slots=True)
class RefusedObservations:
    """Refused observations; ``node`` is None if it could not be read, and may be any.

    ``windows`` counts them by window start in ms; ``untimed`` is the maximum number of further ones without a readable
    event time, None if it is unknown.
    """

    node: NodeName | None = None
    windows: Counter[int] = field(default_factory=Counter)
    untimed: int | None = 0
    is_record: bool = False
    """True if this may be a record of another probe."""

    def __bool__(self) -> bool:
        """Return whether anything was refused."""
        return bool(self.untimed is None or self.untimed or self.windows)

    def to_drops(self, cause: str, now_us: int) -> Refusals:
        """Convert to drops by (window start in ms, cause)."""
        drops = Refusals({(start_ms, cause): count for start_ms, count in self.windows.items()})
        untimed = 1 if self.untimed is None else self.untimed
        if untimed:
            this_ms = now_us // WINDOW_US * WINDOW_MS
            for start_ms in range(max(0, this_ms - (WINDOWS_BACK - 1) * WINDOW_MS), this_ms + 1, WINDOW_MS):
                drops[start_ms, cause] += untimed
        return drops


@dataclass(eq=False)
class RefusalProblem(HttpProblem):
    """Problem of a request with known content."""

    refused: RefusedObservations = field(default_factory=RefusedObservations)


def count_by_window(events_us: Iterable[int]) -> Counter[int]:
    """Count event times by window start in ms."""
    return Counter(event_us // WINDOW_US * WINDOW_MS for event_us in events_us)


def estimate_max_count(size_bytes: int) -> int:
    """Estimate the maximum number of observations in so many bytes."""
    return 1 + size_bytes // MIN_OBSERVATION_BYTES
