"""Tests of late heartbeats of the monitor: whatever clocks say, none is told that came at once."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.late_heartbeats import MIN_LATE_US, LateHeartbeat, find_late_heartbeats
from hopwatch.monitor.kernel.books import BatchFact, Book, absorb
from hopwatch.monitor.payloads import FactSheet
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.limits import MONITOR_STREAM
from tests.support.fact_parts import ENDS, cut

SECOND_US = 1_000_000
BEGAN_US = 1_000 * SECOND_US
LEAST_S = MIN_LATE_US // SECOND_US


def make_heartbeats(delays_s: list[int], offset_s: int = 0) -> list[BatchFact]:
    """Return a heartbeat each three seconds, each so long under way, to a broker whose clock is so far ahead."""
    facts = []
    for number, delay_s in enumerate(delays_s):
        sent_us = BEGAN_US + 3 * number * SECOND_US
        arrival_us = sent_us + (delay_s + offset_s) * SECOND_US
        came = number, arrival_us, min(sent_us, arrival_us), sent_us
        facts.append(BatchFact(*came, 0, 0, 0, int(BatchKind.HEARTBEAT), 0))
    return facts


def find_all(*parts: list[BatchFact], stream: str = MONITOR_STREAM) -> list[LateHeartbeat]:
    """Return what is found, one micro-batch after the other."""
    book, found = Book(stream, "monitor", "p", BEGAN_US), list[LateHeartbeat]()
    for facts in parts:
        sheet = FactSheet("s.seg", stream, "monitor", "p", BEGAN_US, {}, facts, ())
        found += find_late_heartbeats({book.key: book}, [sheet])
        book, _ = absorb(book, facts)
    return found


DELAYS = st.lists(st.integers(0, 100), min_size=1, max_size=8)


@given(DELAYS, st.integers(-200, 200), ENDS, st.randoms(use_true_random=False))
def test_a_late_heartbeat_was_under_way_for_no_less_than_is_told(
    delays_s: list[int], offset_s: int, ends: list[int], dice: Random
) -> None:
    """So it is with clocks that are far apart, and in any order of reading."""
    facts = make_heartbeats(delays_s, offset_s)
    longest_us: dict[int, int] = {}
    for fact, delay_s in zip(facts, delays_s, strict=True):
        longest_us[fact.arrival_us] = max(delay_s * SECOND_US, longest_us.get(fact.arrival_us, 0))
    dice.shuffle(facts)
    for one in find_all(*cut(facts, ends)):
        assert MIN_LATE_US <= one.late_us <= longest_us[one.at_us + one.late_us]


@given(st.integers(1, 7), st.integers(0, 100), st.integers(-200, 200), ENDS)
def test_an_outage_is_told_by_the_first_heartbeat_in_it(at: int, down_s: int, offset_s: int, ends: list[int]) -> None:
    """Those that are sent later while it lasts wait less; one that is shorter than the least is none."""
    delays_s = [max(0, down_s - 3 * max(0, number - at)) if number >= at else 0 for number in range(8)]
    found = find_all(*cut(make_heartbeats(delays_s, offset_s), ends))
    due_us = BEGAN_US + (3 * at + offset_s) * SECOND_US
    assert found == ([LateHeartbeat(due_us, down_s * SECOND_US)] if down_s >= LEAST_S else [])


def test_the_first_heartbeat_of_a_monitor_is_never_late() -> None:
    """Nothing says how far its clock is from the broker's; nor is one late that is read twice."""
    facts = make_heartbeats([50, 50])
    assert find_all(facts, facts) == []


def test_probes_have_no_heartbeats_that_are_late() -> None:
    """A batch of theirs may wait in its service."""
    assert find_all(make_heartbeats([0, 50]), stream="orders") == []
