"""The monitor's two ways to run: as a stream that goes on, and once over all that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Engine

from monitor import commit
from monitor.ledger import Conclusion, Ledger
from monitor.rules import StreamRules
from monitor.spark.once import WATERMARK_US, tallied
from monitor.spark.rows import KEY, TALLIED
from monitor.spark.source import Source
from monitor.spark.state import WindowState
from monitor.store import lineage, writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = structlog.get_logger("hopwatch")

Report = Callable[[list[Conclusion]], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job reads and writes."""

    source: Source
    engine: Engine
    rules: Mapping[str, StreamRules]
    workdir: Path

    @property
    def checkpoint(self) -> Path:
        """The folder of the stream's checkpoint."""
        return self.workdir / "checkpoint"


def run_once(spark: SparkSession, place: Place, report: Report) -> None:
    """Read all that is there, make every window final as if time had passed, and write it in one transaction."""
    rows = tallied(place.source.batch(spark, place.rules), place.rules).persist()
    rows.count()
    with place.engine.execution_options(writes=True).begin() as connection:
        lineage.begin_once(connection, place.rules)
        ledger = Ledger(place.rules)
        windows = commit.take_in(connection, ledger, rows.toLocalIterator(), WATERMARK_US)
        for piece in commit.conclude(connection, ledger, windows, WATERMARK_US):
            report(piece)
        writer.forget_all(connection)
    rows.unpersist()
    place.source.end_batch()


def start_stream(spark: SparkSession, place: Place, trigger: str, report: Report) -> StreamingQuery:
    """Start the stream: it goes on from its checkpoint, or from the beginning where there is none."""
    decoded = place.source.stream(spark, place.rules)
    rows = decoded.withWatermark("clock", "0 seconds").groupBy(*KEY)
    state = WindowState(place.rules)
    out = rows.transformWithState(state, TALLIED, outputMode="Update", timeMode="EventTime")
    sink = Sink(place, report)
    writing = out.writeStream.outputMode("update").foreachBatch(sink.commit)
    return writing.option("checkpointLocation", str(place.checkpoint)).trigger(processingTime=trigger).start()


@dataclass(slots=True)
class Sink:
    """Commits micro-batches: each one transaction, fenced by query and batch, so that a replay changes nothing."""

    place: Place
    report: Report
    ledger: Ledger | None = field(default=None)

    def commit(self, batch: DataFrame, batch_id: int) -> None:
        """Write one micro-batch; Spark may call this again with the same batch after a crash."""
        rows = [SimpleNamespace(**row) for row in batch.toArrow().to_pylist()]
        query_id = lineage.query_id(self.place.checkpoint)
        with self.place.engine.execution_options(writes=True).begin() as connection:
            if not lineage.enter(connection, query_id, batch_id, self.place.rules):
                # Its state is made anew, and may point into segments with other names than those of the first time.
                commit.keep_segments(connection, Ledger(self.place.rules), rows, batch_id)
                return
            self.ledger = self.ledger or commit.restore(connection, self.place.rules)
            before_us = lineage.watermark_us(connection)
            watermark_us = max([before_us, *(row.watermark_us for row in rows)])
            expected = self.place.source.expected(self.place.checkpoint, batch_id)
            windows = commit.take_in(connection, self.ledger, rows, watermark_us, batch_id, expected)
            for piece in commit.conclude(connection, self.ledger, windows, watermark_us):
                self.report(piece)
            commit.forget(connection, self.ledger, watermark_us)
            spent = writer.release_segments(connection, before_us, batch_id)
        _delete(spent)


def _delete(paths: list[str]) -> None:
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            # A warning, not an error: nothing is lost, the spool is only fuller than it need be.
            _log.warning("a spent segment cannot be deleted", path=path, why=error.strerror)
