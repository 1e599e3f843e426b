"""Tests of the books: who is heard in a window, who has a say in it, and whose account of it is told and complete.

All that is judged here is the window from 600 s to 660 s, with its horizon at 810 s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import (
    IMPLAUSIBLE,
    IN_WINDOW,
    MAX_DROPPED,
    NO_OFFSET_US,
    TOO_LATE,
    BatchFact,
    BatchRun,
    Book,
    ClockOffset,
    DropFact,
    absorb,
    judge_book,
)
from hopwatch.probes.contract.batch import BatchKind

WINDOW_MS: Final = 600_000
JUST_US: Final = 1e-6
"""A microsecond, in seconds."""


def fact(seq: int, through_s: float, kind: BatchKind = BatchKind.HEARTBEAT, **fields: Any) -> BatchFact:  # noqa: ANN401
    """Return what is known of a batch: it completes ``through_s`` and arrived then; without a window it has none."""
    moment_us = round(through_s * 1e6)
    known = {
        "seq": seq,
        "arrival_us": moment_us,
        "complete_through_us": moment_us,
        "sent_at_us": moment_us,
        "window_start_ms": 0,
        "stamped_from_us": 0,
        "count": 0,
        "kind": kind,
        "standing": IN_WINDOW,
    }
    return BatchFact(**{name: int(value) for name, value in (known | fields).items()})


def observed(seq: int, through_s: float, standing: int = IN_WINDOW) -> BatchFact:
    """Return what is known of a batch of two observations of the window."""
    return fact(seq, through_s, BatchKind.OBSERVATIONS, window_start_ms=WINDOW_MS, count=2, standing=standing)


def nonsense(seq: int, through_s: float, from_s: float) -> BatchFact:
    """Return what is known of a batch of two observations with event times that cannot be, stamped since a moment."""
    known = {"window_start_ms": 10**12, "count": 2, "standing": IMPLAUSIBLE, "stamped_from_us": round(from_s * 1e6)}
    return fact(seq, through_s, BatchKind.OBSERVATIONS, **known)


def written(*facts: BatchFact, epoch_s: float = 0, drops: tuple[DropFact, ...] = ()) -> Book:
    """Return the book of a probe instance in which the facts are written."""
    return absorb(Book("orders", "router", "p", round(epoch_s * 1e6)), facts, drops)[0]


def judged(book: Book) -> str:
    """Return what the book is to the window: of *say, heard, told, complete* those that hold, then counts if any.

    These are the observations that it dropped, and behind an a those that were set aside as implausible.
    """
    window = (np.array([moment], np.int64) * 1_000_000 for moment in (600, 660, 810))
    *facts, dropped, aside, _ = (part[0] for part in judge_book(book, *window))
    held = [name for name, holds in zip(("say", "heard", "told", "complete"), facts, strict=True) if holds]
    return " ".join(held + [str(dropped)] * bool(dropped) + [f"a{aside}"] * bool(aside))


ALL = "say heard told complete"
DROPPED_THREE = (DropFact(0, WINDOW_MS, 2, "full"), DropFact(0, WINDOW_MS, 1, "slow"), DropFact(0, 0, 9, "full"))

ACCOUNTS: dict[str, tuple[Book, str]] = {
    # It lived through the window and beyond.
    "lived on": (written(fact(0, 900)), ALL),
    "told up to the horizon": (written(fact(0, 810)), ALL),
    "told up to just before the horizon": (written(fact(0, 810 - JUST_US)), "say heard"),
    # It came late.
    "born in the last moment": (written(fact(0, 900), epoch_s=660 - JUST_US), ALL),
    "born when it had ended": (written(fact(0, 900), epoch_s=660), "say told complete"),
    "born at the horizon": (written(fact(0, 900), epoch_s=810), "say told complete"),
    "born behind the horizon": (written(fact(0, 900), epoch_s=810 + JUST_US), "told complete"),
    "born later by its own clock than its batch arrived": (written(fact(0, 650), epoch_s=9_000), "say heard"),
    "born behind the horizon, and sent of it": (written(observed(0, 900), epoch_s=850), ALL),
    # It ended with a bye.
    "bye in the window": (written(fact(0, 630, BatchKind.BYE)), ALL),
    "bye in the first moment": (written(fact(0, 600, BatchKind.BYE)), ALL),
    "bye just before": (written(fact(0, 600 - JUST_US, BatchKind.BYE)), "told complete"),
    "bye before, and had sent of it": (written(observed(0, 500), fact(1, 590, BatchKind.BYE)), ALL),
    "bye, but a batch came behind it": (written(fact(0, 630, BatchKind.BYE), fact(1, 640)), "say heard"),
    # It fell silent without a bye.
    "silent in the window": (written(fact(0, 630)), "say heard"),
    "silent 10 s before": (written(fact(0, 590)), "say heard"),
    "silent a moment longer": (written(fact(0, 590 - JUST_US)), "say"),
    "silent for 10 min": (written(fact(0, 0), epoch_s=-60), "say"),
    "retired": (written(fact(0, -JUST_US), epoch_s=-60), ""),
    "retired, and had sent of it": (written(observed(0, -1), epoch_s=-60), "say heard"),
    # Batches are missing: from the moment of the one before to that of the one behind.
    "missing before, until it starts": (written(fact(0, 500), fact(2, 600), fact(3, 900)), "say heard"),
    "missing before, until just before": (written(fact(0, 500), fact(2, 600 - JUST_US), fact(3, 900)), ALL),
    "missing from the horizon on": (written(fact(0, 810), fact(2, 900)), "say heard"),
    "missing from just behind it": (written(fact(0, 810 + JUST_US), fact(2, 900)), ALL),
    "missing all around": (written(fact(0, 500), fact(2, 900)), "say heard"),
    "missing all around, before a bye": (written(fact(0, 500), fact(2, 900, BatchKind.BYE)), "say heard"),
    "missing beside one of the same flush": (
        written(fact(0, 599), fact(2, 599, sent_at_us=601_000_000, arrival_us=602_000_000), fact(3, 900)),
        "say heard",
    ),
    "missing beside one that was sent before": (
        written(fact(0, 590), fact(2, 590, sent_at_us=599_000_000, arrival_us=602_000_000), fact(3, 900)),
        ALL,
    ),
    "the first ones are missing": (written(fact(2, 900)), "say heard"),
    "the first ones are missing, before": (written(fact(2, 599), fact(3, 900)), ALL),
    "missing while the clock was set back": (written(fact(0, 850), fact(2, 500), fact(3, 900)), "say heard"),
    # What it sent of the window, and what it could not.
    "sent of it": (written(observed(0, 900)), ALL),
    "sent of it too late": (written(observed(0, 900, TOO_LATE)), "say heard"),
    "sent of it in time and too late": (written(observed(0, 900), observed(1, 901, TOO_LATE)), "say heard"),
    "sent of it, implausibly": (written(observed(0, 900, IMPLAUSIBLE)), "say heard a2"),
    # What it sent of other windows cannot be, and was stamped while this one was judged: it may be of this one.
    "sent nonsense in the window": (written(nonsense(0, 620, 610), fact(1, 900)), f"{ALL} a2"),
    "sent nonsense from before until its start": (written(nonsense(0, 600, 500), fact(1, 900)), f"{ALL} a2"),
    "sent nonsense before": (written(nonsense(0, 600 - JUST_US, 500), fact(1, 900)), ALL),
    "sent nonsense from the horizon on": (written(fact(0, 700), nonsense(1, 900, 810)), f"{ALL} a2"),
    "sent nonsense behind the horizon": (written(fact(0, 700), nonsense(1, 900, 810 + JUST_US)), ALL),
    "sent nonsense again and again": (written(*(nonsense(n, 640 + n, 639 + n) for n in range(300))), f"{ALL} a402"),
    "dropped of it": (written(fact(0, 900), drops=DROPPED_THREE), "say heard told 3"),
    "dropped of it, behind the horizon": (written(fact(0, 900), epoch_s=850, drops=DROPPED_THREE), "say told 3"),
    "dropped of others": (written(fact(0, 900), drops=DROPPED_THREE[2:]), ALL),
    # Nothing came of it that makes sense.
    "complete before it was born": (written(fact(0, 500, arrival_us=700_000_000), epoch_s=650), "say"),
    "bye before it was born": (
        written(fact(0, 610, BatchKind.BYE, arrival_us=700_000_000), epoch_s=650),
        "told complete",
    ),
}


@pytest.mark.parametrize(("book", "told"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_what_an_instance_is_to_a_window(book: Book, told: str) -> None:
    """Has a say, heard, told, complete, and how many observations it dropped: SEMANTICS.md, "Books"."""
    assert judged(book) == told


def test_a_book_with_every_fact_in_it() -> None:
    """Five batches of which two are missing, one is doubled and one too late, and what they leave behind."""
    facts = [
        observed(0, 610),
        fact(4, 700, sent_at_us=700_500_000),
        fact(1, 620),
        observed(3, 690, TOO_LATE),
        observed(0, 611),
    ]
    drops = (DropFact(1, WINDOW_MS, 3, "full"), DropFact(4, WINDOW_MS, 7, "full"))
    book, is_new = absorb(Book("orders", "router", "p", 600_000_000), facts, drops)
    assert is_new == [True, True, True, True, False]
    assert book.runs == (BatchRun(0, 1, 610_000_000, 620_000_000), BatchRun(3, 4, 690_000_000, 700_000_000))
    assert book.holes() == [(1, 620_000_000, 690_000_000)]
    assert (book.first_arrival_us, book.last_arrival_us) == (610_000_000, 700_000_000)
    assert (book.complete_through_us, book.said_bye, book.skew_us) == (700_000_000, False, 500_000)
    assert book.drops == {(WINDOW_MS, "full"): 3}
    assert book.sent == {WINDOW_MS: True}
    tallies = book.tallies
    assert (tallies.batches, tallies.duplicate_batches, tallies.observations) == (5, 1, 6)
    assert (tallies.duplicate_observations, tallies.too_late, tallies.implausible, tallies.in_windows) == (2, 2, 0, 2)


def test_a_hole_that_is_filled_is_gone() -> None:
    """The runs on both sides of it become one."""
    book = written(fact(0, 1), fact(2, 3))
    assert book.holes() == [(1, 1_000_000, 3_000_000)]
    filled, _ = absorb(book, [fact(1, 2)])
    assert (filled.holes(), filled.runs) == ([], (BatchRun(0, 2, 1_000_000, 3_000_000),))


def test_a_book_of_nothing_is_alive_from_its_epoch() -> None:
    """An empty book is alive from its epoch, has completed nothing, and has no holes."""
    book = Book("orders", "router", "p", 5)
    assert (book.alive_from_us, book.complete_through_us, book.holes()) == (5, 5, [])
    assert book.key == ("orders", "router", "p", 5)
    assert absorb(book, [])[0] == book


def test_a_duplicate_of_an_earlier_micro_batch_changes_the_tallies_alone() -> None:
    """A duplicate of an earlier batch changes the tallies alone, whatever it says."""
    book = written(fact(0, 900))
    copy = [fact(0, 950, BatchKind.BYE, arrival_us=900_000_000)]
    again, is_new = absorb(book, copy, [DropFact(0, WINDOW_MS, 1, "full")])
    assert is_new == [False]
    assert (judged(again), again.complete_through_us, again.tallies.duplicate_batches) == (ALL, 900_000_000, 1)


def measured(seq: int, sent_us: int, arrival_us: int, offset_max_us: int = NO_OFFSET_US) -> BatchFact:
    """Return a batch by when it was sent and arrived; the upper bound of the clock was measured before it."""
    return fact(seq, 900, sent_at_us=sent_us, arrival_us=arrival_us, offset_max_us=offset_max_us)


def test_the_offset_of_a_clock_is_between_what_was_sent_and_what_was_acknowledged() -> None:
    """The batch before the one that tells it gives the lower bound, also if it came in an earlier micro-batch."""
    book = written(measured(0, 150_000, 2_000), measured(1, 900_000, 800_000, 152_600))
    assert book.clock_offset == ClockOffset(147_000, 152_600)
    earlier = written(measured(0, 150_000, 2_000))
    assert earlier.clock_offset is None
    later, _ = absorb(earlier, [measured(1, 900_000, 800_000, 152_600)])
    assert later.clock_offset == ClockOffset(147_000, 152_600)
    assert absorb(later, [measured(2, 7, 0)])[0].clock_offset == ClockOffset(147_000, 152_600)


def test_the_batch_before_is_not_another_one() -> None:
    """A batch before it is missing: the one that tells the bound gives the lower one, too, which is farther off."""
    book = written(measured(0, 150_000, 2_000), measured(2, 900_000, 800_000, 152_600))
    assert book.clock_offset == ClockOffset(99_000, 152_600)


def test_the_newest_measurement_counts() -> None:
    """Not one that is read later; and one that contradicts itself, as behind a clock that was set, is none."""
    book = written(measured(3, 0, 0), measured(4, 0, 0, 3_000))
    assert absorb(book, [measured(1, 0, 0), measured(2, 0, 0, 500)])[0].clock_offset == ClockOffset(-1_000, 3_000)
    assert absorb(book, [measured(5, 9_000, 0, 7_000)])[0].clock_offset is None
    assert absorb(book, [measured(6, -(2**62), 2**62 + 1, 7_000)])[0].clock_offset is None


@given(st.integers(-(10**9), 10**9), st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=1, max_size=5))
def test_the_offset_of_a_clock_that_does_not_step_is_within_its_bounds(
    offset_us: int, rounds: list[tuple[int, int, int]]
) -> None:
    """Batches and acknowledgements may take any time; the bounds are apart by both, and two milliseconds, at most."""
    book, now_us, bound_us, width_us = written(), 10**9, NO_OFFSET_US, 0
    for seq, (to_broker_us, back_us, pause_us) in enumerate(rounds):
        moment_us = now_us + to_broker_us
        arrival_us = moment_us // 1_000 * 1_000
        book, _ = absorb(book, [measured(seq, now_us + offset_us, arrival_us, bound_us)])
        if bound_us != NO_OFFSET_US:
            assert book.clock_offset is not None
            low_us, high_us = book.clock_offset
            assert low_us <= offset_us <= high_us
            assert high_us - low_us <= width_us
        bound_us = moment_us + back_us + offset_us - arrival_us
        width_us = to_broker_us + back_us + 2_000
        now_us = moment_us + back_us + pause_us


def test_skew_is_that_of_the_last_batch() -> None:
    """Of the batch with the highest number, not of the one that was read last."""
    book = written(fact(1, 700, sent_at_us=703_000_000))
    later, _ = absorb(book, [fact(0, 690, sent_at_us=600_000_000)])
    assert later.skew_us == 3_000_000


ABSURD = {"past": (-(2**63), -(2**63)), "future": (2**63 - 1, 2**63 - 1 - 900_000_000)}


@pytest.mark.parametrize(("sent_at_us", "skew_us"), ABSURD.values(), ids=ABSURD)
def test_an_absurd_clock_overflows_nothing(sent_at_us: int, skew_us: int) -> None:
    """A skew that 64 bits cannot hold is the largest that they can."""
    assert written(fact(0, 900, sent_at_us=sent_at_us)).skew_us == skew_us


def test_absurd_drops_overflow_nothing() -> None:
    """The number of drops is bounded, so that sums over many instances do not overflow."""
    drops = tuple(DropFact(0, WINDOW_MS, 2**63 - 1, cause) for cause in "abc")
    assert judged(written(fact(0, 900), drops=drops)) == f"say heard told {MAX_DROPPED}"
    assert MAX_DROPPED * 1_000 < 2**63


def test_what_was_set_aside_of_a_window_far_ahead_is_not_noted() -> None:
    """A day ahead of its arrival or more: a book must not grow with event times that lie."""
    starts_ms = (86_340_000, 86_400_000, 4_070_908_800_000)
    odd = [
        fact(seq, 0, BatchKind.OBSERVATIONS, window_start_ms=start_ms, count=1, standing=IMPLAUSIBLE)
        for seq, start_ms in enumerate(starts_ms)
    ]
    assert written(*odd).sent == {86_340_000: True}


LONG_AGO_US: Final = -(10**12)
"""Seen from the window as 1970 is from now: what a tap completes that has caught up with nothing yet."""


def test_a_tap_that_is_behind_has_told_nothing() -> None:
    """The account of a tap that is behind is heard, and complete once the tap has caught up past the horizon."""
    sent = {"window_start_ms": WINDOW_MS, "count": 2, "complete_through_us": LONG_AGO_US}
    behind = [fact(0, 5_000, BatchKind.OBSERVATIONS, **sent), fact(1, 5_010, complete_through_us=LONG_AGO_US)]
    assert judged(written(*behind, epoch_s=5_000)) == "say heard"
    assert judged(written(*behind, fact(2, 5_100), epoch_s=5_000)) == "say heard told complete"


def test_a_tap_that_is_behind_may_hold_stamps() -> None:
    """From its epoch on it has a say, and it has told nothing; it is not heard before it sends something."""
    assert judged(written(fact(0, 650, complete_through_us=LONG_AGO_US), epoch_s=650)) == "say"
    assert judged(written(fact(0, 900, complete_through_us=LONG_AGO_US), epoch_s=811)) == ""


def test_a_slow_clock_retires_nobody() -> None:
    """An instance is silent for ten minutes after its last batch came, whatever its own clock says."""
    hour_s = 3_600
    early = fact(0, 590 - hour_s, arrival_us=590_000_000)
    assert judged(written(early, epoch_s=580 - hour_s)) == "say"


def test_an_instance_of_which_nothing_was_read_has_a_say() -> None:
    """An instance without a read record has a say from its epoch until it is retired, and is not heard."""
    book = Book("orders", "router", "p", 605_000_000, 606_000_000, 606_000_000)
    assert judged(book) == "say"
    assert judged(replace(book, epoch_us=0, first_arrival_us=0, last_arrival_us=0)) == "say"
    assert judged(replace(book, epoch_us=-1, first_arrival_us=-1, last_arrival_us=-1)) == ""
    assert judged(replace(book, epoch_us=10**15)) == "say"
