"""Messages with unreadable event times, and the windows that they may be of.

A tap may be hours behind, so the present time does not help; the messages before and after them do. Messages are on
their way for up to some minutes, so nearby windows count, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.values import SkipReason

WINDOWS_APART: Final = 3
"""Maximum distance of a message from its neighbours, in windows: by default it is on its way for at most so long."""
MAX_WINDOWS_APART: Final = 1_440
"""Maximum distance of two neighbours, a day: beyond it the windows between them are left out."""


class MissedMessages(NamedTuple):
    """Number of messages that may be of a window, with its start in µs since 1970."""

    reason: SkipReason
    number: int
    window_start_us: int


class UntimedMessages:
    """Estimator of windows from neighbouring messages."""

    def __init__(self) -> None:
        """Start with none."""
        self._before_us: int | None = None
        self._new: Counter[SkipReason] = Counter()
        # Messages reported by the windows before them, without a good message after them yet.
        self._reported: Counter[SkipReason] = Counter()

    def add_bad(self, reason: SkipReason, count: int) -> None:
        """Add messages without an event time."""
        self._new[reason] += count

    def add_good(self, event_us: int) -> Iterator[MissedMessages]:
        """Add a good message, and yield the windows of the bad ones before it."""
        if self._new or self._reported:
            minutes = _windows_between(self._before_us, event_us)
            yield from _spread(self._new, minutes)
            yield from _spread(self._reported, minutes - _near_windows(self._before_us))
            self._new.clear()
            self._reported.clear()
        self._before_us = event_us

    def flush(self, now_us: int) -> Iterator[MissedMessages]:
        """Yield the windows of bad messages without a good one after them; they may be of now."""
        this = now_us // WINDOW_US
        yield from _spread(self._new, _near_windows(self._before_us) | set(range(this - WINDOWS_APART, this + 1)))
        self._reported += self._new
        self._new.clear()


def _spread(bad: Counter[SkipReason], minutes: set[int]) -> Iterator[MissedMessages]:
    for minute in sorted(minute for minute in minutes if minute >= 0):
        yield from (MissedMessages(reason, count, minute * WINDOW_US) for reason, count in bad.items())


def _near_windows(event_us: int | None) -> set[int]:
    if event_us is None:
        return set()
    minute = event_us // WINDOW_US
    return set(range(minute - WINDOWS_APART, minute + WINDOWS_APART + 1))


def _windows_between(before_us: int | None, behind_us: int) -> set[int]:
    found = _near_windows(before_us) | _near_windows(behind_us)
    return set(range(min(found), max(found) + 1)) if max(found) - min(found) <= MAX_WINDOWS_APART else found
