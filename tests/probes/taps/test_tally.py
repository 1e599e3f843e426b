"""Tests of what a tap tells of itself: what has changed, and the same words once."""

from __future__ import annotations

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.tally import REPORT_EVERY_S, TallyReporter, TapTally
from hopwatch.probes.values import SkipReason
from hopwatch.testing import ManualClock


def test_the_same_tally_is_told_once() -> None:
    """At the end too, if nothing came since it was told at an interval; one of nothing is told at the end alone."""
    clock, said = ManualClock(), list[str]()
    around, tally = RunContext(said.append, clock), TapTally()
    teller = TallyReporter(tally, around)
    clock.advance(REPORT_EVERY_S)
    teller.report_if_due()
    assert said == []
    tally.stamped = 100
    clock.advance(REPORT_EVERY_S)
    teller.report_if_due()
    for _ in range(2):
        tally.report(around)
    assert said == ["100 stamped, 0 bad"]
    tally.bad[SkipReason.NO_ID] += 1
    tally.report(around)
    assert said[1:] == ["100 stamped, 1 bad: no_id 1"]


def test_a_tally_of_nothing_is_told_at_the_end() -> None:
    """A tally of nothing is logged at the end, too."""
    said = list[str]()
    TapTally().report(RunContext(said.append))
    assert said == ["0 stamped, 0 bad"]
