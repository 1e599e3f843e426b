"""Listener of a streaming query: says up to when the query has read its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from hopwatch.probes.spark.task_stamps import MicroBatch


class ProgressReceiver(Protocol):
    """Receiver of the progress of streaming queries."""

    def begin(self, query: str) -> None:
        """Take note that a query starts, before its first micro-batch."""

    def finish(self, micro_batch: MicroBatch) -> None:
        """Take note that a micro-batch is committed."""

    def read_through(self, query: str, moment_us: int) -> None:
        """Take note that a query has read all that its sources had at a moment, in µs since 1970."""


class QueryListener(StreamingQueryListener):
    """Listener that tells a receiver of the progress of all queries; an error is for ``warn``."""

    def __init__(self, receiver: ProgressReceiver, warn: Callable[[str], None]) -> None:
        """Set the receiver."""
        self._receiver, self._warn = receiver, warn

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Tell that a query starts."""
        with self._guard("start"):
            self._receiver.begin(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Tell the end of a micro-batch, and, if it took all that there was, the moment at which it was planned."""
        with self._guard("progress"):
            progress = event.progress
            query = str(progress.id)
            self._receiver.finish(MicroBatch(query, progress.batchId))
            if all(_takes_all(source) for source in progress.sources):
                self._receiver.read_through(query, _parse_moment_us(progress.timestamp))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Tell the moment at which there was nothing to read."""
        with self._guard("progress"):
            self._receiver.read_through(str(event.id), _parse_moment_us(event.timestamp))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing: what its sources have from now on is read by nobody, and is not told."""

    @contextmanager
    def _guard(self, what: str) -> Iterator[None]:
        """Warn of an error: a probe does not end its job."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._warn(f"the {what} of a query cannot be read: {error}")


def _takes_all(source: SourceProgress) -> bool:
    """Return whether a source says that it has nothing behind what a micro-batch took."""
    return source.latestOffset == source.endOffset


def _parse_moment_us(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1_000) * 1_000
