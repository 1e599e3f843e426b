"""Tally of a tap: messages stamped and refused, logged at intervals and shown at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.values import SkipReason

REPORT_EVERY_S: Final = 10.0


@dataclass(slots=True)
class TapTally:
    """Number of stamped messages, and of bad ones by reason."""

    stamped: int = 0
    bad: Counter[SkipReason] = field(default_factory=Counter)
    repeated: int = 0
    """Drops beyond one per bad message: a message that may be of several windows counts in each of them."""
    reported: str = ""
    """Last logged line."""

    def summary(self, dropped: int) -> dict[str, object]:
        """Return the numbers for ``--json``; ``dropped`` are the drops of the probe, bad messages included."""
        return {"stamped": self.stamped, "bad": dict(sorted(self.bad.items())), "dropped": dropped - self.repeated}

    def __str__(self) -> str:
        """Return the tally in words."""
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.bad.items()))
        return f"{self.stamped:,} stamped, {self.bad.total():,} bad" + (f": {reasons}" if reasons else "")

    def report(self, around: RunContext) -> None:
        """Log the tally, unless it is unchanged."""
        if str(self) != self.reported:
            self.reported = str(self)
            around.report(self.reported)


class TallyReporter:
    """Reporter that logs a tally every ten seconds, if it has changed."""

    def __init__(self, tally: TapTally, around: RunContext) -> None:
        """Start the interval."""
        self._tally, self._context = tally, around
        self._reported_s = around.monotonic_s()
        self._start = str(tally)

    def report_if_due(self) -> None:
        """Log the tally if the interval is over."""
        now_s = self._context.monotonic_s()
        if now_s - self._reported_s < REPORT_EVERY_S:
            return
        self._reported_s = now_s
        if str(self._tally) != self._start:
            self._tally.report(self._context)
