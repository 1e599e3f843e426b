"""A store as a monitor leaves it after a month: a stream of many nodes, and a few small ones beside it.

A day is concluded window by window and rolled up by the monitor's own code, with digests of real values; it is copied
inside the database to the days behind it. The last day breaks off in the evening: its last two hours are not rolled up
yet, and its last minutes are not final.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from sqlalchemy import Connection, Engine, delete, insert, literal, select, text, update

from bench import windows
from bench.speed import Progress
from bench.windows import START_US, Dice
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tally import LostIds, NodeLags, empty_tally
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import fencing, rollups, schema, tables, writer
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

MESSAGES: Final = 200
"""A minute and node, and so values a digest: as many digests of more values would not fit on a usual disk."""
GREAT: Final = "great"
SMALL: Final = 5
SMALL_NODES: Final = 4
POOL: Final = 400
LAST_MINUTE: Final = 23 * 60 + 37
"""The minute of the last day at which it breaks off."""
PENDING: Final = 3
LIVE_HOURS: Final = 2
_LAG_US: Final = 50_000
_BY_WINDOW: Final = (tables.windows, tables.node_windows)
_BY_SPAN: Final = (tables.rollups, tables.node_rollups)


@dataclass(frozen=True, slots=True)
class Month:
    """Size of the store: days, and nodes of the great stream."""

    days: int = 30
    nodes: int = 100

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each stream, by its name."""
        small = {f"small-{number}": SMALL_NODES for number in range(SMALL)}
        counts = {GREAT: self.nodes} | small
        return {name: tuple(f"n{place:02d}" for place in range(count)) for name, count in counts.items()}

    @property
    def end_us(self) -> int:
        """The end of the last window."""
        return START_US + (self.days - 1) * DAY_US + LAST_MINUTE * WINDOW_US

    @property
    def start_us(self) -> int:
        """The start of the first window."""
        return START_US

    @property
    def finals_end_us(self) -> int:
        """The end of the last final window."""
        return self.end_us - PENDING * WINDOW_US

    @property
    def minutes(self) -> int:
        """Return the number of windows of a stream."""
        return (self.end_us - START_US) // WINDOW_US

    @property
    def node_windows(self) -> int:
        """Return the number of node windows of the great stream."""
        return self.nodes * self.minutes


def fill(engine: Engine, month: Month, tell: Progress) -> None:
    """Make the store, in an empty database."""
    schema.prepare_store(engine)
    rules = windows.rules_of(month.paths)
    with _writing(engine) as connection:
        fencing.register_batch(connection, "bench", 0, rules)
    _day(engine, month.paths, rules, tell)
    for day in range(1, month.days):
        tell(f"day {day + 1} of {month.days}")
        with _writing(engine) as connection:
            _copy(connection, day * DAY_US)
    with _writing(engine) as connection:
        _break_off(connection, month)
    _settle(engine)


@contextmanager
def _writing(engine: Engine) -> Iterator[Connection]:
    with engine.execution_options(writes=True).begin() as connection:
        yield connection


def _day(
    engine: Engine, paths: Mapping[str, tuple[str, ...]], rules: Mapping[str, StreamConfig], tell: Progress
) -> None:
    """Conclude a day of all streams and roll it up, an hour a transaction."""
    dice = np.random.default_rng(1)
    pool = [tdigest.build((_LAG_US * dice.lognormal(sigma=0.5, size=MESSAGES)).astype(np.int64)) for _ in range(POOL)]
    for hour in range(DAY_US // HOUR_US):
        tell(f"hour {hour + 1} of the first day")
        starts_us = range(START_US + hour * HOUR_US, START_US + (hour + 1) * HOUR_US, WINDOW_US)
        made = [
            concluded(name, nodes, start_us, rules[name], pool, dice)
            for name, nodes in paths.items()
            for start_us in starts_us
        ]
        with _writing(engine) as connection:
            writer.write_conclusions(connection, made, starts_us[-1] + WINDOW_US)
            for name in paths:
                rollups.roll_up_hour(connection, name, starts_us[0])


def concluded(  # noqa: PLR0913, PLR0917 - all that a window is made of
    stream: str, nodes: tuple[str, ...], start_us: int, rules: StreamConfig, pool: list[tdigest.Digest], dice: Dice
) -> Conclusion:
    """Return a final window with digests of a pool, one in fifty of a stream with losses."""
    is_lossy = dice.random() < (0.0 if stream.endswith("0") else 0.02)
    result = windows.window(stream, nodes, start_us, dice, is_lossy=is_lossy, messages=MESSAGES)
    drawn = dice.integers(0, len(pool), (len(nodes), 3)).tolist()
    lags = tuple(NodeLags(*(pool[place] for place in of_node)) for of_node in drawn)
    tally = replace(empty_tally(rules.pathway), lags=lags)
    return Conclusion(
        result,
        tally,
        tuple(LostIds.from_ids(windows.ids(dice, 0)) for _ in nodes),
        is_settled=True,
        books=b"",
        changed=None,
    )


def _copy(connection: Connection, later_us: int) -> None:
    """Copy the first day to another one."""
    for table, start in [
        *((one, one.c.window_start_us) for one in _BY_WINDOW),
        *((one, one.c.start_us) for one in _BY_SPAN),
    ]:
        columns = [column if column is not start else (column + literal(later_us)) for column in table.c]
        of_first = select(*columns).where(start >= START_US, start < START_US + DAY_US)
        connection.execute(insert(table).from_select(list(table.c), of_first))


def _break_off(connection: Connection, month: Month) -> None:
    """Take back what the last day does not know yet, and note how far the monitor has read."""
    end_us = month.end_us
    live_us = end_us // HOUR_US * HOUR_US - (LIVE_HOURS - 1) * HOUR_US
    for table in _BY_WINDOW:
        connection.execute(delete(table).where(table.c.window_start_us >= end_us))
    for table in _BY_SPAN:
        connection.execute(delete(table).where(table.c.start_us >= live_us))
    column = tables.windows.c
    waiting = column.window_start_us >= end_us - PENDING * WINDOW_US
    pending = {"status": Status.PROVISIONAL.value, "verdict": None}
    connection.execute(update(tables.windows).where(waiting).values(pending))
    old = column.window_start_us < live_us
    connection.execute(update(tables.windows).where(old).values(is_live=False))
    hours_us = range(live_us, end_us, HOUR_US)
    rollups.mark_stale(connection, [(name, hour_us) for name in month.paths for hour_us in hours_us])
    for name in month.paths:
        # Its day is made anew with it, of the hours that are left.
        rollups.roll_up_hour(connection, name, live_us - HOUR_US)
    rows = [{"stream": name, "first_start_us": START_US, "last_start_us": end_us - WINDOW_US} for name in month.paths]
    connection.execute(insert(tables.streams), rows)
    writer.set_values(connection, {"watermark_us": str(end_us)})


def _settle(engine: Engine) -> None:
    """Let a server see to its tables, and the system write what was filled, as they do by themselves after a while."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            connection.execute(text("CHECKPOINT"))
    os.sync()
