"""Windows that a message may be of whose span did not come: by the clock of the tap, and by how others lie to it.

Nobody has the event time of such a message. It was on its way for some time, its producer's clock may be ahead or
behind, and a consumer may work on a backlog. How far event times lie from the moment at which spans come says all of
this.
"""

from __future__ import annotations

from typing import Final

from hopwatch.probes.contract.limits import WINDOW_US

TRANSIT_US: Final = 150_000_000
"""Time that a message may be on its way, where nothing else is said of its stream: the default of a monitor."""
LATE_US: Final = 120_000_000
"""Time that a span may be on its way beside that, at least."""
MAX_WINDOWS: Final = 1_440
"""Windows that a missing message may be of, at most: where it may be of more, nobody knows."""
GENERATION_US: Final = 600_000_000
"""Time after which what was seen before counts no more, once the same time has passed again."""


class EventWindows:
    """Windows of one stream; not thread-safe."""

    def __init__(self, transit_us: int | None = None) -> None:
        """Start with a transit in µs, by default TRANSIT_US, and with nothing seen."""
        self._transit_us = TRANSIT_US if transit_us is None else transit_us
        # How far event times lie behind and ahead of the moments at which their spans came, now and before.
        self._now, self._before = (LATE_US, 0), (LATE_US, 0)
        self._since_us: int | None = None

    def note(self, event_us: int, now_us: int) -> None:
        """Note the event time of a message whose span came now."""
        if self._since_us is None or now_us - self._since_us > GENERATION_US:
            self._now, self._before, self._since_us = (LATE_US, 0), self._now, now_us
        self._now = max(self._now[0], now_us - event_us), max(self._now[1], event_us - now_us)

    def find(self, since_us: int, until_us: int) -> range | None:
        """Return the minutes that messages may be of whose spans a period misses; None if they are too many."""
        behind_us, ahead_us = (max(now, before) for now, before in zip(self._now, self._before, strict=True))
        first_us = since_us - behind_us - self._transit_us - WINDOW_US
        minutes = range(max(0, first_us // WINDOW_US + 1), (until_us + ahead_us) // WINDOW_US + 1)
        return minutes if len(minutes) <= MAX_WINDOWS else None
