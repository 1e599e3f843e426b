"""What pages ask, each a value that reads its answer from a store as it stands at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, RowMapping, select

from dashboards.reading.told import Edge, Graph, Minute, Standing, StreamNow, Stretch
from monitor.results import RollUp, Status, Verdict, WindowResult
from monitor.store import lineage, outliers, reader, rollups, tables, writer
from probes.contract.limits import WINDOW_US

HOUR_US: Final = rollups.HOUR_US
DAY_US: Final = rollups.DAY_US
LATELY_US: Final = HOUR_US
"""How far back the overview looks."""


@dataclass(frozen=True, slots=True)
class HowAllStands:
    """How does every stream stand?"""

    def read(self, connection: Connection) -> Standing:
        """Return it; a stream of which nothing came is there too."""
        ranges = reader.stream_ranges(connection)
        names = reader.stream_names(connection, None)
        newest_us = max((ranges[name][1] for name in names if name in ranges), default=0)
        streams = tuple(_now(connection, name, ranges.get(name), newest_us) for name in names)
        was_once = writer.value(connection, "query_id") == lineage.ONCE
        return Standing(streams, None if was_once else lineage.watermark_us(connection))


@dataclass(frozen=True, slots=True)
class HowAStreamWent:
    """How did a stream go in ``[from_us, to_us)``, by windows, hours or days?"""

    stream: str
    from_us: int
    to_us: int
    step_us: int

    def read(self, connection: Connection) -> Stretch:
        """Return it; a stream that the store does not know has no node."""
        return Stretch(
            self.stream,
            graph(connection, self.stream),
            self._steps(connection),
            self.step_us,
            rollups.whole(connection, self.stream, self.from_us, self.to_us, self.step_us),
            tuple(outliers.findings(connection, self.stream, self.from_us, self.to_us)),
        )

    def _steps(self, connection: Connection) -> tuple[WindowResult, ...] | tuple[RollUp, ...]:
        where = connection, self.stream, self.from_us, self.to_us
        if self.step_us == HOUR_US:
            return tuple(rollups.hours(*where))
        if self.step_us == DAY_US:
            return tuple(rollups.days(*where))
        return tuple(reader.results(*where))


@dataclass(frozen=True, slots=True)
class OneWindow:
    """What became of one minute of a stream?"""

    stream: str
    start_us: int

    def read(self, connection: Connection) -> WindowResult | None:
        """Return it; None where the store has no such window."""
        found = reader.results(connection, self.stream, self.start_us, self.start_us + 1)
        return found[0] if found else None


def graph(connection: Connection, stream: str) -> Graph:
    """Return the pathway of a stream as the store's own rules have it; empty of one that it does not know."""
    nodes, groups = reader.pathway(connection, stream)
    edges = [Edge(source, target, len(targets) == 1) for source, *targets in groups for target in targets]
    return Graph(tuple(nodes), tuple(edges))


def _now(connection: Connection, stream: str, kept: tuple[int, int] | None, newest_us: int) -> StreamNow:
    if kept is None:
        return StreamNow(stream, None)
    final_us = reader.newest_final_us(connection, stream)
    newest = None if final_us is None else OneWindow(stream, final_us).read(connection)
    return StreamNow(stream, newest, _lately(connection, stream, newest_us), *kept)


def _lately(connection: Connection, stream: str, newest_us: int) -> tuple[Minute, ...]:
    column = tables.windows.c
    wanted = select(column.window_start_us, column.status, column.verdict, column.known, column.lost_lower).where(
        column.stream == stream,
        column.window_start_us > newest_us - LATELY_US,
        column.window_start_us <= newest_us + WINDOW_US,
    )
    return tuple(_minute(row) for row in connection.execute(wanted.order_by(column.window_start_us)).mappings())


def _minute(row: RowMapping) -> Minute:
    verdict = Verdict(row["verdict"]) if row["verdict"] else None
    return Minute(row["window_start_us"], Status(row["status"]), verdict, row["known"], row["lost_lower"])
