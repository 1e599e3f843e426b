"""Speed of the dashboard over a month of 100 nodes, in both databases, beside a page that reads all with pandas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bench.browser import EMPTY, OVERVIEW, PLAIN, changes_s, chromium, loads_s, stream
from bench.contestant import run
from bench.dashboard_server import EMPTY as EMPTY_PAGE
from bench.dashboard_server import OURS, run_server
from bench.dashboard_server import PLAIN as PLAIN_PAGE
from bench.month import GREAT, Month, fill
from bench.query_cost import STANDING
from bench.speed import Progress
from bench.viewers import looked
from hopwatch.monitor.store import dialect
from servers.postgres import Postgres

LOADS: Final = 20
PLAIN_LOADS: Final = 3
VIEWERS: Final = 50
REFRESHES: Final = 6
RANGES: Final = ("24h", "7d", "30d")
LOAD_GOAL_S: Final = 1.0
CHANGE_GOAL_S: Final = 0.5
TRIPS_GOAL: Final = 1.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
NEW, AGAIN = "new session", "new tab"


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """A question alone, ms: the first time in a process, and again; what pandas takes to read all of the range."""

    store: str
    question: str
    first_ms: float
    again_ms: float
    statements: int
    pandas_ms: float | None


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Time until a page is drawn in a browser, in s; ``plain_s`` is the plain page's median."""

    store: str
    what: str
    times: int
    p50_s: float
    p95_s: float
    goal_s: float | None = None
    plain_s: float | None = None


@dataclass(frozen=True, slots=True)
class CrowdTimes:
    """Many viewers of one page: what a refresh of one costs, and how long one waits for it."""

    store: str
    who: str
    viewers: int
    refreshes: int
    trips: float
    statements: float
    cpu_s: float
    cores: float
    memory_bytes: int
    p50_s: float
    p95_s: float


Line = QueryTimes | PageTimes | CrowdTimes


def measure(scratch: Path, tell: Progress, month: Month = Month()) -> list[Line]:  # noqa: B008 - a frozen value
    """Return what was measured with both databases; what is read is checked to be all.

    Raises:
        ServerError: PostgreSQL is not there, or does not start.
        ContestantError: one failed, or there is no Chromium.
        WrongResultError: a range is not whole.
    """
    tell("an empty page")
    with run_server(EMPTY_PAGE, scratch) as server, chromium() as browser:
        of_kinds = loads_s(browser, server.url, EMPTY, LOADS)
    lines: list[Line] = [
        _viewed("none", f"an empty page of Streamlit, {kind}", spans_s, None, None)
        for kind, spans_s in zip((NEW, AGAIN), of_kinds, strict=True)
    ]
    for store in (SQLITE, POSTGRES):
        with open_database(store, scratch) as url:
            engine = dialect.create_engine(url)
            fill(engine, month, lambda step, store=store: tell(f"{store}: {step}"))  # type: ignore[misc]  # a default
            engine.dispose()
            lines += _measured(store, url, scratch, month, tell)
    return lines


@contextmanager
def open_database(store: str, scratch: Path) -> Iterator[str]:
    """Yield the URL of an empty database, that goes with what is in it."""
    if store == SQLITE:
        file = scratch / "month.db"
        yield f"sqlite:///{file}"
        for name in (file, file.with_name("month.db-wal"), file.with_name("month.db-shm")):
            name.unlink(missing_ok=True)
        return
    server = Postgres()
    try:
        server.start()
        yield server.database()
    finally:
        server.remove()


def _measured(store: str, url: str, scratch: Path, month: Month, tell: Progress) -> list[Line]:
    size = {"url": url, "days": month.days, "nodes": month.nodes}
    tell(f"{store}: questions alone")
    ours = run("bench.query_cost:ours", scratch, **size).result
    plain = run("bench.query_cost:plain", scratch, ranges=[name for name in ours if name != STANDING], **size).result
    lines: list[Line] = [QueryTimes(store, name, **told, pandas_ms=plain.get(name)) for name, told in ours.items()]
    config = scratch / "hopwatch.toml"
    config.write_text(configuration(url, month), "utf-8")
    with run_server(PLAIN_PAGE, scratch, url, GREAT, str(month.end_us)) as server, chromium() as browser:
        tell(f"{store}: a plain page")
        plain_s = float(np.median(loads_s(browser, server.url, PLAIN, PLAIN_LOADS)[0]))
    with run_server(OURS, scratch, str(config)) as server, chromium() as browser:
        tell(f"{store}: a browser")
        great = f"{server.url}?stream={GREAT}"
        (first_s,), _ = loads_s(browser, great, stream("1h"), 1)
        lines.append(PageTimes(store, "a stream, first page of the process", 1, first_s, first_s, plain_s=plain_s))
        for what, page, drawn in (("overview", server.url, OVERVIEW), ("a stream, an hour", great, stream("1h"))):
            new_s, again_s = loads_s(browser, page, drawn, LOADS)
            lines.append(_viewed(store, f"{what}, {NEW}", new_s, LOAD_GOAL_S, plain_s))
            lines.append(_viewed(store, f"{what}, {AGAIN}", again_s, LOAD_GOAL_S, plain_s))
        for name, (first_s, *spans_s) in changes_s(browser, great, RANGES, LOADS + 1).items():
            lines.append(PageTimes(store, f"to {name}, first of the process", 1, first_s, first_s))
            lines.append(_viewed(store, f"to {name}", spans_s, CHANGE_GOAL_S, None))
    for who, arguments in ((OURS, (str(config),)), (PLAIN_PAGE, (url, GREAT, str(month.end_us)))):
        tell(f"{store}: {VIEWERS} viewers, {who}")
        lines.append(_crowd(store, who, scratch, *arguments))
    return lines


def _viewed(store: str, what: str, spans_s: list[float], goal_s: float | None, plain_s: float | None) -> PageTimes:
    p50_s, p95_s = (float(span_s) for span_s in np.quantile(spans_s, (0.5, 0.95)))
    return PageTimes(store, what, len(spans_s), p50_s, p95_s, goal_s, plain_s)


def _crowd(store: str, who: str, scratch: Path, *arguments: str) -> CrowdTimes:
    with run_server(who, scratch, *arguments) as server:
        begun = []
        spans_s = looked(server.url, [f"stream={GREAT}"] * VIEWERS, REFRESHES, lambda: begun.append(server.sample()))
        ended, (began,) = server.sample(), begun
        p50_s, p95_s = (float(span_s) for span_s in np.quantile(spans_s, (0.5, 0.95)))
        return CrowdTimes(
            store,
            who,
            VIEWERS,
            len(spans_s),
            (ended.trips - began.trips) / len(spans_s),
            (ended.statements - began.statements) / len(spans_s),
            (ended.cpu_s - began.cpu_s) / len(spans_s),
            (ended.cpu_s - began.cpu_s) / (ended.at_s - began.at_s),
            server.peak.memory_bytes,
            p50_s,
            p95_s,
        )


def configuration(url: str, month: Month) -> str:
    """Return the configuration of a monitor whose store this is."""
    streams = "".join(f'[streams.{name}]\npath = "{" -> ".join(nodes)}"\n' for name, nodes in month.paths.items())
    return f'[transport]\nurl = "spool:./spool"\n[store]\nurl = "{url}"\n[monitor]\nworkdir = "./work"\n{streams}'
