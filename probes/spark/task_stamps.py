"""Stamps of a Spark task: a filter that passes all rows reads ids and times, an accumulator takes them to the driver.

Spark adds to an accumulator what tasks that succeed have added, so a failed attempt leaves nothing behind.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf

from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.tables.message_rows import MessageRows, RowMapping, concatenate_rows, read_messages

QUERY_PROPERTY: Final = "sql.streaming.queryId"
"""Local property in which Spark keeps the id of a streaming query."""
BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""Local property in which Spark keeps the number of a micro-batch."""
MAX_TASK_BYTES: Final = 8 * 2**20
"""Bytes of stamps of one task, at most: Spark ends jobs whose results have more than ``spark.driver.maxResultSize``."""
ID_COLUMN: Final = "id"
TIME_COLUMN: Final = "time"
_TEXT_BYTES: Final = 4
"""Bytes of each text beside those of its characters."""

_log = logging.getLogger("hopwatch.probe")


class MicroBatch(NamedTuple):
    """Micro-batch of a streaming query; of a batch job both are empty."""

    query: str = ""
    number: int | None = None


class TaskStamps(NamedTuple):
    """Messages that one attempt of a task stamped at one point of the plan, at ``stamped_us`` since 1970.

    ``unkept`` counts the rows that could not be read, or for which there was no room, by the start of their window in
    ms since 1970, None where it is unknown.
    """

    point: int
    micro_batch: MicroBatch
    stage: int
    partition: int
    attempt: int
    rows: MessageRows
    stamped_us: int
    unkept: Counter[int | None]


class StampsParam(AccumulatorParam[list[TaskStamps]]):
    """Accumulation of stamps: those of further tasks are appended."""

    def zero(self, value: list[TaskStamps]) -> list[TaskStamps]:  # noqa: ARG002 - Spark's signature
        """Return no stamps."""
        return []

    def addInPlace(self, value1: list[TaskStamps], value2: list[TaskStamps]) -> list[TaskStamps]:  # noqa: N802 - Spark's name
        """Append stamps."""
        value1.extend(value2)
        return value1


class StampPoint(NamedTuple):
    """Point of a plan at which rows are stamped: its number, what is read of a row, and the bytes a task may keep."""

    number: int
    mapping: RowMapping
    max_task_bytes: int = MAX_TASK_BYTES


def build_filter(point: StampPoint, stamps: Accumulator[list[TaskStamps]], columns: list[Column]) -> Column:
    """Return a condition that is true of each row, and adds the row's message to the stamps.

    ``columns`` are those of id and event time, and, as a third one, whether the row is stamped.
    """

    def pass_all(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        reader = RowReader(point)
        for arrays in batches:
            reader.read(arrays)
            yield pa.repeat(True, len(arrays[0]))  # noqa: FBT003 - the value that is repeated
        stamps.add(reader.build_stamps(TaskContext.get()))

    is_stamped = arrow_udf(pass_all, "boolean")  # type: ignore[call-overload]  # the type is found by the annotations
    found: Column = is_stamped.asNondeterministic()(*columns)
    return found


class RowReader:
    """Reader of the messages of one task; it never raises."""

    def __init__(self, point: StampPoint) -> None:
        """Begin with none."""
        self._point, self._room = point, point.max_task_bytes
        self._parts: list[MessageRows] = []
        self._stamped_us = 0
        self._unkept: Counter[int | None] = Counter()

    def read(self, arrays: tuple[pa.Array, ...]) -> None:
        """Read the messages of some rows."""
        self._stamped_us = self._stamped_us or time.time_ns() // 1_000
        try:
            table = pa.RecordBatch.from_arrays(list(arrays[:2]), names=[ID_COLUMN, TIME_COLUMN])
            if len(arrays) > 2:  # noqa: PLR2004 - a third column says which rows are stamped
                table = table.filter(pc.fill_null(arrays[2], False))  # noqa: FBT003 - the value that is filled in
            rows = read_messages(table, self._point.mapping)
            self._room -= _weigh(rows)
            if self._room < 0:
                self._unkept.update(_count_windows(rows.events_us))
                rows = MessageRows.empty().with_bad(rows.bad)
            self._parts.append(rows)
        except Exception:  # noqa: BLE001 - a probe does not end its job
            if not self._unkept[None]:
                _log.warning("a probe failed to read rows", exc_info=True)
            self._unkept[None] += len(arrays[0])

    def build_stamps(self, context: Any) -> list[TaskStamps]:  # noqa: ANN401 - a TaskContext
        """Return what was read in the task of a context; nothing of a task without rows."""
        if context is None or not (self._parts or self._unkept):
            return []
        number = context.getLocalProperty(BATCH_PROPERTY)
        query = context.getLocalProperty(QUERY_PROPERTY)
        return [
            TaskStamps(
                self._point.number,
                MicroBatch() if number is None else MicroBatch(query, int(number)),
                context.stageId(),
                context.partitionId(),
                context.taskAttemptId(),
                concatenate_rows(self._parts or [MessageRows.empty()]),
                self._stamped_us,
                self._unkept,
            )
        ]


def _weigh(rows: MessageRows) -> int:
    """Return the number of bytes that rows take on their way to the driver, about."""
    arrays = rows.ids.nbytes + rows.events_us.nbytes + rows.id_kinds.nbytes
    return arrays + sum(map(len, rows.id_texts)) + _TEXT_BYTES * len(rows.id_texts)


def _count_windows(events_us: NDArray[np.int64]) -> dict[int | None, int]:
    starts_ms, counts = np.unique(events_us // WINDOW_US * WINDOW_MS, return_counts=True)
    return dict(zip(starts_ms.tolist(), counts.tolist(), strict=True))
