"""Tests of the stamps of a Spark task, without Spark: rows that cannot be read end no job."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Final

import pyarrow as pa
import pytest

from hopwatch.probes.spark.task_stamps import MicroBatch, RowReader, StampPoint, StampsParam, TaskStamps
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.values import SkipReason
from hopwatch.testing import EPOCH_US

POINT: Final = StampPoint(3, RowMapping("id", "time"))
NUMBERS: Final = pa.array([1, 2, None])
TIMES: Final = pa.array([EPOCH_US, None, EPOCH_US + 60_000_000])


def build_context(**properties: str) -> SimpleNamespace:
    """Return the context of a task."""
    return SimpleNamespace(
        getLocalProperty=properties.get, stageId=lambda: 5, partitionId=lambda: 2, taskAttemptId=lambda: 9
    )


def read(
    *batches: tuple[pa.Array, ...], point: StampPoint = POINT, properties: dict[str, str] | None = None
) -> TaskStamps:
    """Return the stamps of a task that read some batches."""
    reader = RowReader(point)
    for batch in batches:
        reader.read(batch)
    (found,) = reader.build_stamps(build_context(**(properties or {})))
    return found


def test_the_rows_of_a_task_are_messages() -> None:
    """Stamps name their task and its micro-batch, and count the rows without id or time."""
    found = read((NUMBERS, TIMES), properties={"sql.streaming.queryId": "q", "streaming.sql.batchId": "4"})
    assert found[:5] == (3, MicroBatch("q", 4), 5, 2, 9)
    assert found.rows.events_us.tolist() == [EPOCH_US]
    assert found.rows.bad == {(SkipReason.NO_TIME, None): 1, (SkipReason.NO_ID, EPOCH_US + 60_000_000): 1}
    assert found.unkept == {}


def test_a_batch_job_has_no_micro_batch() -> None:
    """Neither has a session that left the id of a query behind."""
    assert read((NUMBERS, TIMES), properties={"sql.streaming.queryId": "q"}).micro_batch == MicroBatch()


def test_a_task_without_rows_adds_nothing() -> None:
    """Nor does code that runs outside of a task."""
    assert RowReader(POINT).build_stamps(build_context()) == []
    reader = RowReader(POINT)
    reader.read((NUMBERS, TIMES))
    assert reader.build_stamps(None) == []


def test_rows_that_cannot_be_read_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The job goes on, and its log has one line."""
    local = pa.array([1, 2, 3], pa.timestamp("us"))
    found = read((NUMBERS, local), (NUMBERS, local), (NUMBERS, TIMES))
    assert found.unkept == {None: 6}
    assert len(found.rows) == 1
    assert caplog.text.count("a probe failed to read rows") == 1


def test_a_task_keeps_so_many_bytes() -> None:
    """Rows beyond are counted by window, and bad rows go on to be counted as such."""
    small = StampPoint(0, POINT.mapping, max_task_bytes=30)
    found = read((NUMBERS, TIMES), (NUMBERS, TIMES), point=small)
    assert len(found.rows) == 1
    assert found.unkept == {EPOCH_US // 1_000: 1}
    assert found.rows.bad[SkipReason.NO_TIME, None] == 2


def test_texts_take_room() -> None:
    """Long ids fill it sooner."""
    names = pa.array(["x" * 100, "y" * 100])
    times = pa.array([EPOCH_US, EPOCH_US])
    found = read((names, times), point=StampPoint(0, POINT.mapping, max_task_bytes=240))
    assert found.unkept == {EPOCH_US // 1_000: 2}


def test_rows_are_chosen_by_a_third_column() -> None:
    """A row for which it is false, or empty, is not stamped, and is not missed."""
    found = read((pa.array([1, 2, None]), pa.array([EPOCH_US] * 3), pa.array([True, None, False])))
    assert len(found.rows) == 1
    assert found.rows.bad == Counter()


def test_the_stamps_of_further_tasks_are_appended() -> None:
    """An accumulator begins empty in each task."""
    stamps = [read((NUMBERS, TIMES))]
    accumulation = StampsParam()
    assert accumulation.zero(stamps) == []
    assert accumulation.addInPlace([*stamps], stamps) == stamps * 2
