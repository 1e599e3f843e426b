"""Ledger of a probe's drops: what was dropped and is not reported yet, and the hole that uncounted drops need."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Final

from hopwatch.probes.backlog import UNRECORDABLE
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.drop_counts import DropCounts
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.recorder import BAD_EVENT_TIME, BAD_MESSAGE_ID, POSSIBLE_WINDOW, Refusals

HOLE_US: Final = 300_000_000
"""Length of a hole for drops in unknown windows: as far as windows may be ahead of the clock.

The end of a hole waits for so long, too, so that a probe that keeps losing count makes few holes. A monitor waits twice
as long for stamps of a silent instance.
"""
MAX_CAUSES: Final = 1_000
"""Causes of drops that are logged, at most; a host may pass a new one with each message."""
SINK_REFUSED: Final = "sink refused"
UNSENDABLE: Final = "unsendable"
UNDELIVERED: Final = "undelivered"

_CAUSE_HINTS: Final = {
    BAD_EVENT_TIME: "an event time is an aware datetime or int µs since 1970; strict=True raises at the call",
    BAD_MESSAGE_ID: "a message id is a UUID, 16 bytes, an int or a str; strict=True raises at the call",
    SINK_REFUSED: "its sink is full or cannot be written",
    UNDELIVERED: "its sink took them, and the transport then refused them for good",
    UNRECORDABLE: "a message id or an event time raised an error of its own; strict=True raises at the call",
}
_log = logging.getLogger("hopwatch.probe")


class DropLedger:
    """Drops of one probe instance, from any thread; ``through_us`` is always the last completed moment."""

    def __init__(self, instance: ProbeInstance, clock: Clock) -> None:
        """Start empty, without a hole."""
        self._instance, self._clock = instance, clock
        self._counts = DropCounts()
        # The end of the hole that the books need; and whether drops went uncounted since it was computed.
        self._hole_until_us, self._has_lost_count = 0, False
        self.total = 0
        """Number of all drops, reported or not."""
        self._examples: dict[str, str] = {}
        self._causes: set[str] = set()
        self._logged = OncePerCause()
        # Held for a few instructions only, by the host too.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """Return the number of unreported pairs of window and cause."""
        return len(self._counts)

    def leave_hole(self, through_us: int) -> None:
        """Ask for a hole up to now: observations of now are missing and cannot be counted."""
        with self._lock:
            # Behind what is completed, so that the next moment that is completed is behind a hole.
            self._hole_until_us = max(self._hole_until_us, through_us + 1, self._wall_us())

    def lose_count(self) -> None:
        """Ask for a hole: observations of unknown windows were dropped and not counted."""
        self._has_lost_count = True

    def drop(self, refusals: Mapping[tuple[int, str], int], through_us: int) -> None:
        """Count observations that will never be sent: numbers by (window start in ms, cause)."""
        with self._lock:
            try:
                self._count(refusals, through_us)
                self.total += sum(count for (_, cause), count in refusals.items() if cause != POSSIBLE_WINDOW)
                if len(self._causes) < MAX_CAUSES:
                    self._causes.update(cause for _, cause in refusals if cause != POSSIBLE_WINDOW)
                if isinstance(refusals, Refusals):
                    self._examples |= refusals.examples
            except Exception:  # noqa: BLE001 - memory may be short; what is not counted is a hole in the books
                self._has_lost_count = True

    def report_again(self, drops: Iterable[Drop], through_us: int) -> None:
        """Count drops whose report was lost; they were counted when they were dropped."""
        with self._lock:
            self._count({(drop.window_start_ms, drop.cause): drop.count for drop in drops}, through_us)

    def _count(self, drops: Mapping[tuple[int, str], int], through_us: int) -> None:
        """Add drops to the report; those without room count in the last completed window, where a hole begins."""
        if not self._counts.add(drops, max(through_us, self._instance.epoch_us) // WINDOW_US * WINDOW_MS):
            self._has_lost_count = True

    def find_hole_end_us(self, through_us: int) -> int:
        """Return the end of the hole that the books need; it begins at the last completed moment."""
        with self._lock:
            if self._has_lost_count:
                self._hole_until_us = max(through_us, self._instance.epoch_us, self._wall_us()) + HOLE_US
                self._has_lost_count = False
            return self._hole_until_us

    def next_drops(self) -> tuple[tuple[Drop, ...], bool]:
        """Return the drops for the next record, and whether these are all."""
        with self._lock:
            told = self._counts.next_drops()
            return told, len(told) == len(self._counts)

    def remove(self, told: Iterable[Drop]) -> None:
        """Subtract drops that were reported."""
        with self._lock:
            self._counts.remove(told)

    def log_causes(self, faults: Mapping[str, str | None]) -> None:
        """Log each cause of drops once, so that the service's log shows that something is wrong."""
        with self._lock:
            new = [cause for cause in sorted(self._causes) if self._logged.is_new(cause)]
        for cause in new:
            who, got = self._instance, f"; got {self._examples[cause]}" if cause in self._examples else ""
            why = faults.get(cause) or _CAUSE_HINTS.get(cause, cause)
            _log.warning("a probe of %s at %s drops observations: %s%s", who.stream, who.node, why, got)

    def _wall_us(self) -> int:
        return self._clock.wall_ns() // 1_000
