"""The query that a monitor runs, one after another: how it is begun, watched and ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError

from hopwatch.cli import console
from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.spark import failures, session
from hopwatch.monitor.spark.sink import CommitGate

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from hopwatch.monitor.spark.job import JobContext

MAX_LATE_WORKERS: Final = 5
"""Starts of a query that are tried again because Spark's Python worker was not up in time."""


class RunningQuery:
    """The query of a monitor, and the place that it works in."""

    def __init__(self, start: Callable[[JobContext], StreamingQuery], place: JobContext) -> None:
        """Begin a query in a place."""
        self._start = start
        self.begin(place)

    def begin(self, place: JobContext) -> JobContext:
        """Begin a query, and return its place: its micro-batches pass a gate of their own."""
        self._late_workers = 0
        return self._begin(place)

    def stop(self) -> None:
        """Stop the query."""
        session.stop_quietly(self._query.stop)

    def end(self) -> None:
        """Stop the query before another one: what it has not written by then, the next one reads again."""
        self.stop()
        self._place.gate.close()

    def require_alive(self) -> None:
        """Begin the query again if its Python worker was late.

        Raises:
            DependencyError: the query or its Java has ended, or the worker was late too often.
            HopwatchError: the query has ended for a known cause.
        """
        try:
            failure, is_active = self._query.exception(), self._query.isActive
        except (Py4JError, OSError):
            raise failures.java_error(session.java_status(), session.log_file(self._place.workdir)) from None
        if failure is not None:
            if not failures.is_worker_late(failure) or self._late_workers == MAX_LATE_WORKERS:
                raise failures.stream_error(failure, self._place)
            self._late_workers += 1
            what = "hopwatch: Spark's Python worker was not up within 10 s, as on a machine that is busy"
            told = f"{what}: the stream is started again, {self._late_workers} of {MAX_LATE_WORKERS} times"
            console.stderr().print(told)
            self.end()
            self._begin(self._place)
        elif not is_active:
            msg = "the stream has stopped by itself without saying why: look into its log, then start the monitor again"
            raise DependencyError(msg)

    def _begin(self, place: JobContext) -> JobContext:
        self._place = replace(place, gate=CommitGate())
        self._query = self._start(self._place)
        return self._place
