"""``hopwatch completeness``: how complete the windows of a stream would have been after each wait."""

from __future__ import annotations

from dataclasses import astuple
from typing import Annotated, Final

import typer
from rich import box
from rich.table import Table

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings, parse_span_us
from hopwatch.dashboards.views.completeness import build_curve_rows
from hopwatch.display import texts
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.kernel.completeness_curve import WAITS_US
from hopwatch.monitor.lookup.completeness_curve import RISK, CurveAnswer, curve_to_json, format_proposal, read_curve
from hopwatch.monitor.store import dialect, schema

DAY_US: Final = 86_400_000_000
WEEK_DAYS: Final = 7
COLUMNS: Final = ("judged after", "incomplete windows", "share", "later arrivals", "share", "worst")

command = typer.Typer(help="Show how complete windows would have been after each wait.", no_args_is_help=True)


@command.callback()
def _completeness() -> None:
    """Show how complete windows would have been after each wait."""


@command.command()
def curve(  # noqa: PLR0913 - one a flag
    stream: Annotated[str, typer.Option("--stream", help="The stream.")],
    config: Config = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option("--days", min=1, max=3_650, help="Look at so many days.")] = WEEK_DAYS,
    wait: Annotated[
        list[str] | None, typer.Option("--wait", metavar="SPAN", help="A wait, such as 45s; may be given again.")
    ] = None,
    risk: Annotated[
        float,
        typer.Option("--risk", min=0, max=0.5, help="Share of windows that may take longer than proposed."),
    ] = RISK,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show what windows would have lacked after each wait.

    And propose transit and settle. From the lags of the final windows that the store keeps.
    """
    chosen = load_settings(config)
    chosen.check_stream(stream)
    waits_us = sorted({parse_span_us("--wait", one) for one in wait}) if wait else WAITS_US
    to_us = SystemClock().now_us()
    schema.require_store(chosen.store.url)
    with schema.open_snapshot(dialect.create_engine(chosen.store.url)) as connection:
        terms = chosen.streams[stream].rules.terms
        answer = read_curve(connection, stream, terms, to_us - days * DAY_US, to_us, waits_us, risk)
    if as_json:
        console.emit_json(curve_to_json(answer))
    else:
        _print_answer(answer)


def _print_answer(answer: CurveAnswer) -> None:
    whole = answer.curve.whole
    words = console.stdout()
    if answer.proposal is None:
        words.print(f"{answer.stream}: the store has no final window with messages in this range")
        return
    terms = f"transit {texts.format_lag(answer.terms.transit_us)}, settle {texts.format_lag(answer.terms.settle_us)}"
    words.print(f"{answer.stream}: {whole.windows:,} windows, {whole.arrivals:,} arrivals at its nodes; {terms}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row in build_curve_rows(whole):
        table.add_row(*astuple(row))
    words.print(table)
    for node, found in answer.curve.nodes.items():
        words.print(f"{node}: the latest arrival {texts.format_lag(found.latest_us)} after its event time")
    for line in format_proposal(answer.stream, answer.proposal):
        words.print(line)
