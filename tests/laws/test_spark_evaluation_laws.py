"""Laws of the stamps of Spark tasks: however often a plan is evaluated, each message counts as often as it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.spark.evaluations import StampedRows, merge_evaluations
from hopwatch.probes.spark.task_stamps import MicroBatch, TaskStamps
from hopwatch.probes.tables.message_rows import BadRow, MessageRows
from hopwatch.probes.values import SkipReason

Message = tuple[int, int]
NOW_US: Final = 1_790_000_000_000_000
MESSAGES: Final = st.tuples(st.integers(0, 5), st.integers(NOW_US - 2, NOW_US))
PARTITIONS: Final = st.lists(st.lists(MESSAGES, max_size=6), min_size=1, max_size=4)


def build_task(stage: int, partition: int, attempt: int, messages: Sequence[Message]) -> TaskStamps:
    """Return what a task adds; two rows of each task have no id."""
    ids = np.array([(0, number) for number, _ in messages], np.uint64).reshape(-1, 2)
    events_us = np.array([event_us for _, event_us in messages], np.int64)
    bad: Counter[BadRow] = Counter({(SkipReason.NO_ID, NOW_US): 2})
    rows = MessageRows(ids, events_us, np.full(len(messages), 2, np.uint8), (), bad)
    return TaskStamps(0, MicroBatch(), stage, partition, attempt, rows, NOW_US + stage, Counter({None: 1}))


def count_messages(found: StampedRows) -> Counter[Message]:
    """Return how often each message was found."""
    return Counter(zip(found.rows.ids[:, 1].tolist(), found.rows.events_us.tolist(), strict=True))


@given(PARTITIONS, st.data())
def test_each_message_counts_as_often_as_the_data_has_it(partitions: list[list[Message]], data: st.DataObject) -> None:
    """Stages that run again, wholly or in part, tasks that run twice, and rows in another order change nothing."""
    truth = Counter(message for messages in partitions for message in messages)
    parts: list[TaskStamps] = []
    for stage in range(data.draw(st.integers(1, 3), "actions")):
        for partition, messages in enumerate(partitions):
            for _ in range(data.draw(st.integers(1 if stage == 0 else 0, 3), "runs of a task")):
                shuffled = data.draw(st.permutations(messages))
                parts.append(build_task(stage, partition, len(parts), shuffled))
    found = merge_evaluations(data.draw(st.permutations(parts)))
    assert found is not None
    assert count_messages(found) == truth
    assert found.rows.bad == {(SkipReason.NO_ID, NOW_US): 2 * len(partitions)}
    assert found.unkept == {None: len(partitions)}
    assert set(found.stamped_us.tolist()) <= {NOW_US}


@given(PARTITIONS, st.data())
def test_messages_stand_in_an_order_that_depends_on_them_alone(
    partitions: list[list[Message]], data: st.DataObject
) -> None:
    """Equal messages of other partitions, in another order, make equal arrays."""
    messages = data.draw(st.permutations([message for part in partitions for message in part]))
    spread = [build_task(0, place, place, part) for place, part in enumerate(partitions)]
    one, other = merge_evaluations(spread), merge_evaluations([build_task(7, 0, 0, messages)])
    assert one is not None
    assert other is not None
    assert one.rows.ids.tolist() == other.rows.ids.tolist()
    assert one.rows.events_us.tolist() == other.rows.events_us.tolist()


@given(st.lists(PARTITIONS, min_size=1, max_size=3))
def test_no_message_of_any_evaluation_is_left_out(evaluations: list[list[list[Message]]]) -> None:
    """In a plan that is not deterministic each message counts as often as in the evaluation with most of it."""
    parts = [
        build_task(stage, place, place, messages)
        for stage, partitions in enumerate(evaluations)
        for place, messages in enumerate(partitions)
    ]
    expected: Counter[Message] = Counter()
    for partitions in evaluations:
        expected |= Counter(message for messages in partitions for message in messages)
    found = merge_evaluations(parts)
    assert found is not None
    assert count_messages(found) == expected


def test_without_a_task_there_is_nothing() -> None:
    """No part makes no messages."""
    assert merge_evaluations([]) is None


def test_two_messages_with_one_number_are_told_apart() -> None:
    """The number by which messages are sorted quickly may be that of two: their order is exact even then."""
    # Both ids times their odd numbers are equal modulo 2^64.
    first, second = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    one, other = (second, 0), (0, first)
    tasks = []
    for place, ids in enumerate(([one, other, one], [other, one, one])):
        rows = MessageRows(np.array(ids, np.uint64), np.full(3, NOW_US), np.zeros(3, np.uint8), (), Counter())
        tasks.append(TaskStamps(0, MicroBatch(), place, 0, place, rows, NOW_US, Counter()))
    found = merge_evaluations(tasks)
    assert found is not None
    assert Counter(map(tuple, found.rows.ids.tolist())) == {one: 2, other: 1}
