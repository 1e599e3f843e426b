"""Tests of where members of a group begin; real brokers are in tests/real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.start_offsets import StartOffset, find_start_offsets
from hopwatch.probes.taps.context import RunContext


class Group:
    """Topic and consumer in one, whose partitions end at offset 100, and the offsets that its group has committed."""

    def __init__(self, partitions: int, offsets: dict[int, int] | None = None) -> None:
        """Begin with what was committed before."""
        self.consumer, self.partitions, self.offsets = self, partitions, offsets or {}

    def find_partitions(self, _: str) -> list[int]:
        """Return the partitions."""
        return list(range(self.partitions))

    def committed(self, asked: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        """Return what is committed."""
        return [TopicPartition(one.topic, one.partition, self.offsets.get(one.partition, -1001)) for one in asked]

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        """Return beginning and end."""
        return 0, 100

    def commit(self, offsets: Sequence[TopicPartition], **_: object) -> None:
        """Commit."""
        self.offsets |= {one.partition: one.offset for one in offsets}


def begin(group: Group, *numbers: int, from_start: bool = False) -> dict[int, int]:
    """Return where a member begins with its partitions."""
    around = RunContext(lambda _: None)
    found: dict[int, StartOffset] = find_start_offsets(
        cast("Any", group), KafkaRetry(around), "t", numbers, from_start=from_start, report=around.report
    )
    return {number: start.offset for number, start in found.items()}


def test_members_that_begin_together_begin_at_the_end() -> None:
    """Neither takes its partitions for new ones because the other was faster."""
    group = Group(4)
    assert begin(group, 1, 3) == {1: 100, 3: 100}
    assert begin(group, 0, 2) == {0: 100, 2: 100}


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    """Records that were written to it before the group heard of it are not skipped."""
    group = Group(2)
    begin(group, 0, 1)
    group.partitions = 3
    assert begin(group, 2) == {2: 0}
    assert group.offsets == {0: 100, 1: 100, 2: 0}


@pytest.mark.parametrize("from_start", [False, True])
def test_a_group_goes_on_where_it_was(*, from_start: bool) -> None:
    """Committed offsets count, wherever a new group would begin."""
    assert begin(Group(1, {0: 7}), 0, from_start=from_start) == {0: 7}
    assert begin(Group(1), 0, from_start=True) == {0: 0}
