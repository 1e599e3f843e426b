"""The monitor's two ways to run: as a stream that goes on, and once over all that is there."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from hopwatch.monitor import commit
from hopwatch.monitor.commit import Follower, Observer
from hopwatch.monitor.ledger import Ledger
from hopwatch.monitor.rules import StreamRules
from hopwatch.monitor.spark import cluster, session
from hopwatch.monitor.spark.once import WATERMARK_US, tallied
from hopwatch.monitor.spark.rows import KEY, TALLIED
from hopwatch.monitor.spark.sink import Report, Sink
from hopwatch.monitor.spark.source import Source
from hopwatch.monitor.spark.state import WindowState
from hopwatch.monitor.store import fencing, writer
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.dialect.lock import MemoryLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NEVER_STOPPED: Final = threading.Event()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job reads and writes, for how long it waits for a store that fails, and who follows and observes it."""

    source: Source
    engine: Engine
    rules: Mapping[str, StreamRules]
    workdir: Path
    hold: StoreLock = field(default_factory=MemoryLock)
    retry_for_s: float = 600.0
    transport: str = ""
    """What tells the transport from another one of its name."""
    run: str = ""
    """The token by which the store knows this run from any other one."""
    follower: Follower | None = None
    observer: Observer = commit.unobserved

    @property
    def checkpoint(self) -> Path:
        """The folder of the stream's checkpoint."""
        return self.workdir / "checkpoint"


def run_once(spark: SparkSession, place: Place, report: Report) -> None:
    """Read all that is there, make every window final as if time had passed, and write it in one transaction."""
    rows = tallied(place.source.batch(spark, place.rules), place.rules).persist()
    rows.count()
    place.hold.renew()
    with place.engine.execution_options(writes=True).begin() as connection:
        fencing.begin_once(connection, place.rules)
        ledger = Ledger(place.rules)
        folders = place.source.folders()
        windows = commit.take_in(connection, ledger, rows.toLocalIterator(), WATERMARK_US, folders=folders)
        for piece in commit.conclude(connection, ledger, windows, WATERMARK_US):
            report([conclusion.result for conclusion in piece])
            ledger.let_go()
        writer.drop_all_tallies(connection)
    rows.unpersist()
    place.source.end_batch()


def start_stream(
    spark: SparkSession, place: Place, trigger: str, report: Report, stop: threading.Event = NEVER_STOPPED
) -> StreamingQuery:
    """Start the stream: it goes on from its checkpoint, or from the beginning where there is none.

    Once ``stop`` is set, no failed transaction is tried again.
    """
    if cluster.is_local(str(spark.sparkContext.master)):
        place.checkpoint.mkdir(session.PRIVATE_FOLDER, parents=True, exist_ok=True)
    decoded = place.source.stream(spark, place.rules)
    rows = decoded.withWatermark("clock", "0 seconds").groupBy(*KEY)
    state = WindowState(place.rules)
    out = rows.transformWithState(state, TALLIED, outputMode="Update", timeMode="EventTime")
    sink = Sink(place, report, spark, stop.is_set)
    writing = out.writeStream.outputMode("update").foreachBatch(sink.commit)
    return writing.option("checkpointLocation", str(place.checkpoint)).trigger(processingTime=trigger).start()
