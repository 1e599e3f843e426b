"""The window table, and "injected against measured", as rows of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.measurements import Json, is_final
from hopwatch.demo.stream import GATE, NODES
from hopwatch.display import texts
from hopwatch.monitor.texts import loss_bounds

WIDTHS: Final = {
    "window": 6,
    "status": 11,
    "verdict": 7,
    "known": 11,
    "delivered": 11,
    "rejected": 9,
    "lost": 16,
    "lag p95": 9,
}
"""Characters a column when piped: the widest status, counts into the tens of millions, losses with their bounds."""
NODE_WIDTH: Final = 16
MAX_WIDTH: Final = 1_000
NOTHING: Final = texts.NONE
COLOURS: Final = {"LOSSY": "red", "CLEAN": "green", "UNKNOWN": "yellow"}


def build_headings(nodes: Sequence[str] = NODES) -> tuple[str, ...]:
    """Return the headings of the columns; behind a gate there is one for what it rejected."""
    wanted = [name for name in WIDTHS if name != "rejected" or GATE in nodes]
    return (*wanted[:-1], *_node_headings(nodes), wanted[-1])


def _node_headings(nodes: Sequence[str]) -> list[str]:
    return [f"lost at\n{node}" for node in nodes]


def format_window_cells(window: Json, nodes: Sequence[str] = NODES) -> tuple[str, ...]:
    """Return the cells of one window; what is not judged yet is no loss, and shown as a dash.

    So is a node that the path of the window has not: whoever runs a demo may edit its configuration meanwhile.
    """
    is_judged, by_name = is_final(window), {node["node"]: node for node in window["nodes"]}
    entries = [("lost", window), *(("loss", by_name.get(node)) for node in nodes)]
    return (
        window["window_start"][11:16],
        window["status"],
        window["verdict"] or NOTHING,
        texts.format_count(window["known"]),
        texts.format_count(window["delivered"]),
        *([texts.format_count(window["rejected"])] if GATE in nodes else []),
        *(_format_loss(name, entry) if entry and is_judged else NOTHING for name, entry in entries),
        texts.format_lag(window["lag_us"]["p95"]) if window["lag_us"] else NOTHING,
    )


def _format_loss(name: str, entry: Json) -> str:
    return loss_bounds.format_bounds(entry[name], entry[f"{name}_lower"], entry[f"{name}_upper"])


def format_window_line(cells: Iterable[str] = (), nodes: Sequence[str] = NODES) -> str:
    """Return cells as one line of plain text; without any, the headings, in which a column of a node is its name."""
    named = build_headings(nodes)
    shown = zip(tuple(cells) or named, named, strict=True)
    return " ".join(cell.split("\n")[-1].rjust(WIDTHS.get(heading, NODE_WIDTH)) for cell, heading in shown)


def build_window_table(windows: Sequence[Json], width: int, nodes: Sequence[str] = NODES) -> Table:
    """Return the windows as a table for a terminal of so many characters: columns are left out, figures never cut."""
    # What a narrow terminal does without, the first of it first.
    dispensable = ("status", "delivered", "lag p95", *_node_headings(nodes))
    shown = [_window_table(windows, nodes, dispensable[:count]) for count in range(len(dispensable) + 1)]
    return next((table for table in shown if _width(table) <= width), shown[-1])


def _width(table: Table) -> int:
    console = Console(width=MAX_WIDTH)
    return Measurement.get(console, console.options, table).maximum


def _window_table(windows: Iterable[Json], nodes: Sequence[str], without: Sequence[str]) -> Table:
    title = "windows of event time (UTC)"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, collapse_padding=True)
    named = build_headings(nodes)
    kept = [place for place, heading in enumerate(named) if heading not in without]
    for place in kept:
        table.add_column(Text(named[place]), justify="right", no_wrap=True)
    for window in windows:
        cells = format_window_cells(window, nodes)
        table.add_row(*(cells[place] for place in kept), style=COLOURS.get(window["verdict"] or "", ""))
    return table


def build_comparison_table(lines: Iterable[ComparisonLine], *, plain: bool) -> Table:
    """Return "injected against measured" as a table, without lines around it when ``plain``."""
    table = Table(box=None if plain else box.SIMPLE_HEAD, title="injected against measured", title_justify="left")
    for heading in ("what", "node"):
        table.add_column(heading)
    table.add_column("injected", justify="right")
    table.add_column("", justify="center")
    table.add_column("measured", justify="right")
    table.add_column("")
    for line in lines:
        end = "ok" if line.holds else "DIFFERS"
        style = "" if line.holds else "bold red"
        table.add_row(line.what, line.node, line.injected, line.relation, line.measured, end, style=style)
    return table
