"""Sink of micro-batches: one transaction of the store each, retried as a whole after a transient error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import stamina
import structlog
from sqlalchemy.exc import SQLAlchemyError

from hopwatch.monitor import micro_batch
from hopwatch.monitor.accounting import unheard_instances
from hopwatch.monitor.accounting.ledger import Ledger
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.errors import StoreError, StoreTakenError
from hopwatch.monitor.micro_batch import BatchResult
from hopwatch.monitor.results import CommittedBatch, WindowResult
from hopwatch.monitor.store import dialect, digest_retention, fencing, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hopwatch.monitor.spark.job import JobContext

FIRST_WAIT_S: Final = 0.2
MAX_WAIT_S: Final = 5.0
"""Longest wait between two attempts; short, so that a stop takes effect soon."""
SWEEP_EVERY_US: Final = 600_000_000
"""Interval, by the watermark, between two searches for folders that can be removed."""
LOG_BYTES: Final = 4 * 1024 * 1024
"""Growth of Spark's log of segments before deleted ones are forgotten: some 29,000 segments.

Each tenth batch reads and writes all of it.
"""

_NO_RESULT: Final = BatchResult((), ())
_log = structlog.get_logger("hopwatch")

ResultReporter = Callable[[Sequence[WindowResult]], None]


class CommitGate:
    """Gate of a query's micro-batches: once it is closed none is being written, and none will be."""

    def __init__(self) -> None:
        """Begin open."""
        self._lock, self._is_closed = threading.Lock(), False

    def close(self) -> None:
        """Wait for the micro-batch that is being written, and let no other one through."""
        with self._lock:
            self._is_closed = True

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold the gate while a micro-batch is written.

        Raises:
            StoreError: the gate is closed.
        """
        with self._lock:
            if self._is_closed:
                raise StoreError(
                    "another query of this monitor has taken its place: this batch is read again by that one"
                )
            yield


@dataclass(slots=True)
class MicroBatchSink:
    """Commits micro-batches: each one transaction, fenced by query and batch, so that a replay changes nothing.

    The connection may die with the transaction, or with the answer to its COMMIT. Either way the next attempt begins
    with what the store holds: the fence says whether the batch was written, and the ledger is restored.
    """

    place: JobContext
    report: ResultReporter
    spark: SparkSession
    """The session that the stream was started in; a batch has a clone of it, which knows of no stream."""
    is_stopping: Callable[[], bool] = lambda: False
    ledger: Ledger | None = None
    written: BatchResult = field(default=_NO_RESULT)
    """Result of the last attempt, which may have been written or not."""
    clock: Clock = field(default_factory=SystemClock)
    removed_before_us: int = 0
    """Folders that were last changed before were removed."""
    most_log_bytes: int = LOG_BYTES
    """Size of Spark's log at which deleted segments are forgotten."""

    def commit(self, batch: DataFrame, batch_id: int) -> None:
        """Write one micro-batch; Spark may call this again with the same batch after a crash.

        Raises:
            StoreError: the store failed and is not expected to recover, or did not within ``place.retry_for_s``.
        """
        began_s = self.clock.monotonic_s()
        # Here Spark does all of its work.
        rows = [SimpleNamespace(**row) for row in batch.toArrow().to_pylist()]
        with self.place.gate.enter():
            self._commit(rows, batch_id, began_s)

    def _commit(self, rows: Sequence[Any], batch_id: int, began_s: float) -> None:
        query_id = fencing.read_query_id(self.place.checkpoint)
        self.written = _NO_RESULT
        attempts = stamina.retry_context(
            self._may_pass,
            attempts=None,
            timeout=self.place.retry_for_s,
            wait_initial=FIRST_WAIT_S,
            wait_max=MAX_WAIT_S,
        )
        with dialect.translate_errors(self.place.engine.url):
            for attempt in attempts:
                with attempt:
                    self._write(rows, query_id, batch_id)
        if self.written.read_through_us:
            self.place.source.note_read_through(self.written.read_through_us)
        took_s = self.clock.monotonic_s() - began_s
        written = self.written
        self.place.observer(
            CommittedBatch(written.results, written.watermark_us, took_s, written.records, written.recent)
        )
        self.report(self.written.results)
        if self.written.spent:
            # What was written into a file that is gone meanwhile is nowhere but in the segments. Nothing is asked of
            # a server here: these segments are struck out in the store, and nothing else would delete them.
            self.place.hold.check_place()
        _delete_segments(self.written.spent)
        self._remove_folders()
        self._forget(query_id)

    def _write(self, rows: Sequence[Any], query_id: str, batch_id: int) -> None:
        self.place.hold.renew()
        # Whatever ends this early leaves the ledger half advanced.
        ledger, self.ledger = self.ledger, None
        with self.place.engine.execution_options(writes=True).begin() as connection:
            fencing.require_run(connection, self.place.run)
            if not fencing.register_batch(connection, query_id, batch_id, self.place.rules, self.place.transport):
                # Its state is made anew, and may point into segments with other names than those of the first time.
                micro_batch.keep_segments(connection, Ledger(self.place.rules), rows, batch_id)
                return
            ledger = ledger or micro_batch.restore_ledger(connection, self.place.rules)
            expected = self.place.source.expected(self.place.checkpoint, batch_id)
            folders = self.place.source.folders()
            self.written = micro_batch.write_micro_batch(
                connection, ledger, rows, batch_id, expected, self.place.follower, folders
            )
            before_us = self.written.watermark_us - self._digests_for_us()
            digest_retention.drop_digests(connection, before_us, micro_batch.MAX_HOURS_PER_BATCH)
        self.ledger = ledger

    def _digests_for_us(self) -> int:
        """Return for how long digests are kept: no hour loses them in which a late message can begin a window."""
        versions = (version for rules in self.place.rules.values() for version in rules.versions)
        return max([self.place.digests_for_us, *(version.terms.max_age_us for version in versions)])

    def _remove_folders(self) -> None:
        """Remove now and then the folders that probe instances have left, once no window needs them."""
        before_us = self.written.watermark_us - unheard_instances.folder_retention_us(self.place.rules)
        if before_us >= self.removed_before_us + SWEEP_EVERY_US:
            self.removed_before_us = before_us
            self.place.source.remove_folders(before_us)

    def _forget(self, query_id: str) -> None:
        """Let Spark forget segments that are gone, once its log has become long."""
        source, checkpoint = self.place.source, self.place.checkpoint
        if source.log_bytes(checkpoint) <= self.most_log_bytes:
            return
        try:
            with self.place.engine.begin() as connection:
                kept = reader.read_segments(connection)
        except SQLAlchemyError:
            # The batch is written; the next one will ask again.
            return
        source.forget(kept, checkpoint, self.spark, query_id)
        # Twice its size at least: what is still there is not forgotten, and would be looked at in every batch.
        self.most_log_bytes = 2 * source.log_bytes(checkpoint) + LOG_BYTES

    def _may_pass(self, error: Exception) -> bool:
        # Of a session that died without a word the server lets go after a while only.
        is_passing = isinstance(error, StoreTakenError) or dialect.is_transient(self.place.engine.url, error)
        return is_passing and not self.is_stopping()


def _delete_segments(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            # A warning, not an error: nothing is lost, the spool is only fuller than it need be.
            _log.warning("a spent segment cannot be deleted", path=path, why=error.strerror)
