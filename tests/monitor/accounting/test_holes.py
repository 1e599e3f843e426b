"""Tests of holes: what was to be read, less what was; and the windows that a hole may hide something of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.holes import Hole, PlannedRead, find_holes, find_touched_windows, read_through_us
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.payloads import OffsetRun
from hopwatch.probes.contract.limits import WINDOW_US

PLANNED_US = 900
RUNS = {
    "all was read": ((0, 10), [(0, 9)], []),
    "nothing was to be read": ((5, 5), [], []),
    "the beginning has aged out": ((0, 10), [(4, 9)], [(0, 3, 50, 104)]),
    "all has aged out": ((0, 10), [], [(0, 9, 50, PLANNED_US)]),
    "the middle, while it was read": ((0, 10), [(0, 3), (6, 9)], [(4, 5, 103, 106)]),
    "the end": ((0, 10), [(0, 3)], [(4, 9, 103, PLANNED_US)]),
    "two tasks share a partition": ((0, 10), [(5, 9), (0, 4)], []),
}


@pytest.mark.parametrize(("planned", "read", "missing"), RUNS.values(), ids=RUNS)
def test_what_is_missing_is_told_with_its_offsets_and_when_it_arrived(
    planned: tuple[int, int], read: list[tuple[int, int]], missing: list[tuple[int, int, int, int]]
) -> None:
    """A hole has its offsets, and the bounds of its arrival from the records read around it or the plan."""
    runs = [OffsetRun("t/0", first, last, 100 + first, 100 + last) for first, last in read]
    holes = find_holes(PlannedRead({"t/0": planned}, PLANNED_US), runs, {"t/0": 50})
    assert list(holes) == [Hole("t/0", *hole) for hole in missing]


def test_a_driver_whose_clock_is_behind_shortens_no_hole() -> None:
    """The end of a batch arrived no later than the newest record of all that was read, or than the plan."""
    runs = [OffsetRun("t/1", 0, 4, 100, 5_000)]
    assert list(find_holes(PlannedRead({"t/0": (0, 3), "t/1": (0, 5)}, 7), runs, {})) == [Hole("t/0", 0, 2, 0, 5_000)]
    assert list(find_holes(PlannedRead({"t/0": (0, 3)}, 7), [], {"t/1": 6_000})) == [Hole("t/0", 0, 2, 0, 6_000)]


def test_of_a_place_that_nothing_was_read_from_the_hole_begins_with_time() -> None:
    """Nobody knows when its first record came."""
    assert list(find_holes(PlannedRead({"t/1": (0, 3)}, 7), [], {"t/0": 5})) == [Hole("t/1", 0, 2, 0, 7)]


@given(st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_read_and_missing_make_up_what_was_to_be_read(read: set[int], end: int) -> None:
    """Each offset is one or the other, whichever they are."""
    runs: list[OffsetRun] = []
    for offset in sorted(offset for offset in read if offset < end):
        if runs and runs[-1].last + 1 == offset:
            runs[-1] = runs[-1].longer(offset, offset)
        else:
            runs.append(OffsetRun("t/0", offset, offset, offset, offset))
    missing = [
        at
        for hole in find_holes(PlannedRead({"t/0": (0, end)}, end), runs, {})
        for at in range(hole.first, hole.last + 1)
    ]
    assert missing == sorted(set(range(end)) - read)


def test_what_is_judged_waits_for_the_partition_that_is_behind() -> None:
    """In a batch of limited size the others may be far ahead; one that was read to its end keeps nobody waiting."""
    runs = [OffsetRun("t/0", 0, 4, 10, 90), OffsetRun("t/1", 0, 2, 10, 30), OffsetRun("t/1", 3, 4, 31, 40)]
    ranges = {"t/0": (0, 5), "t/1": (0, 5), "t/2": (7, 7)}
    assert read_through_us(PlannedRead(ranges, 100, is_limited=True), runs) == 40
    assert read_through_us(PlannedRead(ranges, 100), runs) == NEVER_US
    assert read_through_us(PlannedRead(ranges, 100, is_limited=True), runs[:1]) == 0
    assert read_through_us(PlannedRead({"t/2": (7, 7)}, 100, is_limited=True), []) == NEVER_US


TERMS = WindowPolicy(transit_us=20_000_000, settle_us=10_000_000, amend_for_us=0, max_age_us=10**12)


STARTS = np.arange(10) * WINDOW_US
SETTLED_AT = np.array([TERMS.settled_at_us(start_us, 0) for start_us in STARTS.tolist()])


def test_a_hole_touches_the_windows_that_were_being_filled() -> None:
    """From five minutes before a window's start until it is judged, both ends included."""
    hole = Hole("t/0", 0, 9, 150_000_000, 200_000_000)
    assert np.flatnonzero(find_touched_windows([hole], STARTS, SETTLED_AT)).tolist() == list(range(1, 9))
    assert not find_touched_windows([], STARTS, SETTLED_AT).any()
    ends = Hole("t/0", 0, 9, TERMS.final_at_us(0), 2 * WINDOW_US)
    assert np.flatnonzero(find_touched_windows([ends], STARTS, SETTLED_AT)).tolist() == list(range(8))


def test_a_hole_touches_a_window_whose_messages_come_late() -> None:
    """Until nothing of it is in flight any more, however long ago it was judged for the first time."""
    hole = Hole("t/0", 0, 9, 1_000_000_000, 1_000_000_000)
    late_us = TERMS.settled_at_us(2 * WINDOW_US, 990_000_000)
    settled_at = np.where(STARTS == 2 * WINDOW_US, late_us, SETTLED_AT)
    assert np.flatnonzero(find_touched_windows([hole], STARTS, settled_at)).tolist() == [2]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=8),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8),
)
def test_many_holes_touch_what_each_of_them_touches(
    spans: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    """Many holes touch the windows that each of them touches, and none touch no window."""
    minute = WINDOW_US
    holes = [Hole("t/0", 0, 0, start * minute, (start + length) * minute) for start, length in spans]
    starts, settled_at = (np.array(moments, np.int64) * minute for moments in zip(*windows, strict=True))
    each = [find_touched_windows([hole], starts, settled_at) for hole in holes]
    expected = [any(found[place] for found in each) for place in range(len(starts))]
    assert find_touched_windows(holes, starts, settled_at).tolist() == expected
