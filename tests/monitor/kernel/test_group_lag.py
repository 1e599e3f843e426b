"""Tests of the lag of a consumer group in a topic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.group_lag import GroupLag, PartitionLag, measure_lag

OFFSETS = st.integers(0, 50)


@given(OFFSETS, OFFSETS, OFFSETS)
def test_lag_is_what_can_still_be_read(start: int, length: int, committed: int) -> None:
    """And deleted is what was there, was not read, and is there no more; an end before the group's offset is no lag."""
    end = start + length
    found = measure_lag(3, committed, start, end)
    assert found[:3] == (3, committed, end)
    assert found.lag == len([offset for offset in range(start, end) if offset >= committed])
    assert found.deleted == len([offset for offset in range(start) if offset >= committed])


@given(OFFSETS, OFFSETS)
def test_a_group_that_has_committed_nothing_has_all_before_it(start: int, length: int) -> None:
    """Nothing says that it began before what was deleted."""
    assert measure_lag(0, -1001, start, start + length) == PartitionLag(0, None, start + length, length, 0)


def test_a_group_has_the_lag_of_all_partitions() -> None:
    """So has what programs read."""
    partitions = measure_lag(0, 2, 5, 9), measure_lag(1, -1001, 0, 7)
    found = GroupLag("b", "a", "orders", "g", partitions)
    assert (found.lag, found.deleted) == (11, 3)
    assert found.to_json() == {
        "node": "b",
        "source": "a",
        "topic": "orders",
        "group": "g",
        "lag": 11,
        "deleted": 3,
        "partitions": [
            {"partition": 0, "committed": 2, "end": 9, "lag": 4, "deleted": 3},
            {"partition": 1, "committed": None, "end": 7, "lag": 7, "deleted": 0},
        ],
    }
