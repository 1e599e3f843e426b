"""Table of hours or days: one row each, with the number of windows by verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from hopwatch.cli.loss_table import (
    PARTS,
    Json,
    format_lost_ratio,
    format_node_loss,
    print_accounts,
)
from hopwatch.cli.wide_tables import print_wide_table
from hopwatch.display import texts
from hopwatch.monitor.results import Verdict
from hopwatch.monitor.texts import loss_bounds

_VERDICTS: Final = (Verdict.CLEAN, Verdict.LOSSY, Verdict.UNKNOWN, Verdict.SILENT, Verdict.IDLE)


def print_rollups(console: Console, told: Json, name: str) -> None:
    """Print the object of ``report --by --json``; ``name`` is ``hours`` or ``days``."""
    for stream in told["streams"]:
        if stream[name]:
            print_wide_table(console, build_rollup_table(stream["stream"], stream[name], name))
        else:
            console.print(f"stream {stream['stream']}: no final window for the time that is shown")
            console.print()
    print_accounts(console, told["accounts"])


def build_rollup_table(stream: str, spans: Sequence[Json], name: str) -> Table:
    """Build the table with one row per hour or day: windows by verdict, loss end to end and by node, lag."""
    nodes = [node["node"] for node in spans[0]["nodes"]]
    counted = dict.fromkeys(one["node"] for span in spans for one in span["counts"] if one["before"] is not None)
    table = Table(title=f"stream {stream}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(name.removesuffix("s"), no_wrap=True)
    for head in ("windows", *(verdict.lower() for verdict in _VERDICTS)):
        table.add_column(head, justify="right", no_wrap=True)
    more = [name for name in ("partial",) if any(one[name] for one in spans)]
    sums = ("known", "delivered", "missing", *more, "surely lost", "at most", "lost %")
    by_count = (f"loss before {node}, by count" for node in counted)
    for head in (*sums, *(f"loss {node}" for node in nodes), *by_count):
        table.add_column(head, justify="right", no_wrap=True)
    for part in PARTS:
        table.add_column(f"lag {part}", justify="right", no_wrap=True)
    for one in spans:
        judged = [texts.format_count(one["verdicts"][verdict]) for verdict in _VERDICTS]
        fields = ("known", "delivered", "lost", *more, "lost_lower", "lost_upper")
        counts = [texts.format_count(one[field]) for field in fields]
        lags = [texts.format_lag(one["lag_us"][part] if one["lag_us"] else None) for part in PARTS]
        start = one["start"].replace("T", " ").replace(":00:00Z", ":00Z") if name == "hours" else one["start"][:10]
        table.add_row(
            start,
            texts.format_count(one["windows"]),
            *judged,
            *counts,
            format_lost_ratio(one),
            *map(format_node_loss, one["nodes"]),
            *(_format_counted_loss(one, node) for node in counted),
            *lags,
        )
    return table


def _format_counted_loss(span: Json, node: str) -> str:
    """Format the loss before a node that only counts; unknown too where the hour or day has no counts of it."""
    bounds = {one["node"]: (one["lost_before_lower"], one["lost_before_upper"]) for one in span["counts"]}
    lower, upper = bounds.get(node, (0, None))
    return loss_bounds.format_bounds(lower, lower, upper)
