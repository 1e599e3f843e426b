"""Tests of what a tap tells of itself: what has changed, and the same words once."""

from __future__ import annotations

from hopwatch.probes.taps.surroundings import Surroundings
from hopwatch.probes.taps.tally import TELL_EVERY_S, Tally, Teller
from hopwatch.probes.values import Bad
from hopwatch.testing import ManualClock


def test_the_same_tally_is_told_once() -> None:
    """At the end too, if nothing came since it was told at an interval; one of nothing is told at the end alone."""
    clock, said = ManualClock(), list[str]()
    around, tally = Surroundings(said.append, clock), Tally()
    teller = Teller(tally, around)
    clock.advance(TELL_EVERY_S)
    teller.look()
    assert said == []
    tally.stamped = 100
    clock.advance(TELL_EVERY_S)
    teller.look()
    for _ in range(2):
        tally.tell(around)
    assert said == ["100 stamped, 0 bad"]
    tally.bad[Bad.NO_ID] += 1
    tally.tell(around)
    assert said[1:] == ["100 stamped, 1 bad: no_id 1"]


def test_a_tally_of_nothing_is_told_at_the_end() -> None:
    """Whoever stops a tap that never had anything to do has to see that."""
    said = list[str]()
    Tally().tell(Surroundings(said.append))
    assert said == ["0 stamped, 0 bad"]
