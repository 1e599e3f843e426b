"""``hopwatch compare``: whether a new version at a node is worse than the others."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich import box
from rich.table import Table

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.display import texts
from hopwatch.display.comparison import (
    COMPARISON_COLUMNS,
    VERDICTS,
    build_comparison_lines,
    describe_pair,
    describe_unknown,
)
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.comparison import ComparisonVerdict
from hopwatch.monitor.lookup.comparison import (
    MAX_LOSS_INCREASE,
    MAX_SLOW_INCREASE,
    ComparisonQuery,
    VersionComparison,
    comparison_to_json,
    read_comparison,
)
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.label_counts import VERSION_LABEL
from hopwatch.monitor.texts.moments import parse_range_us

EXIT_CODES: Final = {ComparisonVerdict.NOT_WORSE: 0, ComparisonVerdict.WORSE: 1, ComparisonVerdict.UNKNOWN: 4}


def command(  # noqa: PLR0913 - one a flag
    stream: Annotated[str, typer.Option("--stream", help="The stream.")],
    node: Annotated[str, typer.Option("--node", help="The node that has a new version.")],
    config: Config = DEFAULT_CONFIG,
    label: Annotated[str, typer.Option("--label", help="The label that tells versions apart.")] = VERSION_LABEL,
    candidate: Annotated[
        str | None, typer.Option("--candidate", metavar="VALUE", help="The new version; the newest by default.")
    ] = None,
    *,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="VALUE", help="Compare with it; with all others by default.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option("--from", help="Windows from this moment on, ISO 8601; of one day by default.")
    ] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="Windows before this moment, ISO 8601.")] = None,
    max_loss_increase: Annotated[
        float,
        typer.Option("--max-loss-increase", metavar="RATIO", min=0, max=1, help="Tolerate so much more loss."),
    ] = MAX_LOSS_INCREASE,
    max_slow_increase: Annotated[
        float,
        typer.Option("--max-slow-increase", metavar="RATIO", min=0, max=1, help="Tolerate so many more slow ones."),
    ] = MAX_SLOW_INCREASE,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare a new version at a node with the others.

    Exit 0 if it loses no more, and is slow no more often; 1 if it is worse; 4 if that is not known yet.
    """
    chosen = load_settings(config)
    chosen.check_stream(stream)
    nodes = chosen.streams[stream].rules.known_nodes
    if node not in nodes:
        raise ConfigurationError(f"--node names {node!r}, the path of {stream} has: {', '.join(sorted(nodes))}")
    from_us, to_us = parse_range_us(from_time, to_time)
    schema.require_store(chosen.store.url)
    query = ComparisonQuery(
        stream, node, label, candidate, baseline, from_us, to_us, max_loss_increase, max_slow_increase
    )
    with schema.open_snapshot(dialect.create_engine(chosen.store.url)) as connection:
        found = read_comparison(connection, query)
    if as_json:
        console.emit_json(comparison_to_json(found))
    else:
        _print_comparison(found)
    raise typer.Exit(EXIT_CODES[found.verdict])


def _print_comparison(found: VersionComparison) -> None:
    words, query = console.stdout(), found.query
    words.print(f"{query.node} of {query.stream}: {describe_pair(found)}{_format_span(found)}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(COMPARISON_COLUMNS):
        table.add_column(column, justify="right" if place else "left")
    for line in build_comparison_lines(found):
        table.add_row(*line.cells)
    words.print(table)
    for reason in describe_unknown(found):
        words.print(reason)
    tolerated = texts.format_ratio(query.max_loss_increase), texts.format_ratio(query.max_slow_increase)
    words.print(f"{VERDICTS[found.verdict]} (tolerated: +{tolerated[0]} lost, +{tolerated[1]} slow)")


def _format_span(found: VersionComparison) -> str:
    if found.from_us is None or found.to_us is None:
        return ""
    when = f"from {texts.format_moment(found.from_us)} to {texts.format_moment(found.to_us)}"
    return f", {found.windows:,} windows {when}"
