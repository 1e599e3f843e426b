"""Spark job of the monitor: a continuous stream, or one run over all records that exist."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from hopwatch.monitor import micro_batch, rejudgement
from hopwatch.monitor.accounting.ledger import Ledger
from hopwatch.monitor.micro_batch import BatchFollower, BatchObserver, ConfigObserver
from hopwatch.monitor.rejudgement import Rejudged, Span
from hopwatch.monitor.row_kinds import CLAIMS_ROW
from hopwatch.monitor.spark import cluster, session
from hopwatch.monitor.spark.one_shot import WATERMARK_US, tally_rows
from hopwatch.monitor.spark.rows import KEY_COLUMNS, TALLIED_COLUMNS
from hopwatch.monitor.spark.sink import CommitGate, MicroBatchSink, ResultReporter
from hopwatch.monitor.spark.sources.record_source import RecordSource
from hopwatch.monitor.spark.window_state import WindowShardProcessor
from hopwatch.monitor.store import fencing, writer
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.dialect.lock import MemoryLock
from hopwatch.monitor.stream_config import StreamConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NEVER_STOPPED: Final = threading.Event()
DIGESTS_FOR_US: Final = 691_200_000_000


@dataclass(frozen=True, slots=True)
class JobContext:
    """Context of a job: its source, store, streams, working folder, limits, follower and observer."""

    source: RecordSource
    engine: Engine
    rules: Mapping[str, StreamConfig]
    workdir: Path
    hold: StoreLock = field(default_factory=MemoryLock)
    retry_for_s: float = 600.0
    digests_for_us: int = DIGESTS_FOR_US
    """For so long behind the watermark the store keeps the digests of minutes."""
    transport: str = ""
    """Identity of the transport, to recognise another one of the same name."""
    run: str = ""
    """The token by which the store knows this run from any other one."""
    follower: BatchFollower | None = None
    observer: BatchObserver = micro_batch.ignore_batch
    config_observer: ConfigObserver = micro_batch.ignore_config
    gate: CommitGate = field(default_factory=CommitGate)
    """What the micro-batches of a query pass: it is closed before another query takes its place."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the stream's checkpoint."""
        return self.workdir / "checkpoint"


def run_once(spark: SparkSession, place: JobContext, report: ResultReporter) -> None:
    """Read all that is there, make every window final as if time had passed, and write it in one transaction."""
    rows = tally_rows(place.source.batch(spark, place.rules), place.rules).persist()
    rows.count()
    place.hold.renew()
    with place.engine.execution_options(writes=True).begin() as connection:
        fencing.begin_once(connection, place.rules)
        ledger = Ledger(place.rules)
        folders = place.source.folders()
        windows = micro_batch.absorb_rows(connection, ledger, rows.toLocalIterator(), WATERMARK_US, folders=folders)
        for piece in micro_batch.conclude_windows(connection, ledger, windows, WATERMARK_US):
            report([conclusion.result for conclusion in piece])
            ledger.release_memory()
        writer.drop_all_tallies(connection)
    rows.unpersist()
    place.source.end_batch()


def run_span(spark: SparkSession, place: JobContext, span: Span, report: ResultReporter) -> Rejudged:
    """Read all that is there, and judge the windows of a span again, in one transaction; others stay as they are.

    Raises:
        StoreError: the span cannot be judged again in this store.
        TransportError: no record is of the span.
    """
    first_ms, last_ms = span.from_us // 1_000, span.to_us // 1_000 - 1
    decoded = place.source.batch(spark, place.rules)
    chosen = decoded.where(f"kind != '{CLAIMS_ROW}' OR window_start_ms BETWEEN {first_ms} AND {last_ms}")
    rows = tally_rows(chosen, place.rules).persist()
    try:
        rows.count()
        place.hold.renew()
        with place.engine.execution_options(writes=True).begin() as connection:
            came, folders = rows.toLocalIterator(), place.source.folders()
            return rejudgement.judge_span(connection, place.rules, span, came, folders, str(place.source), report)
    finally:
        rows.unpersist()
        place.source.end_batch()


def start_stream(
    spark: SparkSession, place: JobContext, trigger: str, report: ResultReporter, stop: threading.Event = NEVER_STOPPED
) -> StreamingQuery:
    """Start the stream: it goes on from its checkpoint, or from the beginning where there is none.

    Once ``stop`` is set, no failed transaction is tried again.
    """
    if cluster.is_local(str(spark.sparkContext.master)):
        place.checkpoint.mkdir(session.PRIVATE_FOLDER, parents=True, exist_ok=True)
    decoded = place.source.stream(spark, place.rules)
    rows = decoded.withWatermark("clock", "0 seconds").groupBy(*KEY_COLUMNS)
    state = WindowShardProcessor(place.rules)
    out = rows.transformWithState(state, TALLIED_COLUMNS, outputMode="Update", timeMode="EventTime")
    sink = MicroBatchSink(place, report, spark, stop.is_set)
    writing = out.writeStream.outputMode("update").foreachBatch(sink.commit)
    return writing.option("checkpointLocation", str(place.checkpoint)).trigger(processingTime=trigger).start()
