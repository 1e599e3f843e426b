"""Cost of the dashboard's queries without a page: the first time in a process, and again.

The functions are called in a process of their own, see :mod:`bench.contestant`; spans are in ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import sqlalchemy
from sqlalchemy import Connection, Engine, event

from bench import plain_page
from bench.contestant import Json
from bench.month import GREAT, Month
from bench.truth import WrongResultError
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.queries.query_cache import Query
from hopwatch.dashboards.queries.stream_queries import MAX_NODES, StreamRangeQuery, StreamsOverviewQuery
from hopwatch.dashboards.views import display_range
from hopwatch.dashboards.views.address import PageAddress, RangePreset
from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.contract.limits import WINDOW_US

ROUNDS: Final = 5
STANDING: Final = "all streams"


def ours(folder: Path, url: str, days: int, nodes: int) -> Json:
    """Ask what the pages ask, of every range; each question once anew, then again."""
    del folder
    engine, month = dialect.create_engine(url), Month(days, nodes)
    told: Json = {STANDING: _asked(engine, StreamsOverviewQuery())}
    for name in RangePreset:
        shown = display_range.select_range(
            PageAddress(stream=GREAT, range=name), month.start_us, month.end_us - WINDOW_US
        )
        most = display_range.limit_lines(shown.step_count, MAX_NODES)
        question = StreamRangeQuery(GREAT, shown.from_us, shown.to_us, shown.step_us, max_nodes=most)
        told[name.value] = _asked(engine, question)
        with schema.open_snapshot(engine) as connection:
            _check(question.run(connection), month, name)
    return told


def plain(folder: Path, url: str, days: int, nodes: int, ranges: list[str]) -> Json:
    """Read all node-windows of some ranges with pandas, once each."""
    del folder
    engine, month = sqlalchemy.create_engine(url), Month(days, nodes)
    told: Json = {}
    for name in ranges:
        began_s = time.perf_counter()
        found = plain_page.read_windows(engine, GREAT, month.end_us, plain_page.RANGES[name])
        told[name] = (time.perf_counter() - began_s) * 1e3
        expected = min(plain_page.RANGES[name] * 60, month.minutes) * nodes
        if len(found) != expected:
            raise WrongResultError(f"pandas read {len(found):,} node-windows of {name}, there are {expected:,}")
    return told


def _asked(engine: Engine, question: Query[object]) -> Json:
    statements: list[object] = []

    def read() -> None:
        with schema.open_snapshot(engine) as connection:
            question.run(connection)

    def count(connection: Connection, *_: object) -> None:
        statements.append(connection)

    event.listen(engine, "before_cursor_execute", count)
    first_ms = _timed_ms(read)
    statements.clear()
    read()
    event.remove(engine, "before_cursor_execute", count)
    return {
        "first_ms": first_ms,
        "again_ms": median(_timed_ms(read) for _ in range(ROUNDS)),
        "statements": len(statements),
    }


def _timed_ms(act: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    act()
    return (time.perf_counter() - began_s) * 1e3


def _check(stretch: StreamRange, month: Month, name: RangePreset) -> None:
    """Check that all final windows of a range are in the whole of it.

    Raises:
        WrongResultError: they are not.
    """
    length = display_range.select_range(PageAddress(stream=GREAT, range=name), month.start_us, month.end_us - WINDOW_US)
    from_us = max(length.from_us, month.start_us)
    expected = (month.finals_end_us - from_us) // WINDOW_US
    got = stretch.total.windows if stretch.total else 0
    if got != expected:
        raise WrongResultError(f"{name} has {got:,} final windows, there are {expected:,}")
