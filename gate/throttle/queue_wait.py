"""Wait of messages in a topic, by the offsets of its ends and of a consumer group alone. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

PHANTOM_OFFSETS: Final = 1
"""Offsets of a partition that no message need have: a transaction ends with one, which no consumer commits."""

MAX_LOOKS: Final = 300
"""Looks of a history, however long it is; a wait is known as precisely as they are apart."""

Value = TypeVar("Value")


class GroupOffsets(NamedTuple):
    """Offsets of a topic at one moment, by partition: its ends, and what a consumer group has committed."""

    ends: Mapping[int, int]
    committed: Mapping[int, int]


class QueueFigures(NamedTuple):
    """Figures of a queue: the wait of a message that enters now, and messages a second that enter it and leave it.

    ``left_per_s`` is None while nothing has been committed since messages began to wait.
    """

    wait_s: float
    entered_per_s: float
    left_per_s: float | None


class QueueWait:
    """History of a topic's offsets, from which waits and rates are read."""

    def __init__(self, memory_s: float, rate_span_s: float) -> None:
        """Remember so long; the wait of the oldest message is told as at least that. Rates are of ``rate_span_s``."""
        self._memory_s, self._rate_span_s = memory_s, rate_span_s
        self._looks: deque[tuple[float, GroupOffsets]] = deque()
        self._recent: deque[tuple[float, GroupOffsets]] = deque()
        self._commits: deque[tuple[float, int]] = deque()

    def observe(self, now_s: float, offsets: GroupOffsets) -> QueueFigures:
        """Add a look at the offsets, and return the figures.

        The wait is the longer of two: how long the oldest message has waited, and how long all that wait take at the
        rate at which they leave. The first is short when many messages have just come, the second is not known when
        none leaves.
        """
        self._remember(now_s, offsets)
        first_s, first = self._recent[0]
        entered = _sum_growth(first.ends, offsets.ends) / (now_s - first_s) if now_s > first_s else 0.0
        waits = [
            max(end - offsets.committed[partition], 0)
            for partition, end in offsets.ends.items()
            if offsets.committed.get(partition, -1) >= 0
        ]
        left = self._measure_commits(now_s, offsets, is_idle=max(waits, default=0) <= PHANTOM_OFFSETS)
        oldest_s = max((self._find_oldest_s(now_s, partition, offsets) for partition in offsets.ends), default=0.0)
        return QueueFigures(max(oldest_s, sum(waits) / left if left and oldest_s else 0.0), entered, left)

    def _remember(self, now_s: float, offsets: GroupOffsets) -> None:
        """Add a look to the history of rates, and to that of waits, which has so many looks at most."""
        if self._recent and any(offsets.ends.get(one, 0) < end for one, end in self._recent[-1][1].ends.items()):
            # The topic was made again: nothing that was seen of the old one is true of it.
            for history in (self._looks, self._recent, self._commits):
                history.clear()
        self._recent.append((now_s, offsets))
        while self._recent[0][0] < now_s - self._rate_span_s:
            self._recent.popleft()
        if len(self._looks) > 1 and self._looks[-1][0] - self._looks[-2][0] < self._memory_s / MAX_LOOKS:
            self._looks.pop()
        self._looks.append((now_s, offsets))
        trim_history(self._looks, now_s - self._memory_s)

    def _measure_commits(self, now_s: float, offsets: GroupOffsets, *, is_idle: bool) -> float | None:
        """Return the rate of commits while messages wait, from commit to commit; None before the second."""
        committed = sum(offset for offset in offsets.committed.values() if offset >= 0)
        if is_idle or (self._commits and committed < self._commits[-1][1]):
            self._commits.clear()
        if not self._commits or committed > self._commits[-1][1]:
            self._commits.append((now_s, committed))
        trim_history(self._commits, now_s - self._rate_span_s)
        (first_s, first), (last_s, last) = self._commits[0], self._commits[-1]
        # Since the last commit as much time may have passed as between two; after more, it takes longer.
        span_s = max(last_s - first_s, now_s - last_s)
        return (last - first) / span_s if last > first else None

    def _find_oldest_s(self, now_s: float, partition: int, offsets: GroupOffsets) -> float:
        """Return how long the oldest message of a partition waits: since the topic ended where its consumer is."""
        at, end = offsets.committed.get(partition, -1), offsets.ends[partition]
        if at < 0 or end - at <= PHANTOM_OFFSETS:
            return 0.0
        before_s, before = self._looks[0][0], at
        for looked_s, look in self._looks:
            found = look.ends.get(partition, at)
            if found > at:
                passed_s = (looked_s - before_s) * (at - before) / (found - before) if found > before else 0.0
                return now_s - before_s - passed_s
            before_s, before = looked_s, found
        return 0.0


def trim_history(history: deque[tuple[float, Value]], from_s: float) -> None:
    """Drop what is older than the last entry before a moment, so that the span from there on stays known."""
    while len(history) > 2 and history[1][0] <= from_s:  # noqa: PLR2004 - the two ends of a span
        history.popleft()


def _sum_growth(old: Mapping[int, int], new: Mapping[int, int]) -> int:
    return sum(max(offset - old[partition], 0) for partition, offset in new.items() if partition in old)
