"""Messages of a micro-batch, each as often as the data has it, however often Spark evaluated the plan.

An action evaluates the plan, and two actions evaluate it twice; a stage that has lost its output runs again, in parts.
An evaluation has each message as often as the data has it, so the largest number over all evaluations is that number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.spark.task_stamps import TaskStamps
from hopwatch.probes.tables.message_rows import BadRow, MessageRows, concatenate_rows

_MULTIPLIERS: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)
"""Odd numbers that spread the parts of a message over 64 bits."""


class StampedRows(NamedTuple):
    """Messages in an order of their own, with their moments in µs since 1970; ``unkept`` as in :class:`TaskStamps`."""

    rows: MessageRows
    stamped_us: NDArray[np.int64]
    unkept: Counter[int | None]


def merge_evaluations(parts: Iterable[TaskStamps]) -> StampedRows | None:
    """Return the messages that tasks stamped at one point for one micro-batch; None without any."""
    evaluations = [_sort(tasks) for tasks in _group(parts)]
    if not evaluations:
        return None
    first = evaluations[0]
    bad: Counter[BadRow] = Counter()
    unkept: Counter[int | None] = Counter()
    for found in evaluations:
        bad |= found.rows.bad
        unkept |= found.unkept
    if all(_are_equal(first.rows, found.rows) for found in evaluations[1:]):
        return StampedRows(first.rows.with_bad(bad), first.stamped_us, unkept)
    rows = concatenate_rows([found.rows for found in evaluations]).with_bad(bad)
    numbers = np.concatenate([_count_before(_build_keys(found.rows)) for found in evaluations])
    # The first of equal rows is that of the earliest evaluation.
    _, chosen = np.unique(np.column_stack([_build_keys(rows), numbers]), axis=0, return_index=True)
    order = np.sort(chosen)
    stamped_us = np.concatenate([found.stamped_us for found in evaluations])
    return _select_sorted(rows.select(order), stamped_us[order], unkept)


def _are_equal(one: MessageRows, other: MessageRows) -> bool:
    return (
        np.array_equal(one.ids, other.ids)
        and np.array_equal(one.events_us, other.events_us)
        and np.array_equal(one.id_kinds, other.id_kinds)
    )


def _group(parts: Iterable[TaskStamps]) -> list[list[TaskStamps]]:
    """Return the parts of each evaluation, in the order in which they ran: of a stage, and of its n-th attempts."""
    attempts: dict[tuple[int, int], dict[int, TaskStamps]] = defaultdict(dict)
    for part in parts:
        attempts[part.stage, part.partition][part.attempt] = part
    evaluations: dict[tuple[int, int], list[TaskStamps]] = defaultdict(list)
    for (stage, _), found in sorted(attempts.items()):
        for time, attempt in enumerate(sorted(found)):
            evaluations[stage, time].append(found[attempt])
    return [evaluations[key] for key in sorted(evaluations)]


def _sort(tasks: Sequence[TaskStamps]) -> StampedRows:
    """Return the messages of the tasks of one evaluation, of which there is at least one."""
    rows = concatenate_rows([task.rows for task in tasks])
    stamped_us = np.concatenate([np.full(len(task.rows), task.stamped_us) for task in tasks])
    unkept: Counter[int | None] = sum((task.unkept for task in tasks), Counter())
    return _select_sorted(rows, stamped_us, unkept)


def _select_sorted(rows: MessageRows, stamped_us: NDArray[np.int64], unkept: Counter[int | None]) -> StampedRows:
    order = _find_order(rows)
    return StampedRows(rows.select(order), stamped_us[order], unkept)


def _find_order(rows: MessageRows) -> NDArray[np.int64]:
    """Return an order in which equal messages stand together, and which depends on the messages alone."""
    parts = _list_parts(rows)
    mixed = np.zeros(len(rows), np.uint64)
    for part, multiplier in zip(parts, _MULTIPLIERS, strict=True):
        mixed += part * multiplier
    order = np.argsort(mixed, kind="stable")
    mixed = mixed[order]
    alike = np.flatnonzero(mixed[1:] == mixed[:-1])
    if any((part[order[alike]] != part[order[alike + 1]]).any() for part in parts):
        # Two messages with one number: slower, and exact.
        return np.lexsort(_build_keys(rows).T)
    return order


def _list_parts(rows: MessageRows) -> list[NDArray[np.uint64]]:
    """Return what tells messages apart."""
    return [rows.ids[:, 0], rows.ids[:, 1], rows.events_us.view(np.uint64), rows.id_kinds.astype(np.uint64)]


def _build_keys(rows: MessageRows) -> NDArray[np.uint64]:
    """Return the same as one array, (n, 4)."""
    return np.column_stack(_list_parts(rows))


def _count_before(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return how many equal messages are before each one of sorted ones."""
    places = np.arange(len(keys))
    is_first = np.ones(len(keys), bool)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return (places - np.maximum.accumulate(np.where(is_first, places, 0))).astype(np.uint64)
