"""Tests of assigned partitions: nothing is settled into a partition that was revoked, nothing is taken twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.assignment import Assignment
from hopwatch.deliver.kafka_records import HeldRecord
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.gate.start_offsets import StartOffset

KEY = ("t", 0)


def held(offset: int, until_us: int = 0) -> HeldRecord:
    """Return a record at an offset."""
    message = DeliveryMessage(SourcePosition("t", 0, offset), str(offset), 1, None, b"")
    return HeldRecord(message, b"0" * 16, [], until_us)


def settle(assignment: Assignment, *offsets: int) -> list[int]:
    """Settle offsets, and return those that counted."""
    found = assignment.settle_records([Settlement(held(one).message, Ending.DELIVERED, 1) for one in offsets])
    return [one.held.message.position.offset for one in found]


def test_a_settlement_of_a_revoked_partition_counts_for_nothing() -> None:
    """Neither while it is away, nor for the next assignment, where its record was not taken yet."""
    assignment = Assignment()
    assignment.add_partition(KEY, StartOffset(5))
    assert assignment.take_record(held(5))
    assert assignment.remove_partitions([KEY]) == 1
    assert settle(assignment, 5) == []
    assignment.add_partition(KEY, StartOffset(5, 5))
    assert settle(assignment, 5) == []
    assert assignment.take_record(held(5))
    assert settle(assignment, 5, 5) == [5]


def test_what_was_settled_before_a_revocation_is_not_written_after_it() -> None:
    """A transaction that failed is tried again without the partitions that went meanwhile."""
    assignment = Assignment()
    assignment.add_partition(KEY, StartOffset(0))
    assignment.take_record(held(0))
    settled = assignment.settle_records([Settlement(held(0).message, Ending.DELIVERED, 1)])
    assert assignment.filter_assigned(settled) == settled
    assignment.remove_partitions([KEY])
    assignment.add_partition(KEY, StartOffset(0, 0))
    assert assignment.filter_assigned(settled) == []


def test_a_long_wait_in_hand_is_stamped_and_stamped_anew() -> None:
    """Once it is long in all, then once a minute, and for records in hand alone."""
    assignment = Assignment()
    one, other, second_us = held(5), held(6), 1_000_000

    def note(now_s: int, until_s: int) -> list[HeldRecord]:
        messages = [one.message._replace(tries=3), other.message]
        return assignment.note_wait(messages, now_s * second_us, until_s * second_us)

    assignment.add_partition(KEY, StartOffset(5))
    assert assignment.take_record(one)
    assert note(100, 105) == []
    assert note(105, 120) == []
    assert assignment.take_record(other)
    assert note(110, 121) == [one]
    assert note(180, 181) == [other]
    assert note(181, 182) == [one]
    settle(assignment, 5)
    assert note(300, 301) == [other]
    assignment.remove_partitions([KEY])
    assert note(999, 1_000) == []


def test_messages_of_a_partition_that_went_are_told_from_those_that_were_taken_since() -> None:
    """Though they are of the same place."""
    assignment = Assignment()
    before, after = held(5), held(5)
    assignment.add_partition(KEY, StartOffset(5))
    assert assignment.take_record(before)
    assert assignment.filter_held([before.message]) == [before.message]
    assignment.remove_partitions([KEY])
    assert assignment.filter_held([before.message]) == []
    assignment.add_partition(KEY, StartOffset(5, 5))
    assert assignment.take_record(after)
    assert [one is after.message for one in assignment.filter_held([before.message, after.message])] == [True]


def test_a_record_that_is_not_due_holds_its_partition_back() -> None:
    """Those behind it wait, and it is the next one when its time has come."""
    assignment = Assignment()
    assignment.add_partition(KEY, StartOffset(0))
    assignment.put_back(held(0, 50), 50)
    assert assignment.find_held_back() == {KEY}
    assert not assignment.is_new(KEY, 0)
    assignment.release_due(49)
    assert assignment.find_held_back() == {KEY}
    assignment.release_due(50)
    assert assignment.find_wanted(KEY) == 0
    assert not assignment.is_new(KEY, 1)
    assert assignment.is_new(KEY, 0)
    assert assignment.take_record(held(0))
    assert assignment.is_new(KEY, 1)


@given(st.data())
def test_the_next_owner_takes_what_was_not_settled_and_nothing_else(data: st.DataObject) -> None:
    """From offset and metadata of the commit, whatever was settled out of order; offsets may have gaps."""
    offsets = sorted(data.draw(st.sets(st.integers(0, 300), min_size=1, max_size=60), label="offsets"))
    done = data.draw(st.sets(st.sampled_from(offsets), min_size=1), label="settled")
    first = Assignment()
    first.add_partition(KEY, StartOffset(0))
    assert all(first.take_record(held(one)) for one in offsets)
    settled = first.settle_records([Settlement(held(one).message, Ending.DELIVERED, 1) for one in sorted(done)])
    (commit,) = first.find_offsets(settled)
    assert commit.offset <= min({*offsets} - done, default=offsets[-1] + 1)
    later = Assignment()
    later.add_partition(KEY, StartOffset(commit.offset, commit.offset, commit.metadata or ""))
    taken = {one for one in offsets if later.is_new(KEY, one) and later.take_record(held(one))}
    assert taken == {*offsets} - done
