"""Tests of how a tap knows that it has caught up: with a moment, and never with more."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.end_offsets import EndOffsets


class Brokers:
    """Say where partitions end, when the test lets them."""

    def __init__(self) -> None:
        """Start with nothing asked."""
        self.asked: list[dict[int, Future[Any]]] = []

    def ask(self, partitions: list[int]) -> dict[int, Future[Any]]:
        """Take a question."""
        self.asked.append({number: Future() for number in partitions})
        return self.asked[-1]

    def answer(self, *ends: int) -> None:
        """Answer the last question."""
        for answer, end in zip(self.asked[-1].values(), ends, strict=True):
            answer.set_result(SimpleNamespace(offset=end))


def test_a_moment_is_caught_up_with_once_all_that_was_there_is_read() -> None:
    """A moment is caught up with once all offsets of then are read, later records or not; it is returned once."""
    brokers = Brokers()
    ends = EndOffsets(brokers.ask)
    assert ends.find_caught_up_us({0: 5, 1: -1}, 0.0, 1_000) is None
    assert ends.find_caught_up_us({0: 9, 1: 9}, 0.1, 1_100) is None
    brokers.answer(10, 3)
    assert ends.find_caught_up_us({0: 9, 1: 9}, 0.2, 1_200) is None
    assert ends.find_caught_up_us({0: 11, 1: 9}, 5.0, 6_000) == 1_000
    assert ends.find_caught_up_us({0: 11, 1: 9}, 5.0, 6_000) is None
    assert len(brokers.asked) == 2


def test_brokers_that_do_not_answer_complete_nothing() -> None:
    """Nor do those that answer with an error; they are asked again."""
    brokers = Brokers()
    ends = EndOffsets(brokers.ask)
    assert [ends.find_caught_up_us({0: 5}, float(at), at) for at in range(10)] == [None] * 10
    assert len(brokers.asked) == 1
    brokers.asked[0][0].set_exception(OSError("gone"))
    assert ends.find_caught_up_us({0: 5}, 10.0, 10) is None
    brokers.answer(5)
    assert ends.find_caught_up_us({0: 5}, 10.1, 11) == 10


def test_other_partitions_are_asked_for_anew() -> None:
    """An answer about those that were read before says nothing of them."""
    brokers = Brokers()
    ends = EndOffsets(brokers.ask)
    ends.find_caught_up_us({0: 5}, 0.0, 1)
    brokers.answer(5)
    ends.reset()
    assert ends.find_caught_up_us({0: 5, 1: -1}, 0.1, 2) is None
    brokers.answer(5, 1)
    assert ends.find_caught_up_us({0: 5, 1: -1}, 0.2, 3) is None
    assert ends.find_caught_up_us({0: 5, 1: 1}, 0.3, 4) == 2


def test_who_has_no_partition_has_nothing_to_catch_up_with() -> None:
    """One of a group of more taps than partitions."""
    ends = EndOffsets(Brokers().ask)
    assert [ends.find_caught_up_us({}, at, int(at)) for at in (1.0, 1.5, 2.0)] == [1, None, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=30))
def test_no_moment_is_said_before_all_that_was_there_then_is_read(acts: list[tuple[int, int, bool]]) -> None:
    """A moment is returned only after all that was written before it was read, in any order of acts."""
    brokers, written, read = Brokers(), 0, 0
    ends = EndOffsets(brokers.ask)
    written_at: dict[int, int] = {}
    for now, (more, further, is_answered) in enumerate(acts):
        written_at[now] = written
        caught_up = ends.find_caught_up_us({0: read}, float(now), now)
        if caught_up is not None:
            assert read >= written_at[caught_up]
        if brokers.asked and is_answered and not brokers.asked[-1][0].done():
            brokers.answer(written)
        written += more
        read = min(written, read + further)
