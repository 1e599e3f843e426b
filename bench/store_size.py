"""Room of a node's minute in the store, with its digests and without, and what it costs to drop them.

Of both databases, compacted: a stream of many nodes and some small ones, with digests of 200 values each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.table import Table
from sqlalchemy import ColumnElement, Engine, create_engine, func, select, text

from bench.dashboard import POSTGRES, SQLITE, open_database
from bench.month import Month, fill
from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.monitor.micro_batch import MAX_HOURS_PER_BATCH
from hopwatch.monitor.store import dialect, digest_retention, tables
from hopwatch.monitor.store.tables import NODE_LAGS

DAYS: Final = 1
NODES: Final = 100
_SIZE: Final = {
    SQLITE: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    POSTGRES: "SELECT pg_database_size(current_database()) - (SELECT pg_database_size('template1'))",
}
_COMPACT: Final = {SQLITE: "VACUUM", POSTGRES: "VACUUM FULL"}


@dataclass(frozen=True, slots=True)
class StoreSize:
    """Bytes of a store a node and minute, before digests are dropped and after, and µs to drop them.

    ``kept`` are the node minutes that have digests afterwards, as their hours may change.
    """

    store: str
    node_windows: int
    kept: int
    before_bytes: float
    after_bytes: float
    drop_us: float


def measure(scratch: Path, tell: Progress) -> list[StoreSize]:
    """Measure both databases."""
    month = Month(DAYS, NODES)
    found = []
    for store in (SQLITE, POSTGRES):
        with open_database(store, scratch) as url, _open_engine(url) as engine:
            fill(engine, month, partial(_tell_of, store, tell))
            found.append(_measure_store(store, engine, month.end_us))
    return found


def build_table(sizes: Sequence[StoreSize]) -> Table:
    """Return the table of the sizes."""
    figures = ("node minutes", "bytes each", "without digests", "ratio", "µs to drop them")
    table = new_table("Room of a node's minute in the store", ("store",), figures)
    for one in sizes:
        ratio = one.before_bytes / one.after_bytes
        sides = (format_number(size, 0) for size in (one.before_bytes, one.after_bytes))
        table.add_row(
            one.store, f"{one.node_windows:,}", *sides, format_number(ratio, 1), format_number(one.drop_us, 1)
        )
    return table


def _tell_of(store: str, tell: Progress, what: str) -> None:
    tell(f"{store}: {what}")


def _measure_store(store: str, engine: Engine, end_us: int) -> StoreSize:
    node_windows = _count_rows(engine)
    before = _read_size(store, engine)
    since_s = time.perf_counter()
    while _drop_hours(engine, end_us):
        pass
    drop_us = (time.perf_counter() - since_s) * 1e6 / node_windows
    digest = tables.node_windows.c[f"{NODE_LAGS[0]}_digest"]
    kept = _count_rows(engine, func.length(digest) > 0)
    after = _read_size(store, engine)
    return StoreSize(store, node_windows, kept, before / node_windows, after / node_windows, drop_us)


def _drop_hours(engine: Engine, end_us: int) -> int:
    """Drop the digests of a few hours, as a micro-batch does; return of how many."""
    with engine.execution_options(writes=True).begin() as connection:
        return digest_retention.drop_digests(connection, end_us, MAX_HOURS_PER_BATCH)


def _count_rows(engine: Engine, *conditions: ColumnElement[bool]) -> int:
    wanted = select(func.count()).select_from(tables.node_windows).where(*conditions)
    with engine.connect() as connection:
        return int(connection.execute(wanted).scalar_one())


def _read_size(store: str, engine: Engine) -> int:
    # The store's own engine begins transactions, in which nothing is compacted.
    plain = create_engine(engine.url, isolation_level="AUTOCOMMIT")
    with plain.connect() as connection:
        connection.execute(text(_COMPACT[store]))
        size = int(connection.execute(text(_SIZE[store])).scalar_one())
    plain.dispose()
    return size


@contextmanager
def _open_engine(url: str) -> Iterator[Engine]:
    engine = dialect.create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()
