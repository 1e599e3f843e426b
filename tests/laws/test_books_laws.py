"""Laws of the books: the order in which batches come changes nothing, and an account is what SEMANTICS.md says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import books
from hopwatch.monitor.kernel.books import (
    IMPLAUSIBLE,
    IN_WINDOW,
    TOO_LATE,
    BatchFact,
    Book,
    DropFact,
    InstanceCounts,
    PacketFact,
    absorb,
    forget,
    is_over,
    judge_book,
    judge_books,
)
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.lag_histograms import add_histograms, count_lags
from tests.model import books as model
from tests.model import record, wire

SECOND_US: Final = 1_000_000
WINDOWS_MS: Final = tuple(range(0, 1_200_000, 60_000))
MOMENTS: Final = st.builds(
    lambda seconds, more_us: seconds * SECOND_US + more_us, st.integers(-30, 1_300), st.sampled_from([-1, 0, 0, 1])
)
"""Moments in and around the windows, whole seconds and the µs beside them."""


class Sent(NamedTuple):
    """One batch as the books see it; moments in µs, the clock of its probe not yet cut off at the arrival."""

    seq: int
    arrival_us: int
    through_us: int
    sent_at_us: int
    window_start_ms: int
    observed: int
    kind: BatchKind
    standing: int
    drops: tuple[tuple[int, int], ...]
    counted: int = 0

    @property
    def lags(self) -> bytes:
        """Return the histogram of the lags of what was counted, of which most packets tell some."""
        return count_lags(np.arange(self.counted if self.seq % 3 else 0) * 1_000 * self.seq)

    @property
    def is_of_window(self) -> bool:
        """Return whether it says something of its window's messages."""
        return self.kind in {BatchKind.OBSERVATIONS, BatchKind.METRICS}

    @property
    def fact(self) -> BatchFact:
        """Return the fact that the decoder makes of it."""
        through_us = min(self.through_us, self.arrival_us)
        # What is counted has no stamp: it may be as old as the instance.
        stamped_us = self.window_start_ms * 1_000 if self.observed else 0
        from_us = min(stamped_us, self.arrival_us) if self.standing == IMPLAUSIBLE else 0
        return BatchFact(*self[:2], through_us, *self[3:5], from_us, self.observed, int(self.kind), self.standing)

    @property
    def received(self) -> wire.Received:
        """Return the record that the reference model makes of it."""
        observations = (record.Observation(bytes(16), 0, 0),) * self.observed
        batch = record.Batch(
            *("s", "n", "p", 0, self.seq, self.kind.name, self.window_start_ms, self.sent_at_us, self.through_us),
            observations,
            self.drops,
            (record.Packet("IN", self.counted, 1, 1, 0),) * (self.kind is BatchKind.METRICS),
        )
        return wire.Received(batch, self.arrival_us, ("", self.seq))


@st.composite
def batches(draw: st.DrawFn) -> list[Sent]:
    """Draw what came of one probe instance: numbers with holes, clocks that err, drops, late and absurd windows."""
    sent = []
    for seq in draw(st.sets(st.integers(0, 12), min_size=1, max_size=6)):
        kind = draw(st.sampled_from(BatchKind))
        observes, counts = kind is BatchKind.OBSERVATIONS, kind is BatchKind.METRICS
        sent.append(
            Sent(
                seq,
                draw(MOMENTS),
                draw(MOMENTS),
                draw(MOMENTS),
                draw(st.sampled_from(WINDOWS_MS)),
                draw(st.integers(1, 9)) if observes else 0,
                kind,
                draw(st.sampled_from([IN_WINDOW, IN_WINDOW, TOO_LATE, IMPLAUSIBLE]))
                if observes or counts
                else IN_WINDOW,
                draw(st.lists(st.tuples(st.sampled_from(WINDOWS_MS), st.integers(1, 3)), max_size=1).map(tuple)),
                draw(st.integers(0, 9)) if counts else 0,
            )
        )
    return sent


def _written(book: Book, sent: Sequence[Sent]) -> tuple[Book, list[bool]]:
    facts = [one.fact for one in sent]
    drops = [DropFact(row, *drop, "full") for row, one in enumerate(sent) for drop in one.drops]
    packets = [
        PacketFact(row, one.window_start_ms, 0, one.counted, 1, 1, 0, one.lags)
        for row, one in enumerate(sent)
        if one.kind is BatchKind.METRICS
    ]
    return absorb(book, facts, drops, packets)


