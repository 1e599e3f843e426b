"""``hopwatch top``: throughput, lag and backlog of each node in the last seconds, as they change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.display import texts
from hopwatch.display.recent import EDGE_COLUMNS, RECENT_COLUMNS, build_edge_row, build_recent_rows, describe_recent
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.results import RecentFigures, recent_to_json
from hopwatch.monitor.store import dialect, recent_figures, schema

EVERY_S: Final = 2.0


def command(
    config: Config = DEFAULT_CONFIG,
    *,
    stream: Annotated[str | None, typer.Option("--stream", help="Show one stream; all by default.")] = None,
    every_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.5, max=3600, help="Read them again so often.")
    ] = EVERY_S,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, once.")] = False,
) -> None:
    """Show each node's throughput, lag and backlog now.

    They are of the last ten seconds of arrival, and provisional. On a terminal they are read again until Ctrl-C, else
    they are printed once.
    """
    chosen = load_settings(config)
    chosen.check_stream(stream)
    streams = list(chosen.streams) if stream is None else [stream]
    schema.require_store(chosen.store.url)
    engine = dialect.create_engine(chosen.store.url)
    if as_json:
        console.emit_json({"streams": [recent_to_json(one) for one in _read(engine, streams) if one is not None]})
        return
    words = console.stdout()
    if not words.is_terminal:
        words.print(_build_screen(streams, _read(engine, streams)))
        return
    with Live(console=words, auto_refresh=False, screen=False) as live:
        try:
            while True:
                live.update(_build_screen(streams, _read(engine, streams)), refresh=True)
                time.sleep(every_s)
        except KeyboardInterrupt:
            # The last figures stay.
            return


def _read(engine: Engine, streams: Sequence[str]) -> list[RecentFigures | None]:
    with schema.open_snapshot(engine) as connection:
        return [recent_figures.read_recent(connection, stream) for stream in streams]


def _build_screen(streams: Sequence[str], found: Sequence[RecentFigures | None]) -> Group:
    now_us = SystemClock().now_us()
    parts: list[Table | str] = []
    for stream, recent in zip(streams, found, strict=True):
        if recent is None:
            parts.append(f"{stream}: no figures yet; hopwatch run makes them, and run --once does not")
            continue
        is_old = recent.is_old(now_us)
        table = _build_table(RECENT_COLUMNS, build_recent_rows(recent), names=1, is_old=is_old)
        parts += [f"{stream}: {describe_recent(recent, now_us, texts.format_second(recent.through_us))}", table]
        if recent.edges:
            rows = [build_edge_row(edge) for edge in recent.edges]
            parts.append(_build_table(EDGE_COLUMNS, rows, names=2, is_old=is_old))
    return Group(*parts)


def _build_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, names: int, is_old: bool) -> Table:
    """Return a table whose first so many columns are words, the others figures."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for place, column in enumerate(columns):
        # Heads of two lines, so that nine columns fit 80 characters.
        first, _, last = column.rpartition(" ")
        head = Text(f"{first}\n{last}" if first else last)
        table.add_column(head, justify="left" if place < names else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row, style="dim" if is_old else "")
    return table
