"""Lines for the operator on what a delivery rejects and defers: without them a wrong URL or certificate would not show.

The first of each ending is reported at once, those that follow once a minute at most, with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from hopwatch.deliver.settlement import Ending, Settlement

REPORT_S: Final = 60.0
"""Shortest time between two reports of one ending."""


class SettlementReport:
    """Report of the rejected and deferred messages of one delivery."""

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        """Begin with nothing; ``report`` takes a line."""
        self._name, self._report = name, report
        self._counts: Counter[Ending] = Counter()
        self._next_s: dict[Ending, float] = {}

    def add_settlements(self, settlements: Sequence[Settlement], now_s: float) -> None:
        """Count settlements that are durable, and report them if it is time; ``now_s`` never goes back."""
        for ending in (Ending.REJECTED, Ending.DEFERRED):
            reasons = [one.reason for one in settlements if one.ending is ending]
            self._counts[ending] += len(reasons)
            if reasons and now_s >= self._next_s.get(ending, now_s):
                self._report(self._describe(ending, reasons[-1]))
                self._counts[ending] = 0
                self._next_s[ending] = now_s + REPORT_S

    def _describe(self, ending: Ending, reason: str) -> str:
        count = f"{self._counts[ending]:,}"
        if ending is Ending.DEFERRED:
            return f"{self._name}: {count} deferred to a retry topic, the last one for this reason: {reason}"
        listed = f"'hopwatch quarantine list --delivery {self._name}' has all"
        return f"{self._name}: {count} rejected, the last one for this reason: {reason}; {listed}"