EMPTY: Final = Book("s", "n", "p", 0)
NONE: Final[frozenset[int]] = frozenset()
NOTHING: Final[tuple[wire.Received, ...]] = ()


@given(batches(), st.data())
def test_order_splitting_and_duplicates_change_no_more_than_the_tallies(sent: list[Sent], data: st.DataObject) -> None:
    """Batches come in any order, over any number of micro-batches, some of them twice: the book is the same."""
    again = data.draw(st.lists(st.sampled_from(sent)))
    come = data.draw(st.permutations(sent + again))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(come)), max_size=3)))
    book, new = EMPTY, 0
    for start, end in zip([0, *cuts], [*cuts, len(come)], strict=True):
        book, is_new = _written(book, come[start:end])
        new += sum(is_new)
    whole, _ = _written(EMPTY, sent)
    assert new == len(sent)
    assert replace(book, tallies=whole.tallies) == whole
    assert book.tallies.batches - book.tallies.duplicate_batches == len(sent)
    assert book.tallies.in_windows == whole.tallies.in_windows
    assert book.tallies.duplicate_observations == sum(one.observed for one in again)


@given(batches())
def test_lags_are_those_of_the_packets_in_windows(sent: list[Sent]) -> None:
    """By window: of what is too late or implausible, as of what comes twice, there is none."""
    expected: dict[tuple[int, int], list[bytes]] = {}
    for one in sent:
        if one.lags and one.standing == IN_WINDOW:
            expected.setdefault((one.window_start_ms, 0), []).append(one.lags)
    book, _ = _written(EMPTY, sent + sent)
    assert book.lags == {key: add_histograms(parts) for key, parts in expected.items()}
    assert forget(book, max(WINDOWS_MS)).lags == {key: book.lags[key] for key in book.lags if key[0] == max(WINDOWS_MS)}


@given(batches())
def test_every_observation_is_accounted_for(sent: list[Sent]) -> None:
    """Observations received = in windows + duplicate + too late + implausible."""
    tallies = _written(EMPTY, sent + sent)[0].tallies
    by_standing = [sum(one.observed for one in sent if one.standing == s) for s in (IN_WINDOW, TOO_LATE, IMPLAUSIBLE)]
    assert [tallies.in_windows, tallies.too_late, tallies.implausible] == by_standing
    assert tallies.observations == 2 * sum(by_standing)


@given(batches(), st.data())
def test_of_equal_numbers_in_one_go_the_earliest_arrival_counts(sent: list[Sent], data: st.DataObject) -> None:
    """Later copies with another content change the tallies alone."""
    copies = [one._replace(arrival_us=one.arrival_us + 1, through_us=-1, kind=BatchKind.BYE, drops=()) for one in sent]
    come = data.draw(st.permutations(sent + copies))
    book, _ = _written(EMPTY, come)
    whole, _ = _written(EMPTY, sent)
    assert replace(book, tallies=whole.tallies) == whole


@given(batches())
def test_holes_are_the_numbers_that_are_missing(sent: list[Sent]) -> None:
    """Number by number: how many are missing, and between which moments they were made."""
    book, _ = _written(EMPTY, sent)
    instance = model.Instance("n", [one.received for one in sent], NONE, NONE, NOTHING)
    assert [(from_us, to_us) for _, from_us, to_us in book.holes()] == instance.holes
    here = {one.seq for one in sent}
    assert sum(missing for missing, _, _ in book.holes()) == max(here) + 1 - len(here)
    assert {seq for run in book.runs for seq in range(run.first, run.last + 1)} == here


HORIZONS: Final = st.lists(st.integers(60, 1_300), min_size=len(WINDOWS_MS), max_size=len(WINDOWS_MS))


