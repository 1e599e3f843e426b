"""Life of a window: open, provisional, final, amendable and forgotten, on the clock of arrival times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopwatch.monitor.kernel.books import IMPLAUSIBLE, IN_WINDOW, TOO_LATE
from hopwatch.monitor.results import Status
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US

AHEAD_US: Final = 300_000_000
"""Time that a batch's window may start after its arrival at most."""

STRAGGLING_US: Final = 60_000_000
"""Time that a window is kept after its amendments end, for records read out of order."""


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """Time limits of a stream's windows, µs."""

    transit_us: int
    settle_us: int
    amend_for_us: int
    max_age_us: int

    def final_at_us(self, start_us: int) -> int:
        """Return when a window that starts at ``start_us`` is judged for the first time."""
        return start_us + WINDOW_US + self.transit_us + self.settle_us

    def amendable_until_us(self, start_us: int) -> int:
        """Return the last arrival that can still change the window."""
        return self.final_at_us(start_us) + self.amend_for_us

    def waits_until_us(self, start_us: int) -> int:
        """Return the latest moment until which a message of the window may wait and still be judged."""
        return self.amendable_until_us(start_us) - self.settle_us

    def kept_until_us(self, start_us: int) -> int:
        """Return how long the window is kept, unless something of it is in flight for longer."""
        return self.amendable_until_us(start_us) + STRAGGLING_US

    def judged_until_us(self, start_us: int) -> int:
        """Return the last moment at which the window may be judged again: what came last is in flight for so long."""
        return self.kept_until_us(start_us) + self.transit_us + self.settle_us

    def horizon_us(self, start_us: int, last_first_sighting_us: int) -> int:
        """Return the moment up to which probes must have reported for the window to be judged."""
        return max(start_us + WINDOW_US, last_first_sighting_us) + self.transit_us

    def settled_before_us(self, watermark_us: int) -> int:
        """Return the first sighting from which on a message is in flight, the watermark being where it is."""
        return watermark_us - self.transit_us - self.settle_us + 1

    def settled_at_us(self, start_us: int, last_first_sighting_us: int) -> int:
        """Return when nothing of the window is in flight any more: its horizon and settle have passed."""
        return self.horizon_us(start_us, last_first_sighting_us) + self.settle_us

    def status(self, start_us: int, watermark_us: int) -> Status:
        """Return where the window stands, revisions apart."""
        if watermark_us < start_us + WINDOW_US:
            return Status.OPEN
        return Status.PROVISIONAL if watermark_us < self.final_at_us(start_us) else Status.FINAL

    def is_plausible(self, window_start_ms: int, arrival_us: int) -> bool:
        """Return whether a batch that arrived then may speak of this window at all."""
        start_us = window_start_ms * 1_000
        return start_us <= arrival_us + AHEAD_US and start_us + WINDOW_US >= arrival_us - self.max_age_us

    def is_early(self, window_start_ms: int, arrival_us: int) -> bool:
        """Return whether a batch came implausibly early, but a copy of it could come when its window is plausible."""
        return AHEAD_US < window_start_ms * 1_000 - arrival_us <= self.max_age_us

    def standing(self, window_start_ms: int, arrival_us: int) -> int:
        """Return IN_WINDOW, TOO_LATE or IMPLAUSIBLE for a batch, by its own arrival alone."""
        if not self.is_plausible(window_start_ms, arrival_us):
            return IMPLAUSIBLE
        return TOO_LATE if arrival_us > self.amendable_until_us(window_start_ms * 1_000) else IN_WINDOW


def window_starts(first_start_ms: int, last_start_ms: int) -> range:
    """Return the starts of all windows from the first to the last, gaps included, in ms."""
    return range(first_start_ms, last_start_ms + WINDOW_MS, WINDOW_MS)
