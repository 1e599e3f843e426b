"""What a tap has done so far, in numbers: for people at intervals, for programs at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.values import SkipReason

REPORT_EVERY_S: Final = 10.0


@dataclass(slots=True)
class TapTally:
    """Messages stamped, and those that could not be, by reason."""

    stamped: int = 0
    bad: Counter[SkipReason] = field(default_factory=Counter)
    repeated: int = 0
    """Drops besides one for each bad message: those that may be of several minutes count in each of them."""
    reported: str = ""
    """What was told of it last."""

    def summary(self, dropped: int) -> dict[str, object]:
        """Return it as ``--json`` shows it; ``dropped`` is what the probe had to drop, bad messages included."""
        return {"stamped": self.stamped, "bad": dict(sorted(self.bad.items())), "dropped": dropped - self.repeated}

    def __str__(self) -> str:
        """Return it in words."""
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.bad.items()))
        return f"{self.stamped:,} stamped, {self.bad.total():,} bad" + (f": {reasons}" if reasons else "")

    def report(self, around: RunContext) -> None:
        """Tell it in words, unless that was done."""
        if str(self) != self.reported:
            self.reported = str(self)
            around.report(self.reported)


class TallyReporter:
    """Tells the tally every ten seconds, when it has changed."""

    def __init__(self, tally: TapTally, around: RunContext) -> None:
        """Begin to count the seconds."""
        self._tally, self._context = tally, around
        self._reported_s = around.monotonic_s()
        self._start = str(tally)

    def report_if_due(self) -> None:
        """Tell what is due."""
        now_s = self._context.monotonic_s()
        if now_s - self._reported_s < REPORT_EVERY_S:
            return
        self._reported_s = now_s
        if str(self._tally) != self._start:
            self._tally.report(self._context)
