"""Laws of the wait that offsets alone show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.throttle.queue_wait import MAX_LOOKS, GroupOffsets, QueueWait

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40)
"""Messages that enter and that leave, in each second."""


@given(STEPS, st.integers(0, 1_000))
def test_the_wait_is_that_of_the_oldest_message_at_least(steps: list[tuple[int, int]], begin: int) -> None:
    """Of the oldest message to a second, or of one that enters now, at the rate of commits."""
    wait, arrived_s, end, at = QueueWait(200, 15), [], begin, begin
    figures = wait.observe(0.0, GroupOffsets({0: end}, {0: at}))
    assert figures.wait_s == 0
    for second, (entered, left) in enumerate(steps, 1):
        arrived_s += [second] * entered
        end += entered
        at = min(at + left, end)
        figures = wait.observe(float(second), GroupOffsets({0: end}, {0: at}))
        if end - at > 1:
            oldest_s = second - arrived_s[at - begin]
            newest_s = (end - at) / figures.left_per_s if figures.left_per_s else 0
            assert max(oldest_s, newest_s) <= figures.wait_s <= max(oldest_s + 1, newest_s)
        else:
            assert figures.wait_s == 0


@given(STEPS, st.integers(0, 1_000))
def test_the_slowest_partition_decides(steps: list[tuple[int, int]], other: int) -> None:
    """Beside partitions that nobody lags behind in, the wait is that of the one that lags."""
    alone, beside = QueueWait(200, 15), QueueWait(200, 15)
    alone.observe(0.0, GroupOffsets({3: 0}, {3: 0}))
    beside.observe(0.0, GroupOffsets({3: 0, 7: other}, {3: 0, 7: other}))
    end = at = 0
    for second, (entered, left) in enumerate(steps, 1):
        end += entered
        at = min(at + left, end)
        figures = beside.observe(float(second), GroupOffsets({3: end, 7: other}, {3: at, 7: other}))
        assert figures == alone.observe(float(second), GroupOffsets({3: end}, {3: at}))


def test_a_wait_from_before_the_first_look_is_that_of_the_rate_at_which_messages_leave() -> None:
    """A gate that starts with a backlog of 1,000 of which 10 leave in a second knows that the last one waits 90 s."""
    wait = QueueWait(300, 15)
    looks = [wait.observe(float(second), GroupOffsets({0: 1_000}, {0: 10 * second})) for second in range(11)]
    assert looks[-1] == (90, 0, 10)


def test_a_wait_beyond_the_history_is_told_as_its_length() -> None:
    """No more is remembered, so that it costs the same whatever the wait."""
    wait = QueueWait(20, 15)
    looks = [wait.observe(float(second), GroupOffsets({0: 10 * second}, {0: 5})) for second in range(100)]
    assert 20 <= looks[-1].wait_s <= 21


@pytest.mark.parametrize("committed", [{}, {0: -1001}, {0: 99}], ids=["unknown", "none", "mark"])
def test_what_no_consumer_has_said_is_no_wait(committed: dict[int, int]) -> None:
    """A partition without a commit, or the mark of a transaction behind the last message, holds nobody up."""
    wait = QueueWait(20, 15)
    for second in range(100):
        assert wait.observe(float(second), GroupOffsets({0: 100}, committed)).wait_s == 0


def test_a_long_history_has_few_looks_and_rates_of_the_last_seconds() -> None:
    """A target of an hour costs no more than one of a minute, and several gates still know their shares."""
    wait = QueueWait(3 * 3_600, 15)
    looks = [wait.observe(float(second), GroupOffsets({0: 20 * second}, {0: 10 * second})) for second in range(2_000)]
    assert len(wait._looks) <= MAX_LOOKS + 2
    assert (looks[-1].entered_per_s, looks[-1].left_per_s) == (20, 10)
    assert looks[-1].wait_s == 1_999
    short = GroupOffsets({0: 40_000}, {0: 39_000})
    assert wait.observe(2_000.0, short).wait_s == pytest.approx(50, abs=3 * 3_600 / MAX_LOOKS)


def test_a_topic_that_was_made_again_has_no_past() -> None:
    """Its consumers are not behind by what the old one had."""
    wait = QueueWait(200, 15)
    for second in range(50):
        wait.observe(float(second), GroupOffsets({0: 100 * second}, {0: 100 * second}))
    assert wait.observe(50.0, GroupOffsets({0: 5}, {0: 2})).wait_s == 0
    assert wait.observe(51.0, GroupOffsets({0: 9}, {0: 2})).wait_s == 1


def test_partitions_that_are_new_or_cut_do_not_count_as_traffic() -> None:
    """An offset that goes back, as in a topic that was made again, is no negative rate."""
    wait = QueueWait(20, 15)
    wait.observe(0.0, GroupOffsets({0: 100}, {0: 100}))
    figures = wait.observe(1.0, GroupOffsets({0: 10, 1: 500}, {0: 10, 1: 500}))
    assert figures == (0.0, 0.0, None)
