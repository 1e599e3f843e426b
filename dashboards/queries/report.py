"""Query of a report: a range of one stream or of all, read at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, select

from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.queries.stream_queries import HOUR_US, query_graph, query_running_from_us
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.results import RollUp, WindowResult
from hopwatch.monitor.store import instances, outliers, ranges, reader, rollups, tables
from hopwatch.monitor.store.range_cache import MAX_PIECES
from hopwatch.monitor.store.ranges import RangeQuery, RangeResult
from hopwatch.monitor.texts.read_progress import ReadProgress

MAX_STEPS: Final = 1_000
"""Windows, hours or days of a stream that one report has room for."""
_END_OF_TIME_US: Final = 2**62


@dataclass(frozen=True, slots=True)
class StreamReport:
    """A range of a stream; ``lost_ids`` as they were given, by window and node, the first hundred of each."""

    stream_range: StreamRange
    lost_ids: Mapping[tuple[int, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Report:
    """Streams by name, the range that was asked for, the monitor's own accounting, and up to when it has read."""

    streams: tuple[StreamReport, ...]
    from_us: int | None
    to_us: int | None
    step_us: int
    accounts: Mapping[str, Any]
    reached: ReadProgress


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """Query of a report: one stream or all, in ``[from_us, to_us)``, by windows, hours or days."""

    stream: str | None
    from_us: int | None
    to_us: int | None
    step_us: int

    def run(self, connection: Connection) -> Report:
        """Return it.

        Raises:
            ConfigurationError: there are more windows, hours or days than a report has room for.
        """
        names = reader.read_stream_names(connection, self.stream)
        streams = tuple(self._query_stream(connection, name) for name in names)
        of_all = reader.read_accounts(connection), instances.read_progress(connection)
        return Report(streams, self.from_us, self.to_us, self.step_us, *of_all)

    def _query_stream(self, connection: Connection, stream: str) -> StreamReport:
        to_us = _END_OF_TIME_US if self.to_us is None else self.to_us
        where = connection, stream, self.from_us or 0, to_us
        steps = self._query_steps(*where)
        found = RangeResult((), None)
        if steps:
            first_us, last_us = (
                one.window_start_us if isinstance(one, WindowResult) else one.start_us for one in (steps[0], steps[-1])
            )
            of_all = RangeQuery(stream, first_us, last_us + self.step_us, self.step_us)
            found = ranges.read_range(connection, of_all, lambda _: (), Memo(MAX_PIECES))
        odd = tuple(outliers.read_findings(*where))
        lost = {} if self.step_us >= HOUR_US else reader.read_first_lost_ids(*where)
        ids = {(start_us, node): tuple(of_node) for (_, start_us, node), of_node in lost.items() if of_node}
        running_us = query_running_from_us(connection, stream, self.step_us)
        stretch = StreamRange(
            stream,
            query_graph(connection, stream, to_us - 1),
            steps,
            self.step_us,
            found.whole,
            odd,
            running_from_us=running_us,
            has_digests=found.has_digests,
        )
        return StreamReport(stretch, ids)

    def _query_steps(
        self, connection: Connection, stream: str, from_us: int, to_us: int
    ) -> tuple[WindowResult, ...] | tuple[RollUp, ...]:
        if self.step_us >= HOUR_US:
            spans = (rollups.read_hours if self.step_us == HOUR_US else rollups.read_days)(
                connection, stream, from_us, to_us
            )
            _check_step_count(stream, len(spans), "hours or days")
            return tuple(spans)
        column = tables.windows.c
        of_range = (column.stream == stream, column.window_start_us >= from_us, column.window_start_us < to_us)
        _check_step_count(
            stream, int(connection.execute(select(func.count()).where(*of_range)).scalar_one()), "windows"
        )
        return tuple(reader.read_windows(connection, stream, from_us, to_us))


def _check_step_count(stream: str, count: int, what: str) -> None:
    if count > MAX_STEPS:
        told = f"a report has room for {MAX_STEPS:,} {what} of a stream, and {stream} has {count:,} in the range"
        raise ConfigurationError(f"{told}: narrow it with --from and --to, or take longer spans with --by")
