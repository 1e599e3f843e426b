"""Spark's micro-batches without Spark: the same decoder, state operator and sink, a thousand times faster.

Keeps what the product relies on and nothing else: rows grouped by key, timers on the watermark that the batch before
left, one value state a key, a batch that is replayed with its number after a crash. Real Spark runs in tests/e2e.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo
from sqlalchemy import Engine

from hopwatch.monitor import micro_batch, rejudgement
from hopwatch.monitor.accounting.ledger import Ledger
from hopwatch.monitor.kernel.recent import RecentSampler
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.micro_batch import BatchFollower
from hopwatch.monitor.rejudgement import Rejudged, Span
from hopwatch.monitor.row_kinds import CLAIMS_ROW, CLOCK_ROW
from hopwatch.monitor.spark import one_shot
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.rows import KEY_COLUMNS, JobRow, join_rows, to_arrow
from hopwatch.monitor.spark.sources import spool
from hopwatch.monitor.spark.window_state import WindowShardProcessor
from hopwatch.monitor.store import fencing, writer
from hopwatch.monitor.stream_config import StreamConfig

Key = tuple[Any, ...]


class _Value:
    """The value state of the key that is at work."""

    def __init__(self, handle: _Handle, name: str) -> None:
        self.handle, self.name = handle, name

    @property
    def key(self) -> Key:
        return self.name, *self.handle.key

    def get(self) -> Any:  # noqa: ANN401 - whatever the processor keeps
        return self.handle.kept.get(self.key)

    def update(self, value: Any) -> None:  # noqa: ANN401
        self.handle.kept[self.key] = value

    def clear(self) -> None:
        self.handle.kept.pop(self.key, None)


class _List(_Value):
    """The list state of the key that is at work."""

    def get(self) -> Iterator[Any]:
        return iter(super().get() or ())

    def appendValue(self, value: Any) -> None:  # noqa: ANN401, N802 - Spark's name
        self.update((*self.get(), value))


class _Handle:
    """The handle of a stateful processor: states and timers by key."""

    def __init__(self, kept: dict[Key, Any], timers: set[tuple[int, Key]]) -> None:
        self.kept, self.timers = kept, timers
        self.key: Key = ()

    def getValueState(self, name: str, schema: str) -> _Value:  # noqa: N802 - Spark's name
        del schema
        return _Value(self, name)

    def getListState(self, name: str, schema: str) -> _List:  # noqa: N802 - Spark's name
        del schema
        return _List(self, name)

    def registerTimer(self, moment_ms: int) -> None:  # noqa: N802 - Spark's name
        self.timers.add((moment_ms, self.key))


@dataclass
class _Timers:
    watermark_ms: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 - Spark's name
        return self.watermark_ms


@dataclass
class MicroBatches:
    """A stream over the store behind ``engine``; each call of :meth:`run` is one micro-batch."""

    rules: Mapping[str, StreamConfig]
    engine: Engine
    query: str = "a-query"
    batch_id: int = -1
    watermark_us: int = 0
    kept: dict[Key, Any] = field(default_factory=dict)
    timers: set[tuple[int, Key]] = field(default_factory=set)
    ledger: Ledger | None = None
    follower: BatchFollower | None = None
    spool_dir: Path | None = None

    def run(self, paths: Iterable[Path], *, crash_after_store: bool = False) -> None:
        """Run one micro-batch over the segments; a crash comes before Spark has noted it, so that it is run again."""
        listed = [str(path) for path in paths]
        before = deepcopy((self.kept, self.timers))
        self._once_through(listed)
        if crash_after_store:
            self.kept, self.timers = before
            self.restart()
            self._once_through(listed)
        self.batch_id += 1
        clocks = [row.clock_us for row in decode_segments(listed, self.rules) if row.kind == CLOCK_ROW and row.clock_us]
        self.watermark_us = max([self.watermark_us, *clocks])

    def restart(self) -> None:
        """Forget what a process remembers; state and store stay."""
        self.ledger = None

    def _once_through(self, paths: list[str]) -> None:
        rows = self._process(paths)
        with self.engine.execution_options(writes=True).begin() as connection:
            if not fencing.register_batch(connection, self.query, self.batch_id + 1, self.rules):
                return
            self.ledger = self.ledger or micro_batch.restore_ledger(connection, self.rules)
            folders = () if self.spool_dir is None else spool.list_folders(self.spool_dir)
            micro_batch.write_micro_batch(
                connection, self.ledger, rows, self.batch_id + 1, follower=self.follower, folders=folders
            )

    def _process(self, paths: list[str]) -> list[Any]:
        state, handle = WindowShardProcessor(self.rules), _Handle(self.kept, self.timers)
        state.init(handle)  # type: ignore[arg-type]  # all of it that the processor uses
        timers = _Timers(self.watermark_us // 1_000)
        by_key: dict[Key, list[JobRow]] = {}
        for row in join_rows(decode_segments(paths, self.rules, RecentSampler())):
            by_key.setdefault(tuple(getattr(row, name) for name in KEY_COLUMNS), []).append(row)
        out: list[Any] = []
        for key, rows in by_key.items():
            handle.key = key
            out += state.handleInputRows(key, iter(rows), timers)  # type: ignore[arg-type]
        due = sorted(timer for timer in self.timers if timer[0] <= timers.watermark_ms)
        self.timers.difference_update(due)
        for expiry_ms, key in due:
            handle.key = key
            out += state.handleExpiredTimer(key, timers, ExpiredTimerInfo(expiry_ms))
        return out


def run_once(
    engine: Engine, rules: Mapping[str, StreamConfig], paths: Iterable[Path], spool_dir: Path | None = None
) -> None:
    """Do what ``run --once`` does, without Spark between the decoder and the tallies; a spool shows its folders."""
    out = _tally(rules, decode_segments([str(path) for path in paths], rules))
    with engine.execution_options(writes=True).begin() as connection:
        fencing.begin_once(connection, rules)
        ledger = Ledger(rules)
        folders = () if spool_dir is None else spool.list_folders(spool_dir)
        windows = micro_batch.absorb_rows(connection, ledger, out, NEVER_US, folders=folders)
        for _ in micro_batch.conclude_windows(connection, ledger, windows, NEVER_US):
            ledger.release_memory()
        writer.drop_all_tallies(connection)


def run_span(
    engine: Engine,
    rules: Mapping[str, StreamConfig],
    paths: Iterable[Path],
    span: Span,
    spool_dir: Path | None = None,
) -> Rejudged:
    """Do what ``run --once --from --to`` does, as :func:`run_once` does the other."""
    rows = decode_segments([str(path) for path in paths], rules)
    chosen = [row for row in rows if row.kind != CLAIMS_ROW or row.window_start_ms * 1_000 in range(*span)]
    with engine.execution_options(writes=True).begin() as connection:
        folders = () if spool_dir is None else spool.list_folders(spool_dir)
        return rejudgement.judge_span(connection, rules, span, _tally(rules, chosen), folders)


def _tally(rules: Mapping[str, StreamConfig], rows: Iterable[JobRow]) -> list[Any]:
    by_key: dict[Key, list[JobRow]] = {}
    for row in rows:
        by_key.setdefault(tuple(getattr(row, name) for name in KEY_COLUMNS), []).append(row)
    tallier = one_shot.build_tallier(rules)
    tables = [tallier(pa.Table.from_batches(to_arrow(of_key))) for of_key in by_key.values()]
    return [SimpleNamespace(**row) for table in tables for row in table.to_pylist()]
