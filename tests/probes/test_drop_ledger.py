"""Tests of the ledger of drops: what is reported, what is reported again, and which hole uncounted drops need."""

from __future__ import annotations

import pytest

from hopwatch.probes.contract.limits import MAX_DROPS
from hopwatch.probes.drop_ledger import HOLE_US, DropLedger
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.recorder import POSSIBLE_WINDOW
from hopwatch.testing import EPOCH_US, ManualClock

WINDOW = EPOCH_US // 1_000


@pytest.fixture
def ledger(clock: ManualClock) -> DropLedger:
    """Return a ledger without drops."""
    return DropLedger(ProbeInstance("orders", "router", "a", EPOCH_US), clock)


def test_drops_are_reported_until_they_are_removed(ledger: DropLedger) -> None:
    """Those that a lost record had told are reported again, and counted once."""
    ledger.drop({(WINDOW, "full"): 2, (WINDOW, "bad"): 1}, EPOCH_US)
    told, is_all = ledger.next_drops()
    assert ([(one.cause, one.count) for one in told], is_all) == ([("bad", 1), ("full", 2)], True)
    ledger.remove(told)
    assert (len(ledger), ledger.next_drops(), ledger.total) == (0, ((), True), 3)
    ledger.report_again(told, EPOCH_US)
    assert (ledger.next_drops(), ledger.total) == ((told, True), 3)


def test_a_record_has_as_many_drops_as_it_may(ledger: DropLedger) -> None:
    """The rest is for the next one."""
    ledger.drop({(WINDOW, f"cause {number}"): 1 for number in range(MAX_DROPS + 1)}, EPOCH_US)
    told, is_all = ledger.next_drops()
    assert (len(told), is_all, len(ledger)) == (MAX_DROPS, False, MAX_DROPS + 1)


def test_a_window_that_is_only_possible_is_no_further_drop(ledger: DropLedger) -> None:
    """A possible window is reported and not complete, but is no further drop."""
    ledger.drop({(WINDOW, POSSIBLE_WINDOW): 1, (WINDOW, "bad"): 1}, EPOCH_US)
    assert (len(ledger), ledger.total) == (2, 1)


def test_a_hole_ends_as_late_as_what_was_not_counted_may_be(ledger: DropLedger, clock: ManualClock) -> None:
    """Computed once for each loss of count, from the moment at which it is asked for."""
    assert ledger.find_hole_end_us(EPOCH_US) == 0
    ledger.lose_count()
    clock.advance(7)
    end_us = EPOCH_US + 7_000_000 + HOLE_US
    assert ledger.find_hole_end_us(EPOCH_US) == end_us
    clock.advance(7)
    assert ledger.find_hole_end_us(EPOCH_US) == end_us


def test_a_hole_of_now_is_behind_what_is_completed(ledger: DropLedger) -> None:
    """Else the next moment that is completed would not be behind it."""
    ledger.leave_hole(EPOCH_US + 9)
    assert ledger.find_hole_end_us(EPOCH_US + 9) == EPOCH_US + 10
    ledger.leave_hole(0)
    assert ledger.find_hole_end_us(0) == EPOCH_US + 10


def test_each_cause_is_logged_once_with_its_hint(ledger: DropLedger, caplog: pytest.LogCaptureFixture) -> None:
    """A fault that the host's own values raised explains more than the hint."""
    ledger.drop({(WINDOW, "sink refused"): 1, (WINDOW, "odd"): 1}, EPOCH_US)
    for _ in range(2):
        ledger.log_causes({"odd": "its id raised"})
    said = "a probe of orders at router drops observations:"
    assert caplog.messages == [f"{said} its id raised", f"{said} its sink is full or cannot be written"]
