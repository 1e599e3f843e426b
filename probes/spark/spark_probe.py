"""Probe of a PySpark job at one node: batch jobs and Structured Streaming."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Self

from pyspark.accumulators import Accumulator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it
from pyspark.sql.types import DateType, TimestampNTZType

from hopwatch.probes import Probe, lifecycle
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.segment import FORWARDED_RECORDS
from hopwatch.probes.environment import read_sink_url
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.finished_instance import FinishedInstance
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.sinks import Sink, open_sink
from hopwatch.probes.spark.evaluations import merge_evaluations
from hopwatch.probes.spark.micro_batch_instance import JobStamp, NodeStamps, build_micro_batch, count_windows
from hopwatch.probes.spark.query_listener import QueryListener
from hopwatch.probes.spark.task_stamps import (
    ID_COLUMN,
    MAX_TASK_BYTES,
    QUERY_PROPERTY,
    TIME_COLUMN,
    MicroBatch,
    StampPoint,
    StampsParam,
    TaskStamps,
    build_filter,
)
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.values import IdFormat, TimeUnit

PATIENCE_S: Final = 5.0
"""Time for which the job waits, at each micro-batch, until the transport has its stamps."""
SINK_REFUSED: Final = "sink refused"

_log = logging.getLogger("hopwatch.probe")
BatchFunction = Callable[[DataFrame, int], None]


class SparkProbe:
    """Probe of a Spark job: stamps the rows that pass points of its plan, each message as often as the data has it.

    Stamps of a micro-batch are sent by the driver once it is done: before it is committed where
    :meth:`foreach_batch` is used, so that a job that is killed sends them again, and they count once; behind the
    commit with other sinks. Only what succeeds is stamped. With Spark 4.1 or newer, and ``hopwatch`` on its workers.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        spark: SparkSession,
        stream: str,
        node: str,
        sink: str | Sink | None = None,
        *,
        labels: dict[str, str] | None = None,
        id_text: bool = True,
        patience_s: float = PATIENCE_S,
        max_task_bytes: int = MAX_TASK_BYTES,
        clock: Clock | None = None,
    ) -> None:
        """Announce the probe; use one for each query at each node.

        The sink is an argument, or in ``HOPWATCH_SINK``, as that of a :class:`hopwatch.Probe`. A job waits for it at
        most ``patience_s`` at each micro-batch; stamps that it does not take by then are dropped, and counted. So are
        those of a task that has more than ``max_task_bytes`` of them, some 25 bytes each and the texts of ids: all of a
        stage together must stay below Spark's ``spark.driver.maxResultSize``.

        Raises:
            ProbeError: a name, label or the sink is invalid.
        """
        self.stream, self.node = stream, node
        self._spark, self._id_text, self._patience_s, self._clock = spark, id_text, patience_s, clock or SystemClock()
        chosen = sink if sink is not None else read_sink_url()
        if not chosen:
            raise ProbeError("a probe of a Spark job has no sink: name one, or set HOPWATCH_SINK")
        self._probe = Probe(
            stream, node, chosen, strict=True, follows=True, labels=labels, max_age_s=None, close_on_sigterm=False,
            clock=self._clock,
        )  # fmt: skip
        self._probe.strict = False
        # Its end is no bye, as is that of a probe that is left open: what comes from then on is read by nobody.
        lifecycle.unregister(self._probe)
        atexit.register(self._probe.close, bye=False)
        self._sink, self._max_task_bytes = self._open_sink(chosen), max_task_bytes
        self._points: list[JobStamp] = []
        self._query: str | None = None
        self._jobs = 0
        self._stamps: Accumulator[list[TaskStamps]] = spark.sparkContext.accumulator([], StampsParam())
        self._waiting: dict[MicroBatch, list[TaskStamps]] = defaultdict(list)
        self._sending = threading.RLock()
        self._warned = OncePerCause()
        self._listener = QueryListener(self, self._warn)
        spark.streams.addListener(self._listener)

    def stamp(  # noqa: PLR0913 - where, what and how
        self,
        rows: DataFrame,
        side: str,
        *,
        message_id: str | Column,
        event_time: str | Column,
        where: Column | None = None,
        id_as: str = IdFormat.AUTO,
        time_unit: str = TimeUnit.US,
    ) -> DataFrame:
        """Return the same rows, each of which is stamped when it passes this point of the plan.

        ``side`` is ``in``, ``out``, or ``filtered`` or ``rejected`` for rows that the job drops behind this point and
        stamped ``in`` before; ``where`` says which rows are stamped. Event times are timestamps, or numbers of
        ``time_unit`` since 1970. Other columns do not leave the JVM.

        Raises:
            ProbeError: a side or unit is unknown, or event times have no time zone.
        """
        try:
            stamp, mapping = JobStamp(side), RowMapping(ID_COLUMN, TIME_COLUMN, IdFormat(id_as), TimeUnit(time_unit))
        except ValueError as error:
            raise ProbeError(f"rows cannot be stamped: {error}") from None
        columns = [F.col(one) if isinstance(one, str) else one for one in (message_id, event_time)]
        kind = rows.select(columns[1]).schema[0].dataType
        if isinstance(kind, DateType | TimestampNTZType):
            raise ProbeError(f"event times of the type {kind.simpleString()} have no time zone: cast them to timestamp")
        self._points.append(stamp)
        if where is not None:
            columns.append(where)
        point = StampPoint(len(self._points) - 1, mapping, self._max_task_bytes)
        return rows.where(build_filter(point, self._stamps, columns))

    def foreach_batch(self, function: BatchFunction) -> BatchFunction:
        """Return a function for ``foreachBatch`` that calls this one, and sends the stamps once it has returned."""

        def handle_batch(rows: DataFrame, number: int) -> None:
            function(rows, number)
            query = rows.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY)
            self.finish(MicroBatch(query or "", number))

        return handle_batch

    def send(self, *, read_through_us: int | None = None) -> None:
        """Send the stamps of a batch job whose actions have succeeded.

        ``read_through_us``, in µs since 1970, is the moment up to which the job has read its source: without it nothing
        is said to be complete, and what the job did not find is unknown.
        """
        self._jobs += 1
        self.finish(MicroBatch())
        if read_through_us is not None:
            self._probe.caught_up(read_through_us)

    def finish(self, micro_batch: MicroBatch) -> None:
        """Send the stamps of a micro-batch, if there are any that were not sent."""
        try:
            with self._sending:
                self._collect()
                parts = self._waiting.pop(micro_batch, None)
                if parts:
                    self._note_query(micro_batch.query)
                    self._send(self._build(micro_batch, parts))
        except Exception:  # noqa: BLE001 - a probe does not end its job
            self._probe.missed("failed to send")
            _log.warning("a probe failed to send the stamps of a Spark job", exc_info=True)

    def read_through(self, query: str, moment_us: int) -> None:
        """Take note that a query has read all that its sources had at a moment; of other queries nothing is known."""
        if query == self._query:
            self._probe.caught_up(moment_us)

    def flush(self) -> None:
        """Send what the probe knows now."""
        self._probe.flush()

    def close(self) -> None:
        """Close the probe: what the job does from now on is unknown."""
        try:
            self._spark.streams.removeListener(self._listener)
        except Exception:  # noqa: BLE001 - the session may be gone
            _log.debug("a listener could not be removed", exc_info=True)
        self._probe.close(bye=False)
        atexit.unregister(self._probe.close)
        if self._sink is not None:
            self._sink.close(self._patience_s)

    def __enter__(self) -> Self:
        """Return the probe."""
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """Send the stamps of a batch job that has not failed, and close."""
        if failed is None:
            self.send()
        self.close()

    def _open_sink(self, chosen: str | Sink) -> Sink:
        """Open the sink of the micro-batches, which are of instances of their own."""
        if not isinstance(chosen, str):
            return chosen
        name = f"{FORWARDED_RECORDS}.{socket.gethostname()}-{os.getpid()}.{self._clock.wall_ns() // 1_000}"
        return open_sink(chosen, name, self._clock)

    def _collect(self) -> None:
        """Take what tasks have added; more may be appended meanwhile."""
        found = self._stamps.value
        count = len(found)
        for part in found[:count]:
            self._waiting[part.micro_batch].append(part)
        del found[:count]

    def _note_query(self, query: str) -> None:
        if self._query is None:
            self._query = query
        elif query != self._query:
            # Each of them has read up to another moment, and of which of them is not known before its first rows.
            self._query = ""
            self._warn("a second query stamps with it: use a probe for each, or all that they lose is unknown")

    def _build(self, micro_batch: MicroBatch, parts: Sequence[TaskStamps]) -> list[Batch]:
        by_point: dict[int, list[TaskStamps]] = defaultdict(list)
        for part in parts:
            by_point[part.point].append(part)
        merged = [(self._points[point], merge_evaluations(tasks)) for point, tasks in sorted(by_point.items())]
        stamps = [NodeStamps(stamp, found) for stamp, found in merged if found is not None]
        job = f"{self._spark.sparkContext.applicationId}.{self._jobs}"
        name = f"spark-{micro_batch.query or job}" + ("" if micro_batch.number is None else f".{micro_batch.number}")
        now_us = self._clock.wall_ns() // 1_000
        of_job = FinishedInstance(self.stream, self.node, name, 0)
        return build_micro_batch(of_job, stamps, now_us, id_text=self._id_text)

    def _send(self, batches: Sequence[Batch]) -> None:
        """Send batches, and wait until they are durable; count what is in them where they are not."""
        deadline_s = self._clock.monotonic_ns() / 1e9 + self._patience_s
        is_sent = all(self._sink.send(encode(batch)) for batch in batches)
        if (
            is_sent
            and self._sink.settle(max(0.0, deadline_s - self._clock.monotonic_ns() / 1e9))
            and not self._sink.failed()
        ):
            return
        for window_ms, count in count_windows(batches).items():
            self._probe.missed(SINK_REFUSED, window_ms * 1_000, count=count)
        self._warn("the sink does not take the stamps of a micro-batch: they are dropped, and counted")

    def _warn(self, told: str) -> None:
        if self._warned.is_new(told):
            _log.warning("a probe of %s at %s: %s", self.stream, self.node, told)
