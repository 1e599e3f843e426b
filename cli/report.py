"""``hopwatch report``: print the loss and lag of each window and node."""

from __future__ import annotations

from datetime import UTC
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from sqlalchemy import Engine

from hopwatch import __version__
from hopwatch.cli import console, loss_table, rollup_table
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, instances, reader, rollups, schema
from hopwatch.monitor.store.markers import query_markers
from hopwatch.monitor.texts.moments import parse_range_us
from hopwatch.monitor.texts.read_progress import ReadProgress, iso_second
from hopwatch.probes.contract.limits import WINDOW_US

FINDING_EXIT_CODE = 1


class RollupPeriod(StrEnum):
    """Period of roll-ups."""

    HOUR = "hour"
    DAY = "day"


def command(  # noqa: PLR0913 - one a flag
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream.")] = None,
    from_time: Annotated[str | None, typer.Option("--from", help="Windows from this moment on, ISO 8601.")] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="Windows that start before this moment.")] = None,
    by: Annotated[RollupPeriod | None, typer.Option("--by", help="Hours or days, UTC, instead of windows.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one file to attach to an incident: tables and charts.")
    ] = None,
    revisions: Annotated[
        bool, typer.Option("--revisions", help="What each later judgement of a window changed: before and after.")
    ] = False,
    by_label: Annotated[
        str | None,
        typer.Option("--by-label", metavar="LABEL", help="Split the window that is printed by this label's values."),
    ] = None,
    fail_on_loss: Annotated[
        float | None,
        typer.Option(
            "--fail-on-loss", min=0, max=1, help="Exit 1 if one that is final surely lost more than this part."
        ),
    ] = None,
) -> None:
    """Show the loss and lag of each window and node, or of each hour or day."""
    chosen = load_settings(config)
    chosen.check_stream(stream, with_selftest=True)
    from_us, to_us = parse_range_us(from_time, to_time)
    _check_flags(is_window_table=by is None and html is None, as_json=as_json, revisions=revisions, by_label=by_label)
    schema.require_store(chosen.store.url)
    engine = dialect.create_engine(chosen.store.url)
    if html is not None:
        _write_html(html, engine, stream, (from_us, to_us), by)
        if not as_json and fail_on_loss is None:
            return
    if by is None:
        told = reader.read_report(engine, stream, from_us, to_us, with_revisions=revisions and as_json)
    else:
        told = rollups.read_report(engine, by.value, stream, from_us, to_us)
    if as_json:
        through_us = _read_progress(engine).through_us
        console.emit_json(told | {"read_through": format_iso(through_us) if through_us else None})
    elif html is None:
        if by is None:
            terms = {name: of.terms for name, of in chosen.stream_configs().items()}
            now_us = SystemClock().now_us()
            with schema.open_snapshot(engine) as connection:
                marked = query_markers(connection, stream, 0, now_us)
            loss_table.print_report(console.stdout(), told, terms, now_us, by_label, marked)
            if revisions:
                _print_revisions(engine, stream, from_us, to_us)
        else:
            rollup_table.print_rollups(console.stdout(), told, f"{by.value}s")
        _print_progress(_read_progress(engine))
    if fail_on_loss is not None and any(_lost_ratio(one) > fail_on_loss for one in _list_judged(told, by)):
        raise typer.Exit(FINDING_EXIT_CODE)


def _check_flags(*, is_window_table: bool, as_json: bool, revisions: bool, by_label: str | None) -> None:
    """Check flags that show more of windows.

    Raises:
        ConfigurationError: they are given with flags that print no window.
    """
    if revisions and not is_window_table:
        raise ConfigurationError("--revisions shows what changed in windows: leave --by and --html out")
    if by_label is not None and (as_json or not is_window_table):
        told = "--by-label splits the window that is printed: leave --by, --html and --json out"
        raise ConfigurationError(f"{told}; --json has all labels anyway")


def _print_revisions(engine: Engine, stream: str | None, from_us: int | None, to_us: int | None) -> None:
    """Print the revisions of windows: what each judgement after the first one said otherwise."""
    from hopwatch.dashboards.views.window_detail import build_amendment

    words = console.stdout()
    with schema.open_snapshot(engine) as connection:
        found = list(reader.read_revisions(connection, stream, from_us, to_us))
        for one in found:
            told = build_amendment(one, UTC)
            where = f"{one.stream}  {format_iso(one.window_start_us)}"
            words.print(f"{where}  revision {told.revision}, read up to {told.judged_at}")
            for name, changes in told.lines:
                words.print(f"    {name}: {changes}")
            if told.left_out:
                words.print(f"    and {told.left_out} more nodes, which --json shows")
    if not found:
        words.print("no window in the range was judged again with another result")


def _read_progress(engine: Engine) -> ReadProgress:
    with schema.open_snapshot(engine) as connection:
        return instances.read_progress(connection)


def _print_progress(reached: ReadProgress) -> None:
    """Print how far the transport was read, if that is notable."""
    if notice := reached.notice(SystemClock().now_us(), iso_second):
        console.stdout().print(Text(notice.words, "bold red" if notice.is_grave else "yellow"))
    elif once := reached.once(iso_second):
        console.stdout().print(once)


def _write_html(
    file: Path, engine: Engine, stream: str | None, span: tuple[int | None, int | None], by: RollupPeriod | None
) -> None:
    """Write the report as one HTML file.

    Raises:
        ConfigurationError: the file cannot be written, or the report is too large.
    """
    from hopwatch.dashboards.queries.report import ReportQuery
    from hopwatch.dashboards.report import page

    step_us = {None: WINDOW_US, RollupPeriod.HOUR: rollups.HOUR_US, RollupPeriod.DAY: rollups.DAY_US}[by]
    with schema.open_snapshot(engine) as connection:
        told = ReportQuery(stream, *span, step_us).run(connection)
    try:
        file.write_text(page.render_report(told, SystemClock().now_us(), __version__), "utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"--html cannot write {file}: {error.strerror or error}") from error
    console.stderr().print(f"hopwatch: the report is in {file}")


def _list_judged(told: reader.Json, by: RollupPeriod | None) -> list[reader.Json]:
    return [one for stream in told["streams"] for one in stream[f"{by.value}s" if by else "windows"]]


def _lost_ratio(judged: reader.Json) -> float:
    """Return the ratio of messages surely lost, by ids or before a node by count; unknown losses do not count."""
    lost = max((judged["lost_lower"], *(one["lost_before_lower"] for one in judged["counts"])))
    return lost / judged["known"] if judged["known"] else 0.0
