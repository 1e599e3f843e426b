"""Tests of steps of clocks: however late batches arrive, none is told that was not made."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.clock_steps import MIN_STEP_US, ClockStep, StepKind, find_clock_steps
from hopwatch.monitor.kernel.books import BatchFact, Book, absorb
from hopwatch.monitor.payloads import FactSheet
from tests.support.fact_parts import ENDS, cut

SECOND_US = 1_000_000
BEGAN_US = 1_000 * SECOND_US
STEP_S = MIN_STEP_US // SECOND_US


def batches_of(offsets_s: list[int], delays_s: list[int]) -> list[BatchFact]:
    """Return a batch a second of an instance whose clock is so far ahead, each of which arrives so late."""
    facts, complete_us = [], 0
    for number, (offset_s, delay_s) in enumerate(zip(offsets_s, delays_s, strict=True)):
        now_us = BEGAN_US + number * SECOND_US
        sent_us, arrival_us = now_us + offset_s * SECOND_US, now_us + delay_s * SECOND_US
        complete_us = max(complete_us, sent_us)
        facts.append(BatchFact(number, arrival_us, min(complete_us, arrival_us), sent_us, 0, 0, 1, 0, 0))
    return facts


def steps_of(*parts: list[BatchFact], segments: int = 1) -> list[ClockStep]:
    """Return the steps that are found, one micro-batch after the other, each of so many segments."""
    book, found = Book("orders", "a", "p", BEGAN_US), list[ClockStep]()
    for facts in parts:
        shares = [facts[number::segments] for number in range(segments)]
        sheets = [FactSheet("s.seg", "orders", "a", "p", BEGAN_US, {}, share, ()) for share in shares]
        found += find_clock_steps({book.key: book}, sheets)
        book, _ = absorb(book, facts)
    return found


SECONDS = st.lists(st.integers(0, 30), min_size=8, max_size=8)


@given(st.integers(-60, 60), SECONDS, ENDS, st.randoms(use_true_random=False))
def test_a_clock_that_makes_no_step_is_never_set_back(
    offset_s: int, delays_s: list[int], ends: list[int], dice: Random
) -> None:
    """A step ahead is told by no more than it is, in whatever order batches arrive, and however late."""
    facts = batches_of([offset_s] * 8, delays_s)
    dice.shuffle(facts)
    for step in steps_of(*cut(facts, ends)):
        assert step.kind is StepKind.AHEAD
        assert MIN_STEP_US <= step.least_us <= offset_s * SECOND_US


@given(st.integers(1, 7), st.integers(-60, 60), st.integers(-60, 60), ENDS, st.integers(1, 3))
def test_a_step_is_told_where_it_is_made(at: int, before_s: int, after_s: int, ends: list[int], segments: int) -> None:
    """At the first batch behind it, if batches arrive at once, and if it is as long as the least that is told."""
    found = steps_of(*cut(batches_of([before_s] * at + [after_s] * (8 - at), [0] * 8), ends), segments=segments)
    # What an earlier batch completes is no later than its arrival.
    back_s = min(before_s, 0) - after_s - 1
    if back_s >= STEP_S:
        expected = [(StepKind.SET_BACK, back_s)]
    elif before_s < STEP_S <= after_s:
        expected = [(StepKind.AHEAD, after_s)]
    else:
        expected = []
    assert [(step.kind, step.least_us // SECOND_US) for step in found] == expected
    assert all(step.at_us == BEGAN_US + at * SECOND_US for step in found)


def test_steps_of_probes_of_a_node_are_one() -> None:
    """One step has the names of all, the first moment, and the least by which any clock stepped."""
    sheets = [
        FactSheet("s.seg", "orders", "a", probe, BEGAN_US, {}, batches_of([0, -back_s], [0, 0]), ())
        for probe, back_s in (("q", 20), ("p", 10), ("r", 0))
    ]
    assert find_clock_steps({}, sheets) == [
        ClockStep("orders", "a", StepKind.SET_BACK, BEGAN_US + SECOND_US, 9 * SECOND_US, ("p", "q"))
    ]


def test_a_first_batch_is_no_step() -> None:
    """Nothing is known of the clock before it."""
    assert steps_of(batches_of([60], [0])) == []
