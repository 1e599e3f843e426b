"""Tally of a tap: messages stamped and refused, logged at intervals and shown at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.documents import RecordKind
from hopwatch.probes.values import SkipReason

REPORT_EVERY_S: Final = 10.0


@dataclass(slots=True)
class TapTally:
    """Number of stamped messages, of bad ones by reason, and of records that are no messages by kind."""

    stamped: int = 0
    snapshot_reads: int = 0
    """Stamped messages that a change stream read from its table."""
    bad: Counter[SkipReason] = field(default_factory=Counter)
    passed: Counter[RecordKind] = field(default_factory=Counter)
    repeated: int = 0
    """Drops beyond one per bad message: a message that may be of several windows counts in each of them."""
    reported: str = ""
    """Last logged line."""

    def summary(self, dropped: int) -> dict[str, object]:
        """Return the numbers for ``--json``; ``dropped`` are the drops of the probe, bad messages included.

        What only change streams have is left out where there is none.
        """
        of_changes = {"snapshot_reads": self.snapshot_reads, "no_messages": dict(sorted(self.passed.items()))}
        return {
            "stamped": self.stamped,
            "bad": dict(sorted(self.bad.items())),
            "dropped": dropped - self.repeated,
        } | {name: found for name, found in of_changes.items() if found}

    def __str__(self) -> str:
        """Return the tally in words."""
        stamped = f"{self.stamped:,} stamped"
        if self.snapshot_reads:
            stamped += f" ({self.snapshot_reads:,} of a snapshot)"
        told = f"{stamped}, {self.bad.total():,} bad{_list_counts(self.bad)}"
        return told + (f"; no messages{_list_counts(self.passed)}" if self.passed else "")

    def report(self, around: RunContext) -> None:
        """Log the tally, unless it is unchanged."""
        if str(self) != self.reported:
            self.reported = str(self)
            around.report(self.reported)


def _list_counts(counts: Mapping[SkipReason, int] | Mapping[RecordKind, int]) -> str:
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    return f": {listed}" if listed else ""


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
