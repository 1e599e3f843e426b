"""Probe of a PySpark job at one node: batch jobs and Structured Streaming."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from pyspark.accumulators import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it
from pyspark.sql.types import DateType, TimestampNTZType

from hopwatch.probes import lifecycle
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.segment import FORWARDED_RECORDS
from hopwatch.probes.environment import SINK_VARIABLE, read_sink_url
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.finished_instance import FinishedInstance
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.settings import check_name
from hopwatch.probes.sinks import Sink, check_sink, open_sink
from hopwatch.probes.spark.evaluations import merge_evaluations
from hopwatch.probes.spark.job_account import JobAccount
from hopwatch.probes.spark.job_state import JobState
from hopwatch.probes.spark.micro_batch_instance import JobStamp, SideStamps, build_micro_batch, count_windows
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
from hopwatch.probes.taps.errors import TapError
from hopwatch.probes.values import IdFormat, TimeUnit

PATIENCE_S: Final = 5.0
"""Time for which the job waits, at each micro-batch, until the transport has its stamps."""
ADVANCE_EVERY_S: Final = 5.0
"""Interval at which a query says at most how far it has come, however short its triggers are."""
KEEP_ALIVE_S: Final = 60.0
"""Interval at which a job says that it runs: a monitor retires an instance that is silent for ten minutes."""

_log = logging.getLogger("hopwatch.probe")
BatchFunction = Callable[[DataFrame, int], None]


class SparkProbe:
    """Probe of a Spark job: stamps the rows that pass points of its plan, each message as often as the data has it.

    Stamps of a micro-batch are sent by the driver once it is done: before it is committed where
    :meth:`foreach_batch` is used, so that a job that is killed sends them again, and they count once; with other sinks
    behind the commit. Only what succeeds is stamped. With Spark 4.1 or newer, and ``hopwatch`` on its workers.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        spark: SparkSession,
        stream: str,
        node: str,
        sink: str | Sink | None = None,
        *,
        state: str | os.PathLike[str] | None = None,
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

        ``state`` is a file of the probe's own, by which a job that is started again goes on as the same instance.
        Without it, or where it is lost, what the job had not stamped when it ended is unknown, and never lost.

        Raises:
            ProbeError: a name or the sink is invalid, the state is of another node or in use, or the session has no
                driver here, as that of Spark Connect.
        """
        self.stream, self.node = stream, node
        self._spark, self._id_text, self._patience_s, self._clock = spark, id_text, patience_s, clock or SystemClock()
        self._max_task_bytes = max_task_bytes
        self._points: list[JobStamp] = []
        self._waiting: dict[MicroBatch, list[TaskStamps]] = defaultdict(list)
        self._jobs, self._next_ns = 0, 0
        self._sending, self._is_closed = threading.RLock(), threading.Event()
        self._warned = OncePerCause()
        self._cleanup = ExitStack()
        try:
            check_name("stream", stream)
            check_name("node", node)
            self._stamps: Accumulator[list[TaskStamps]] = spark.sparkContext.accumulator([], StampsParam())
            self._sink = self._open_sink(sink)
            self._account = self._open_account(None if state is None else Path(state))
        except (TapError, PySparkException, OSError, ValueError) as error:
            self._cleanup.close()
            raise ProbeError(f"a probe of a Spark job cannot start: {error}") from error
        # The query that stamps, "" of a batch job, or of several; and whether this process has seen its stamps.
        self._query, self._is_seen = self._account.query, False
        self._keep_account(self._account.announce)
        self._listener = QueryListener(self, self._warn)
        spark.streams.addListener(self._listener)
        lifecycle.ProbeThread(target=self._keep_alive, name="hopwatch-spark").start()

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
            query = rows.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY) or ""
            self.finish(MicroBatch(query, number), is_committed=False)

        return handle_batch

    def send(self, *, read_through_us: int | None = None) -> None:
        """Send the stamps of a batch job whose actions have succeeded.

        ``read_through_us``, in µs since 1970, is the moment up to which the job has read its source: without it nothing
        is said to be complete, and what the job did not find is unknown.
        """
        self._jobs += 1
        self.finish(MicroBatch())
        if read_through_us is not None:
            self._keep_account(lambda: self._account.advance(read_through_us))

    def begin(self, query: str) -> None:
        """Forget what tasks of a query stamped for micro-batches that it has not finished: it reads them again."""
        with self._sending:
            self._collect()
            for micro_batch in [one for one in self._waiting if one.query == query]:
                del self._waiting[micro_batch]

    def finish(self, micro_batch: MicroBatch, *, is_committed: bool = True) -> None:
        """Send the stamps of a micro-batch, if there are any that were not sent; before it is committed, or behind."""
        with self._sending:
            try:
                self._collect()
                parts = self._waiting.pop(micro_batch, [])
                if not is_committed:
                    # Threads that a function starts do not know which micro-batch they work for.
                    parts += self._waiting.pop(MicroBatch(), [])
                if self._is_closed.is_set() or (is_committed and not parts):
                    return
                self._check_query(micro_batch.query)
                batches = self._build(micro_batch, parts)
                is_sent = not batches or (self._keep_account(self._account.announce) and self._send(batches))
                if not is_sent:
                    self._warn("the sink does not take the stamps of a micro-batch: they are dropped, and counted")
                self._account.note(micro_batch, {} if is_sent else count_windows(batches))
            except TapError as error:
                self._warn(str(error))
            except Exception:  # noqa: BLE001 - a probe does not end its job
                self._account.leave_hole()
                _log.warning("a probe failed to send the stamps of a Spark job", exc_info=True)

    def read_through(self, query: str, moment_us: int) -> None:
        """Take note that a query has read all that its sources had at a moment; of other queries nothing is known."""
        now_ns = self._clock.monotonic_ns()
        if query == self._query and now_ns >= self._next_ns:
            self._next_ns = now_ns + int(ADVANCE_EVERY_S * 1e9)
            self._keep_account(lambda: self._account.advance(moment_us))

    def close(self) -> None:
        """Close the probe: what the job does from now on is unknown."""
        try:
            self._spark.streams.removeListener(self._listener)
        except Exception:  # noqa: BLE001 - the session may be gone
            _log.debug("a listener could not be removed", exc_info=True)
        with self._sending:
            if not self._is_closed.is_set():
                self._is_closed.set()
                try:
                    self._collect()
                    is_running = any(str(query.id) == self._query for query in self._spark.streams.active)
                    self._account.close(is_complete=not self._waiting and not is_running)
                except TapError as error:
                    self._warn(str(error))
                except Exception:  # noqa: BLE001 - the session may be gone
                    _log.debug("a query could not be asked for", exc_info=True)
                self._cleanup.close()

    def __enter__(self) -> Self:
        """Return the probe."""
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """Send the stamps of a batch job that has not failed, and close."""
        if failed is None:
            self.send()
        self.close()

    def _open_account(self, path: Path | None) -> JobAccount:
        state = None if path is None else JobState(path, self.stream, self.node)
        if state is not None:
            self._cleanup.enter_context(state.lock())
        name = f"spark-{socket.gethostname()}-{os.getpid()}"
        return JobAccount(self.stream, self.node, name, self._send, state, self._clock)

    def _keep_account(self, tell: Callable[[], bool]) -> bool:
        """Let the account tell something; return whether the sink took it."""
        try:
            with self._sending:
                return not self._is_closed.is_set() and tell()
        except TapError as error:
            self._warn(str(error))
        except Exception:  # noqa: BLE001 - a probe does not end its job
            _log.warning("the account of a Spark job failed", exc_info=True)
        return False

    def _keep_alive(self) -> None:
        while not self._is_closed.wait(KEEP_ALIVE_S):
            self._keep_account(self._account.keep_alive)

    def _open_sink(self, asked: str | Sink | None) -> Sink:
        """Open the sink, which takes records of many instances."""
        chosen = asked if asked is not None else read_sink_url()
        if not chosen:
            raise ValueError(f"there is no sink: name one, or set {SINK_VARIABLE}")
        if not isinstance(chosen, str):
            return chosen
        name = f"{FORWARDED_RECORDS}.{socket.gethostname()}-{os.getpid()}.{self._clock.wall_ns() // 1_000}"
        opened = open_sink(chosen, name, self._clock)
        check_sink(opened)
        self._cleanup.callback(opened.close, self._patience_s)
        return opened

    def _collect(self) -> None:
        """Take what tasks have added; more may be appended meanwhile."""
        found = self._stamps.value
        count = len(found)
        for part in found[:count]:
            self._waiting[part.micro_batch].append(part)
        del found[:count]

    def _check_query(self, query: str) -> None:
        if not self._is_seen:
            self._query, self._is_seen = query, True
        elif query != self._query:
            # They have read up to different moments, and which of them stamps what is known by its rows alone.
            self._query = ""
            self._account.leave_hole()
            self._warn("a second query stamps with it: use a probe for each, or all that they lose is unknown")

    def _build(self, micro_batch: MicroBatch, parts: Sequence[TaskStamps]) -> list[Batch]:
        by_point: dict[int, list[TaskStamps]] = defaultdict(list)
        for part in parts:
            by_point[part.point].append(part)
        merged = [(self._points[point], merge_evaluations(tasks)) for point, tasks in sorted(by_point.items())]
        stamps = [SideStamps(stamp, found) for stamp, found in merged if found is not None]
        job = micro_batch.query or f"{self._spark.sparkContext.applicationId}.{self._jobs}"
        name = f"spark-{job}" + ("" if micro_batch.number is None else f".{micro_batch.number}")
        now_us = self._clock.wall_ns() // 1_000
        of_job = FinishedInstance(self.stream, self.node, name, 0)
        return build_micro_batch(of_job, stamps, now_us, id_text=self._id_text)

    def _send(self, batches: Sequence[Batch]) -> bool:
        """Send batches; return whether they are durable."""
        deadline_ns = self._clock.monotonic_ns() + int(self._patience_s * 1e9)
        is_taken = all(self._sink.send(encode(batch)) for batch in batches)
        left_s = max(0, deadline_ns - self._clock.monotonic_ns()) / 1e9
        return is_taken and self._sink.settle(left_s) and not self._sink.failed()

    def _warn(self, told: str) -> None:
        if self._warned.is_new(told):
            _log.warning("a probe of %s at %s: %s", self.stream, self.node, told)
