"""Tests of moves of partitions: a rebalance is told, and partitions that several probes read at once never are."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.partition_moves import (
    CONFIRMED_AFTER_US,
    GRACE_US,
    MAX_TRACKED,
    SHARED_FOR_US,
    PartitionMove,
    PartitionTracker,
)
from hopwatch.monitor.kernel.books import BatchFact
from hopwatch.monitor.payloads import FactSheet

SECOND_US: Final = 1_000_000
GRACE_S, CONFIRMED_AFTER_S = GRACE_US // SECOND_US, CONFIRMED_AFTER_US // SECOND_US
Reading = tuple[int, str, str]
"""Second of arrival, probe and partition of a batch; the partition is empty of one without any."""


def sheet_of(reading: Reading) -> FactSheet:
    """Return the sheet of one batch."""
    second, probe, partition = reading
    at_us = second * SECOND_US
    fact = BatchFact(0, at_us, at_us, at_us, 0, 0, 1, 0, 0)
    partitions = {partition: (at_us, at_us)} if partition else {}
    return FactSheet("s.seg", "orders", "norm", probe, 0, {}, [fact], (), (), partitions)


def moves_of(readings: list[Reading], *, trigger_s: int = 5) -> list[tuple[int, tuple[str, ...]]]:
    """Return second and partitions of the moves that are told, with a micro-batch each so many seconds."""
    tracker, found = PartitionTracker(), list[PartitionMove]()
    last_s = max(second for second, _, _ in readings) + 2 * CONFIRMED_AFTER_S
    pulses = [(second, "pulse", "") for second in range(0, last_s, 3)]
    for start_s in range(0, last_s, trigger_s):
        own = [one for one in [*readings, *pulses] if start_s <= one[0] < start_s + trigger_s]
        found += tracker.absorb([*map(sheet_of, own)])
    assert {(one.stream, one.node) for one in found} <= {("orders", "norm")}
    return [(one.at_us // SECOND_US, one.partitions) for one in found]


@given(
    st.lists(st.integers(60, 200), min_size=1, max_size=4),
    st.integers(1, 20),
    st.integers(0, GRACE_S),
    st.integers(1, 30),
)
def test_each_move_is_told_at_the_first_batch_of_the_new_reader(
    spans_s: list[int], every_s: int, late_s: int, trigger_s: int
) -> None:
    """Once each, however late the last batches of the reader before arrive, within the grace."""
    readings, starts_s, start_s = list[Reading](), list[int](), 0
    for number, span_s in enumerate(spans_s):
        own = [(second, f"p{number}", "3") for second in range(start_s, start_s + span_s, every_s)]
        starts_s.append(start_s)
        start_s += span_s
        readings += [*own, (min(own[-1][0] + late_s, start_s + late_s), f"p{number}", "3")]
    assert moves_of(readings, trigger_s=trigger_s) == [(second, ("3",)) for second in starts_s[1:]]


@given(
    st.lists(
        st.lists(st.integers(3, CONFIRMED_AFTER_S - GRACE_S - 6), min_size=20, max_size=20), min_size=2, max_size=3
    ),
    st.integers(1, 5),
)
def test_a_partition_that_probes_read_at_once_never_moves(gaps_s: list[list[int]], trigger_s: int) -> None:
    """As of two topics, whose partitions have the same numbers."""
    readings = []
    for number, gaps in enumerate(gaps_s):
        second = 0
        for gap_s in gaps:
            second += gap_s
            readings.append((second, f"p{number}", "3"))
    end_s = min(max(second for second, probe, _ in readings if probe == f"p{number}") for number in range(len(gaps_s)))
    assert not moves_of([one for one in readings if one[0] <= end_s], trigger_s=trigger_s)


def test_one_rebalance_is_one_move_of_many_partitions() -> None:
    """With their names in order; a partition that stays is not named."""
    before = [(second, "p", partition) for second in range(0, 60, 5) for partition in ("2", "10", "0")]
    after = [(second, "p" if partition == "0" else "q", partition) for second, _, partition in before]
    later = [(60 + second, probe, partition) for second, probe, partition in after]
    assert moves_of([*before, *later]) == [(60, ("2", "10"))]


def test_a_probe_that_starts_again_under_its_name_moves_nothing() -> None:
    """Its restart is told by itself."""
    assert not moves_of([(second, "p", "3") for second in (*range(0, 60, 5), *range(200, 260, 5))])


def test_a_partition_that_comes_back_is_told_once() -> None:
    """So is one that two slow topics have in common; later it moves again."""
    turns_s = [0, 100, 200, 300, 400]
    readings = [(second, "pq"[number % 2], "3") for number, second in enumerate(turns_s)]
    assert moves_of(readings) == [(100, ("3",))]
    later_s = turns_s[-1] + SHARED_FOR_US // SECOND_US + 100
    assert moves_of([*readings, (later_s, "r", "3")]) == [(100, ("3",)), (later_s, ("3",))]


def test_partitions_that_are_tracked_are_bounded() -> None:
    """Of those that come later no move is told."""
    tracker = PartitionTracker()
    tracker.absorb([sheet_of((0, "p", f"{number}")) for number in range(MAX_TRACKED + 1)])
    tracker.absorb([sheet_of((10, "q", f"{number}")) for number in range(MAX_TRACKED + 1)])
    (found,) = tracker.absorb([sheet_of((100, "pulse", ""))])
    assert len(tracker.partitions) == len(found.partitions) == MAX_TRACKED
    assert all(first != second for first, second in pairwise(found.partitions))
