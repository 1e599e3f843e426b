"""What was refused: how many observations at most, of which node, of which minutes.

Whoever stamped them may not send them again. So they count as drops of their node, and what the node is missing is
unknown, and never lost.
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
"""What has no event time may be of now, or of one of the minutes before: so long is a message on its way at most, and
as long as a window may wait for it, by default."""
MIN_OBSERVATION_BYTES: Final = 16
"""A body has at most one observation in so many bytes: an id and an event time in fewer say nothing."""


class NodeName(NamedTuple):
    """A node of a stream."""

    stream: str
    node: str


@dataclass(frozen=True, slots=True)
class RefusedObservations:
    """Observations that were refused; ``node`` is None where it could not be read, and may be any.

    ``windows`` says how many are of which minute, by its start in ms; ``untimed`` is how many there are besides, whose
    event time could not be read, at most; None where nobody can say.
    """

    node: NodeName | None = None
    windows: Counter[int] = field(default_factory=Counter)
    untimed: int | None = 0
    is_record: bool = False
    """Whether it may be a record of another probe."""

    def __bool__(self) -> bool:
        """Return whether anything was refused."""
        return bool(self.untimed is None or self.untimed or self.windows)

    def to_drops(self, cause: str, now_us: int) -> Refusals:
        """Return it as drops, by (window start in ms, cause)."""
        drops = Refusals({(start_ms, cause): count for start_ms, count in self.windows.items()})
        untimed = 1 if self.untimed is None else self.untimed
        if untimed:
            this_ms = now_us // WINDOW_US * WINDOW_MS
            for start_ms in range(max(0, this_ms - (WINDOWS_BACK - 1) * WINDOW_MS), this_ms + 1, WINDOW_MS):
                drops[start_ms, cause] += untimed
        return drops


@dataclass(eq=False)
class RefusalProblem(HttpProblem):
    """Ends a request of which it is known what was in it."""

    refused: RefusedObservations = field(default_factory=RefusedObservations)


def count_by_window(events_us: Iterable[int]) -> Counter[int]:
    """Return how many event times are of which minute."""
    return Counter(event_us // WINDOW_US * WINDOW_MS for event_us in events_us)


def estimate_max_count(size_bytes: int) -> int:
    """Return how many observations so many bytes may hold."""
    return 1 + size_bytes // MIN_OBSERVATION_BYTES
