"""Laws of dropped stamps: however many windows they are of, no account hides one."""

from __future__ import annotations

from typing import Final
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import books
from hopwatch.monitor.kernel.books import IN_WINDOW, BatchFact, Book, DropFact
from hopwatch.monitor.kernel.window import AHEAD_US
from hopwatch.probes import drop_counts
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.testing import EPOCH_US
from tests.support.sender_bench import Bench

TRANSIT_US: Final = 150_000_000
MOST_COUNTED: Final = 1
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.lists(st.integers(-3, AHEAD_US // WINDOW_US), min_size=1)),
        st.tuples(st.just("advance"), st.integers(1, 400)),
        st.tuples(st.sampled_from(["refuse", "take", "arrive"]), st.none()),
    ),
    max_size=20,
)


def play(steps: list[tuple[str, object]]) -> tuple[Bench, list[tuple[int, int]]]:
    """Return a sender that was closed after all that, and of each of its drops the moment and the window, µs."""
    bench, dropped = Bench(), []
    for step in steps:
        match step:
            case "drop", list(minutes):
                for minute in minutes:
                    start_us = (bench.clock.us // WINDOW_US + minute) * WINDOW_US
                    bench.sender.drop({(start_us // 1_000, "full"): 1})
                    dropped.append((bench.clock.us, start_us))
            case "advance", int(seconds):
                bench.clock.advance(seconds)
                bench.sender.step()
            case "arrive", _:
                bench.arrive(1, event_us=bench.clock.us)
            case what, _:
                bench.sink.is_full = what == "refuse"
    bench.sink.is_full = False
    bench.sender.close(1)
    return bench, dropped


def book_of(batches: list[Batch]) -> Book:
    """Return the book that a monitor keeps, to which each batch comes a second after it was sent."""
    facts = [
        BatchFact(
            b.seq,
            b.sent_at_us + 1_000_000,
            b.complete_through_us,
            b.sent_at_us,
            b.window_start_ms,
            0,
            b.count,
            b.kind,
            IN_WINDOW,
        )
        for b in batches
    ]
    drops = [DropFact(row, d.window_start_ms, d.count, d.cause) for row, b in enumerate(batches) for d in b.drops]
    return books.absorb(Book("orders", "router", "p", EPOCH_US), facts, drops)[0]


@given(STEPS)
def test_a_window_with_a_drop_is_never_complete(steps: list[tuple[str, object]]) -> None:
    """Counted by itself or not, told early or late: what was dropped up to a window's horizon is owned up to."""
    with patch.object(drop_counts, "MAX_COUNTED", MOST_COUNTED):
        bench, dropped = play(steps)
    batches = bench.batches()
    assert sum(drop.count for batch in batches for drop in batch.drops) == bench.sender.dropped_total >= len(dropped)
    if not dropped:
        return
    moments, starts = np.array(dropped, np.int64).T
    horizons = np.maximum(starts + WINDOW_US, moments) + TRANSIT_US
    accounts = books.judge_book(book_of(batches), starts, starts + WINDOW_US, horizons)
    assert accounts.has_a_say.all()
    assert not accounts.complete.any()


@given(STEPS)
def test_numbers_are_left_out_for_want_of_room_alone(steps: list[tuple[str, object]]) -> None:
    """If every window of a drop has a count of its own, the numbers have no gap, and a bye ends them."""
    bench, _ = play(steps)
    assert [batch.seq for batch in bench.batches()] == list(range(len(bench.batches())))
    assert bench.batches()[-1].kind is BatchKind.BYE