@given(batches(), HORIZONS)
def test_an_account_is_what_the_page_says(sent: list[Sent], horizons_s: list[int]) -> None:
    """Has a say, heard, told, complete and drops of every window agree with the reference model, one by one."""
    book, _ = _written(EMPTY, sent)
    touched, late = (
        frozenset(one.window_start_ms for one in sent if one.is_of_window and one.standing in standings)
        for standings in ((IN_WINDOW,), (TOO_LATE, IMPLAUSIBLE))
    )
    implausible = [one.received for one in sent if one.standing == IMPLAUSIBLE]
    instance = model.Instance("n", [one.received for one in sent], touched, late, implausible)
    starts_us = np.array(WINDOWS_MS, np.int64) * 1_000
    ends_us = starts_us + 60 * SECOND_US
    horizons_us = starts_us + np.array(horizons_s, np.int64) * SECOND_US
    judged = judge_book(book, starts_us, ends_us, horizons_us)
    for place, moments in enumerate(zip(starts_us.tolist(), ends_us.tolist(), horizons_us.tolist(), strict=True)):
        window = model.Window(*moments)
        told = (instance.has_a_say(window), instance.heard(window), instance.told(window), instance.complete(window))
        missing = instance.dropped(window), instance.aside(window)
        assert (*(bool(part[place]) for part in judged[:4]), *(part[place] for part in judged[4:6])) == (
            *told,
            *missing,
        )


@given(batches(), st.sampled_from(WINDOWS_MS), HORIZONS)
def test_what_is_forgotten_is_of_windows_gone(sent: list[Sent], before_ms: int, horizons_s: list[int]) -> None:
    """Accounts of the windows that are kept stay as they were; numbers and tallies too, so duplicates stay known."""
    book, _ = _written(EMPTY, sent)
    kept = forget(book, before_ms)
    starts_us = np.array([start for start in WINDOWS_MS if start >= before_ms], np.int64) * 1_000
    windows = starts_us, starts_us + 60 * SECOND_US, starts_us + np.array(horizons_s[: len(starts_us)]) * SECOND_US
    before, after = judge_book(book, *windows), judge_book(kept, *windows)
    assert [part.tolist() for part in before] == [part.tolist() for part in after]
    assert not any(_written(kept, sent)[1])
    assert all(start >= before_ms for start in (*kept.sent, *(start for start, _ in kept.drops)))


@given(st.lists(batches(), min_size=1, max_size=5), HORIZONS)
def test_books_are_judged_together_as_each_is_alone(of_instances: list[list[Sent]], horizons_s: list[int]) -> None:
    """In pieces, in their order."""
    all_books = [_written(EMPTY, sent)[0] for sent in of_instances]
    starts_us = np.array(WINDOWS_MS, np.int64) * 1_000
    windows = starts_us, starts_us + 60 * SECOND_US, starts_us + np.array(horizons_s, np.int64) * SECOND_US
    with patch.object(books, "BOOKS_PER_PIECE", 2):
        pieces = list(judge_books(all_books, *windows))
    assert [book for piece, _ in pieces for book in piece] == all_books
    together = [[part[place].tolist() for part in judged] for piece, judged in pieces for place in range(len(piece))]
    assert together == [[part.tolist() for part in judge_book(book, *windows)] for book in all_books]


@given(batches(), MOMENTS, HORIZONS)
def test_who_is_over_has_no_say_any_more(sent: list[Sent], before_us: int, horizons_s: list[int]) -> None:
    """In no window that starts at that moment or later, and nothing may be hidden there; in the end all are over."""
    book, _ = _written(EMPTY, sent)
    starts_us = np.arange(len(horizons_s), dtype=np.int64) * 60 * SECOND_US + before_us
    horizons_us = starts_us + np.array(horizons_s, np.int64) * SECOND_US
    judged = judge_book(book, starts_us, starts_us + 60 * SECOND_US, horizons_us)
    if is_over(book, before_us):
        parts = judged.has_a_say, judged.heard, judged.dropped, judged.aside, judged.unplaced
        assert not any(part.any() for part in parts)
    assert is_over(book, 4_000 * SECOND_US)


TALLIES: Final = st.builds(InstanceCounts, *[st.integers(0, 99)] * 6)


@given(TALLIES, TALLIES, TALLIES)
def test_tallies_add_up(one: InstanceCounts, other: InstanceCounts, third: InstanceCounts) -> None:
    """Field by field, in any order."""
    assert one.plus(other).plus(third) == third.plus(one.plus(other))
    assert one.plus(other).in_windows == one.in_windows + other.in_windows
    assert one.plus(InstanceCounts()) == one
