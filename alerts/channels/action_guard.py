"""Guard of an action: how often it may be done in a span, so that one that flaps is switched off and told."""

from __future__ import annotations

from collections import deque

from hopwatch.alerts.channels.channel import Failure
from hopwatch.monitor.settings.durations import format_duration_us


class ActionGuard:
    """Guard of one action, since the start of the monitor."""

    def __init__(self, most: int, within_us: int) -> None:
        """Let it be done so often within a span."""
        self._most, self._within_us = most, within_us
        self._done_us: deque[int] = deque()

    def check(self, now_us: int) -> Failure | None:
        """Return why it may not be done now, for good, or None if it may; ``now_us`` is the wall clock."""
        while self._done_us and self._done_us[0] <= now_us - self._within_us:
            self._done_us.popleft()
        if len(self._done_us) < self._most:
            return None
        span = format_duration_us(self._within_us)
        return Failure(
            f"it was not done: most = {self._most} within {span} is reached, and it is left to a person",
            is_for_good=True,
        )

    def note(self, now_us: int) -> None:
        """Count that it was done."""
        self._done_us.append(now_us)
