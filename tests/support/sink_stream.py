"""A stream of micro-batches into the real sink, and trouble in its store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import psycopg
from sqlalchemy import Engine, event

from hopwatch.monitor.results import CommittedBatch, WindowResult
from hopwatch.monitor.spark.job import JobContext
from hopwatch.monitor.spark.sink import MicroBatchSink
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from tests.support.clock import ManualClock
from tests.support.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS: Final = 4
QUERY: Final = "a-query"
WORK_S: Final = 2.5
"""How long Spark works on each batch."""
BEFORE, BEHIND = "before the commit", "behind the commit"


@dataclass
class Trouble:
    """Failure of a store in the next transaction: at a statement, before its COMMIT, or after that."""

    engine: Engine
    at: int | str | None = None
    statements: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Stand between the engine and its database."""
        event.listen(self.engine, "begin", self._on_begin, insert=True)
        for name in ("do_execute", "do_executemany", "do_execute_no_params"):
            event.listen(self.engine, name, self._on_statement)
        self._commit: Callable[[Any], None] = self.engine.dialect.do_commit
        self.engine.dialect.do_commit = self._on_commit  # type: ignore[assignment,method-assign]

    def _on_begin(self, _: object) -> None:
        self.statements = 0

    def _on_statement(self, *_: object) -> None:
        self.statements += 1
        if self.at == self.statements:
            self.at = None
            raise self._error()

    def _on_commit(self, connection: Any) -> None:  # noqa: ANN401 - the driver's
        at, self.at = self.at, None
        if at == BEFORE:
            raise self._error()
        self._commit(connection)
        if at == BEHIND:
            raise self._error()

    def _error(self) -> Exception:
        if self.engine.dialect.name == "sqlite":
            return sqlite3.OperationalError("database is locked")
        return psycopg.errors.AdminShutdown("terminating connection due to administrator command")


@dataclass
class Stream(MicroBatches):
    """Micro-batches that end in the product's own sink, and what it has told of them."""

    folder: Path = Path()
    told: list[WindowResult] = field(default_factory=list)
    observed: list[CommittedBatch] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)
    is_stopping: bool = False

    def __post_init__(self) -> None:
        """Make the sink, and the checkpoint that tells it which query it is."""
        place = JobContext(
            SpoolSource(self.folder), self.engine, self.rules, self.folder, observer=self.observed.append
        )
        place.checkpoint.mkdir(parents=True)
        (place.checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))
        self.sink = MicroBatchSink(
            place, self._report, cast("SparkSession", None), lambda: self.is_stopping, clock=self.clock
        )

    def _report(self, results: Sequence[WindowResult]) -> None:
        self.told += results

    def _once_through(self, paths: list[str]) -> None:
        rows = [row.asDict() for row in self._process(paths)]

        def to_arrow() -> SimpleNamespace:
            self.clock.advance(WORK_S)
            return SimpleNamespace(to_pylist=lambda: rows)

        self.sink.commit(cast("DataFrame", SimpleNamespace(toArrow=to_arrow)), self.batch_id + 1)
