"""Laws and examples of the offsets that are settled out of order, and of their encoding."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.offset_metadata import MAX_METADATA_CHARS, decode_settled, encode_settled
from hopwatch.deliver.offset_tracker import OffsetTracker, PartitionCommit, PartitionOffsets

positions = st.integers(0, 2**40)
steps = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), max_size=60)


def build_ranges(position: int, gaps: list[tuple[int, int]]) -> list[range]:
    """Return ranges behind a position with these gaps and lengths."""
    found, at = [], position
    for gap, length in gaps:
        found.append(range(at + gap, at + gap + length))
        at = found[-1].stop
    return found


def flatten(ranges: list[range]) -> list[int]:
    """Return all offsets of ranges."""
    return [offset for one in ranges for offset in one]


@given(positions, steps)
def test_settled_offsets_are_encoded_whole_where_they_fit(position: int, gaps: list[tuple[int, int]]) -> None:
    """Decoding returns the settled offsets that were encoded."""
    ranges = build_ranges(position, gaps)
    assert decode_settled(position, encode_settled(position, ranges)) == ranges


@given(positions, steps, st.integers(0, 60))
def test_the_lowest_offsets_are_kept_where_not_all_fit(
    position: int, gaps: list[tuple[int, int]], max_chars: int
) -> None:
    """The text is as short as asked, and holds a beginning of what was settled, and nothing else."""
    ranges = build_ranges(position, gaps)
    encoded = encode_settled(position, ranges, max_chars)
    decoded = flatten(decode_settled(position, encoded))
    assert len(encoded) <= max_chars
    assert decoded == flatten(ranges)[: len(decoded)]


def test_the_default_bound_holds_ten_thousand_offsets() -> None:
    """Every second of 10,000 messages in hand fits, and so do 10 gaps of a million."""
    every_second = [range(at, at + 1) for at in range(1, 20_000, 2)]
    encoded = encode_settled(0, every_second)
    assert len(encoded) <= MAX_METADATA_CHARS
    assert decode_settled(0, encoded) == every_second
    millions = [range(at + 1, at + 1_000_000) for at in range(0, 10_000_000, 1_000_000)]
    assert len(encode_settled(0, millions)) < 120


@given(positions, steps.filter(bool), st.data())
def test_damaged_metadata_holds_nothing(position: int, gaps: list[tuple[int, int]], data: st.DataObject) -> None:
    """Another position, or one other character, makes it no metadata of ours: no message is skipped by mistake."""
    encoded = encode_settled(position, build_ranges(position, gaps))
    assert decode_settled(position + 1, encoded) == []
    at = data.draw(st.integers(0, len(encoded) - 1))
    other = data.draw(st.sampled_from("ABCabc019+/br= "))
    damaged = encoded[:at] + other + encoded[at + 1 :]
    assert damaged == encoded or decode_settled(position, damaged) in ([], build_ranges(position, gaps))


@given(positions, st.text(max_size=200))
def test_foreign_metadata_holds_nothing(position: int, metadata: str) -> None:
    """Metadata of another program names no settled offset."""
    assert decode_settled(position, metadata) == []
    assert decode_settled(position, "hw1b" + metadata) == []


def test_ranges_that_make_no_sense_are_refused() -> None:
    """The text names them."""
    with pytest.raises(ValueError, match=r"ascending ranges, got \[range\(5, 7\), range\(6, 8\)\]"):
        encode_settled(0, [range(5, 7), range(6, 8)])
    with pytest.raises(ValueError, match="lie behind the committed one, got 3 behind 4"):
        encode_settled(4, [range(3, 5)])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.randoms(use_true_random=False), st.integers(0, 40))
def test_a_restart_sends_what_is_not_settled_and_nothing_else(gaps: list[int], chance: object, settled: int) -> None:
    """The commit never passes an unsettled message, and after it each message is new if and only if it is unsettled."""
    offsets = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    tracker = PartitionOffsets(0)
    assert all(tracker.take_message(offset) for offset in offsets)
    order = list(offsets)
    getattr(chance, "shuffle")(order)  # noqa: B009 - hypothesis does not export its type
    done = set(order[:settled])
    for offset in order[:settled]:
        tracker.settle_message(offset)
    left = [offset for offset in offsets if offset not in done]
    assert tracker.position == (left[0] if left else offsets[-1] + 1)
    assert tracker.unsettled_count == len(left)
    again = PartitionOffsets(tracker.position, tracker.encode_metadata())
    assert [offset for offset in offsets if offset >= again.position and again.take_message(offset)] == left
    assert (again.position, again.encode_metadata()) == (tracker.position, tracker.encode_metadata())


def test_a_second_restart_remembers_what_was_not_read_again() -> None:
    """Offsets that were settled before a restart stay so in the commits before they are read."""
    first = PartitionOffsets(0)
    for offset in range(10):
        first.take_message(offset)
    for offset in (3, 7, 8):
        first.settle_message(offset)
    second = PartitionOffsets(first.position, first.encode_metadata())
    assert second.take_message(0)
    second.settle_message(0)
    third = PartitionOffsets(second.position, second.encode_metadata())
    assert third.list_settled() == [range(3, 4), range(7, 9)]


def test_each_offset_is_taken_and_settled_once() -> None:
    """An offset that does not ascend, and one that is not in hand, are faults of the caller."""
    tracker = PartitionOffsets(5)
    tracker.take_message(6)
    tracker.settle_message(6)
    with pytest.raises(ValueError, match="offsets of a partition ascend, got 6 where 7 or more comes next"):
        tracker.take_message(6)
    with pytest.raises(ValueError, match="offset 6 is settled already, or was never taken"):
        tracker.settle_message(6)


def test_the_window_is_bounded() -> None:
    """Behind a message that is not settled no more than so many are taken."""
    tracker = PartitionOffsets(0, max_window=3)
    for offset in range(3):
        assert tracker.has_room
        tracker.take_message(offset)
    tracker.settle_message(1)
    assert not tracker.has_room
    with pytest.raises(ValueError, match="3 messages wait behind offset 0: settle it first"):
        tracker.take_message(3)
    tracker.settle_message(0)
    assert tracker.has_room


def test_commits_are_those_that_changed() -> None:
    """A partition is committed when something of it was settled since the last commit, as long as it is here."""
    tracker = OffsetTracker()
    for partition in range(3):
        tracker.assign_partition("orders", partition, 100)
        assert tracker.take_message("orders", partition, 100)
        assert tracker.has_room("orders", partition)
    assert tracker.list_commits() == []
    tracker.settle_message("orders", 0, 100)
    tracker.settle_message("orders", 1, 100)
    tracker.revoke_partition("orders", 1)
    assert not tracker.has_partition("orders", 1)
    assert tracker.list_commits() == [PartitionCommit("orders", 0, 101, "")]
    tracker.clear_changes()
    assert tracker.list_commits() == []


def test_metadata_of_another_format_of_ours_is_ignored() -> None:
    """A later version's letter holds nothing for this one."""
    assert decode_settled(0, "hw1z" + base64.b64encode(b"12345").decode()) == []
