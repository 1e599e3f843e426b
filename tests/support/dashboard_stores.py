"""Stores in every state that a page may meet, and the app over one of them without a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Engine, update
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel.tally import NEVER_US, empty_tally
from hopwatch.monitor.pathway import Group, Pathway, Stamps
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.store import dialect, digest_retention, fencing, rollups, schema, tables, writer
from hopwatch.monitor.store.writer import set_values
from hopwatch.monitor.stream_config import StreamConfig
from tests.support.clock import ManualClock
from tests.support.conclusions import PATHWAY, build_conclusion
from tests.support.spool import WINDOW_POLICY
from tests.support.windows import at, window

HOSTILE: Final = ("<img src=x onerror=alert(1)>", "**bold**", ":red[x]", "[a](javascript:alert(1))", "$x$ {b} `c`")
"""Names that mean something to whoever takes them for more than text."""
NOW_MINUTE: Final = 12
PATIENCE_S: Final = 240


def chain(*nodes: str) -> Pathway:
    """Return a chain of nodes by any name, those that no configuration lets through too."""
    groups = tuple(Group(place, (place + 1,)) for place in range(len(nodes) - 1))
    stamps: list[Stamps] = ["both" for _ in nodes]
    return Pathway(nodes, groups, tuple(stamps))


def fill(url: str, *results: WindowResult, pathways: Mapping[str, Pathway] | None = None) -> Engine:
    """Make a store with these windows, whose monitor has read up to just before ``clock()``."""
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    found = {one.stream: chain(*(node.node for node in one.nodes)) for one in results} | dict(pathways or {})
    rules = {stream: StreamConfig(pathway, WINDOW_POLICY) for stream, pathway in found.items()}
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, rules)
        writer.write_conclusions(connection, [_concluded(one, found[one.stream]) for one in results], at(NOW_MINUTE))
        for stream in {one.stream for one in results}:
            starts = sorted(one.window_start_us for one in results if one.stream == stream)
            row = {"stream": stream, "first_start_us": starts[0], "last_start_us": starts[-1]}
            connection.execute(dialect.upsert(connection, tables.streams), [row])
        set_values(connection, {"watermark_us": str(at(NOW_MINUTE) - 5_000_000)})
    return engine


def _concluded(result: WindowResult, pathway: Pathway) -> Conclusion:
    made = build_conclusion(result if len(result.nodes) == len(PATHWAY.nodes) else None)
    nothing = tuple(made.lost[0].taken(np.zeros(0, np.int64)) for _ in pathway.nodes)
    return made._replace(result=result, tally=empty_tally(pathway), lost=nothing)


def clock(minute: float = NOW_MINUTE) -> ManualClock:
    """Return a clock that stands at a minute after the first window."""
    return ManualClock(at(minute))


def drop_all_digests(engine: Engine) -> None:
    """Roll all hours up, and drop the digests of their minutes."""
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(tables.windows).values(is_live=False))
        for stream, hour_us in rollups.read_stale_hours(connection):
            rollups.roll_up_hour(connection, stream, hour_us)
        digest_retention.drop_digests(connection, NEVER_US, 1_000)


def build_windows(count: int = 10, **fields: Any) -> list[WindowResult]:  # noqa: ANN401 - the fields of a window
    """Return windows in a row; those that are not final have no verdict."""
    return [without_verdict(window(minute, **fields)) for minute in range(count)]


def without_verdict(one: WindowResult) -> WindowResult:
    """Return a window without its verdict if it is not final."""
    return one if one.status.is_final else replace(one, verdict=None)


def run_app(answers: QueryCache, now: ManualClock, **query: str) -> AppTest:
    """Run the app for somebody who follows a link."""
    tested = AppTest.from_function(_app, args=(answers, now), default_timeout=PATIENCE_S)
    for name, value in query.items():
        tested.query_params[name] = value
    return tested.run()


def open_page(url: str, now: ManualClock | None = None, /, **query: str) -> AppTest:
    """Run the app over the store at a URL."""
    now = now or clock()
    return run_app(QueryCache(url, now), now, **query)


def store_url(folder: Path) -> str:
    """Return the URL of a store in a folder."""
    return f"sqlite:///{folder}/store.db"


def read_page(tested: AppTest) -> str:
    """Return all markup and text of a page."""
    kinds = ("html", "markdown", "text", "warning", "error", "info", "code", "subheader")
    return "\n".join(one for kind in kinds for one in read_elements(tested, kind))


def plain(markup: str) -> str:
    """Return markup without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


def read_elements(tested: AppTest, kind: str) -> list[str]:
    """Return the texts of the elements of a kind."""
    found: list[Any] = list(tested.get(kind))
    return [str(getattr(one, "body", None) or one.value) for one in found]


def _app(answers: object, now: object) -> None:
    from hopwatch.dashboards import app as shown  # noqa: PLC0415 - the source is all that it has

    shown.draw_app(answers, "hopwatch.toml", now)  # type: ignore[arg-type]  # its source is run by itself, without these types
