"""Loss and lag tables of windows: nodes as columns; count, loss and lag as rows; end to end below.

A single window is printed in full. Several windows are listed first, one row per window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hopwatch.cli.wide_tables import print_wide_table
from hopwatch.display import texts
from hopwatch.display.bursts import describe_bursts
from hopwatch.display.causes import describe_causes, describe_lag_causes
from hopwatch.display.counts import describe_counts, describe_servers
from hopwatch.display.label_table import LABEL_COLUMNS, build_label_lines, describe_new_values
from hopwatch.display.loss_table import build_loss_rows
from hopwatch.display.markers import describe_markers, select_markers
from hopwatch.display.path_times import (
    TIME_COLUMNS,
    build_time_lines,
    describe_left_out,
    describe_mean,
    read_window_times,
    select_lines,
)
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import (
    LabelCounts,
    Status,
    bursts_from_json,
    causes_from_json,
    counts_from_json,
    label_counts_from_json,
    lag_causes_from_json,
    node_from_json,
)
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.escaping import escape_line

Json = dict[str, Any]

COLOURS: Final = {"CLEAN": "green", "LOSSY": "red", "UNKNOWN": "yellow", "SILENT": "yellow", "IDLE": "dim"}
MAX_REASONS: Final = 3
MAX_NAMES: Final = 5
"""Number of undeclared names to print; ``--json`` has all of them."""
MAX_IDS: Final = 5
_LABEL_WORDS: Final = 3
"""Columns of the table by label that hold words."""
PARTS: Final = ("p50", "p95", "p99", "max")
"""Percentiles of a lag to print, and its maximum."""


def print_report(  # noqa: PLR0913, PLR0917 - what is printed, and what is known beside it
    console: Console,
    told: Json,
    terms: Mapping[str, WindowPolicy],
    now_us: int,
    by_label: str | None = None,
    markers: Sequence[Marker] = (),
) -> None:
    """Print the object of ``report --json``; ``terms`` give the time when the windows of a stream become final.

    The window that is printed in full is split by the values of a label, if one is given, and ``markers`` near it are
    named.
    """
    for stream in told["streams"]:
        windows = stream["windows"]
        if not windows:
            console.print(f"stream {stream['stream']}: no window in the range that is shown")
            console.print()
        if len(windows) > 1:
            print_wide_table(
                console, build_window_table(stream["stream"], windows, terms.get(stream["stream"]), now_us)
            )
        for window in _select_window(windows):
            _print_window(console, stream["stream"], window, terms.get(stream["stream"]), now_us)
            start = _read_start(window)
            start_us = 0 if start is None else round(start.timestamp() * 1e6)
            lines = describe_markers(markers, stream["stream"], start_us)
            for line in (*lines, *_describe_bursts(window, stream["stream"], start_us, markers)):
                console.print(Text(line), soft_wrap=True)
            if by_label is not None:
                _print_labels(console, window, by_label)
            console.print()
    if not told["streams"]:
        console.print("no window yet in what was asked for")
    print_accounts(console, told["accounts"])


def _select_window(windows: Sequence[Json]) -> Sequence[Json]:
    """Select the window to print in full: the newest judged one with messages, else the newest.

    An open window looks healthy because its messages are still arriving, and a stopped pipeline leaves an empty window.
    """
    known = [one for one in windows if one["known"]]
    return ([one for one in known if one["verdict"]] or known or windows)[-1:]


def build_window_table(stream: str, windows: Sequence[Json], terms: WindowPolicy | None, now_us: int) -> Table:
    """Build the table with one row per window: the loss of each node, and end to end."""
    nodes = [node["node"] for node in windows[0]["nodes"]]
    table = Table(title=f"stream {stream}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("window", "status", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("known", "delivered", "lost", "lost %", *(f"loss {node}" for node in nodes), "lag p95"):
        table.add_column(name, justify="right", no_wrap=True)
    for window in windows:
        lag = window["lag_us"]["p95"] if window["lag_us"] else None
        counts = [texts.format_count(window[name]) for name in ("known", "delivered")]
        figures = (
            *counts,
            format_lost(window),
            format_lost_ratio(window),
            *map(format_node_loss, window["nodes"]),
            texts.format_lag(lag),
        )
        table.add_row(_format_start(window), _format_status(window, terms, now_us), _format_verdict(window), *figures)
    return table


def build_node_table(window: Json) -> Table:
    """Build the table of one window: nodes as columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for node in window["nodes"]:
        table.add_column(node["node"], justify="right", no_wrap=True)
    for line in build_loss_rows([node_from_json(node) for node in window["nodes"]], PARTS):
        table.add_row(line.name, *(cell.text for cell in line.cells))
    return table


def _print_window(console: Console, stream: str, window: Json, terms: WindowPolicy | None, now_us: int) -> None:
    head = Text.assemble(
        f"{stream}  {_format_start(window)}  {_format_status(window, terms, now_us)}  ", _format_verdict(window)
    )
    console.print(head)
    print_wide_table(console, build_node_table(window))
    came = f"{window['known']:,} known, {window['delivered']:,} delivered"
    console.print(f"end to end: {came}, {_format_stopped(window)}{_format_loss_sentence(window)}")
    if window["lag_us"]:
        lags = (f"{part} {texts.format_lag(window['lag_us'][part])}" for part in PARTS)
        console.print(f"lag end to end: {', '.join(lags)}")
    if window["verdict"] == "UNKNOWN":
        console.print(f"surely lost: {window['lost_lower']:,}, at most {texts.format_count(window['lost_upper'])}")
    _print_counts(console, window)
    for reason in window["reasons"][:MAX_REASONS]:
        console.print(f"  {reason}")
    if len(window["reasons"]) > MAX_REASONS:
        console.print(f"  and {len(window['reasons']) - MAX_REASONS} more, which --json shows")
    for node in window["nodes"]:
        _print_ids(console, node)
        _print_overdue_ids(console, node)
    for node in _slowest_nodes(window["nodes"]):
        _print_slowest(console, node)
    _print_times(console, window)
    for line in (*_describe_causes(window), *_describe_lag_causes(window), *_describe_new_values(window)):
        console.print(Text(line), soft_wrap=True)


def _print_times(console: Console, window: Json) -> None:
    """Print the times on the path, and which part of the lag they are; nothing where nothing was timed."""
    span = read_window_times(window)
    if span is None:
        return
    table = Table(title=f"where the time goes: {describe_mean(span)}", title_justify="left", box=box.SIMPLE_HEAD)
    for place, name in enumerate(TIME_COLUMNS):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    lines = build_time_lines([node["node"] for node in window["nodes"]], span)
    for line in select_lines(lines):
        table.add_row(*map(Text, line.cells))
    print_wide_table(console, table)
    if left_out := describe_left_out(lines):
        console.print(left_out)


def _print_counts(console: Console, window: Json) -> None:
    """Print what the nodes without ids counted."""
    for one in counts_from_json(window["counts"]):
        console.print(Text(describe_counts(one)), soft_wrap=True)
        for line in describe_servers(one):
            console.print(Text(f"  {line}"), soft_wrap=True)


def _describe_causes(window: Json) -> list[str]:
    rows = _label_counts(window)
    return [
        line
        for node in window["nodes"]
        for line in describe_causes(node["node"], node["loss"], causes_from_json(node["causes"]), rows[node["node"]])
    ]


def _describe_lag_causes(window: Json) -> list[str]:
    return [
        line
        for node in window["nodes"]
        for line in describe_lag_causes(node["node"], lag_causes_from_json(node["lag_causes"]))
    ]


def _describe_bursts(window: Json, stream: str, start_us: int, markers: Iterable[Marker]) -> list[str]:
    of_stream = select_markers(markers, stream)
    return [
        line
        for node in window["nodes"]
        for line in describe_bursts(node["node"], start_us, bursts_from_json(node["bursts"]), of_stream)
    ]


def _describe_new_values(window: Json) -> list[str]:
    return [line for node, rows in _label_counts(window).items() for line in describe_new_values(node, rows, MAX_NAMES)]


def _label_counts(window: Json) -> dict[str, tuple[LabelCounts, ...]]:
    return {node["node"]: label_counts_from_json(node["labels"]) for node in window["nodes"]}


def _print_labels(console: Console, window: Json, label: str) -> None:
    """Print each node's figures by the values of a label, or which labels there are if there is no such one."""
    counts = _label_counts(window)
    known = sorted({row.label for rows in counts.values() for row in rows})
    if label not in known:
        there = f": there are {', '.join(map(escape_line, known))}" if known else ": no batch has any label"
        console.print(Text(f"no batch of this window has the label {escape_line(label)}{there}"), soft_wrap=True)
        return
    table = Table(title=f"by {escape_line(label)}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(("node", *LABEL_COLUMNS[1:])):
        table.add_column(name, justify="left" if place < _LABEL_WORDS else "right", no_wrap=True)
    for node, rows in counts.items():
        for line in build_label_lines(row for row in rows if row.label == label):
            where, value = line.cells[1], line.cells[2] + (" (new)" if line.is_new else "")
            table.add_row(node, where, Text(value), *line.cells[3:])
    print_wide_table(console, table)


def _print_ids(console: Console, node: Json) -> None:
    """Print the first lost or missing ids of a node, one per line, so that they can be copied into ``find``."""
    shown = node["lost_ids"][:MAX_IDS]
    if not shown:
        return
    word = "lost" if node["loss"] == node["loss_lower"] else "missing"
    part = f"{len(shown):,} of " if len(shown) < node["loss"] else ""
    _print_list(console, f"{word} at {node['node']}, {part}{node['loss']:,}:", shown)


def _print_overdue_ids(console: Console, node: Json) -> None:
    """Print the first ids of what is overdue at a node, one per line."""
    if node["overdue_ids"]:
        title = f"overdue at {node['node']}, {node['overdue']:,} for sure, among these the first:"
        _print_list(console, title, node["overdue_ids"][:MAX_IDS])


def _print_list(console: Console, title: str, ids: Sequence[str]) -> None:
    console.print(title)
    for message_id in ids:
        console.print(f"    {message_id}", soft_wrap=True)


def _slowest_nodes(nodes: Sequence[Json]) -> list[Json]:
    """Return the nodes with the largest lag out and the longest time inside.

    If nodes are equal, it is the last in pathway order. More nodes would make the report too long.
    """
    named: list[str] = []
    for lag in ("lag_out_us", "inside_us"):
        known = [node for node in reversed(nodes) if node["slowest"] and node[lag]]
        named += [node["node"] for node in sorted(known, key=lambda node: -node[lag]["max"])[:1]]
    return [node for node in nodes if node["node"] in named]


def _print_slowest(console: Console, node: Json) -> None:
    """Print the slowest messages of a node, one per line, with the lag first because an id may be any text."""
    console.print(f"slowest at {node['node']}, by lag out:")
    lags = [texts.format_lag(one["lag_out_us"]) for one in node["slowest"]]
    for lag, one in zip(lags, node["slowest"], strict=True):
        console.print(f"    {lag:>{max(map(len, lags))}}  {one['id']}", soft_wrap=True)


def _format_loss_sentence(window: Json) -> str:
    """Format the loss end to end: its bounds, the missing messages if they differ, and partial delivery."""
    missing, lower = window["lost"], window["lost_lower"]
    unknown = ", unknown" if loss_bounds.is_unknown(lower, window["lost_upper"]) else ""
    told = f"{format_lost(window)} lost ({format_lost_ratio(window)}){unknown}"
    if missing != lower:
        told += f"; {missing:,} missing"
    if window["partial"]:
        told += f", {window['partial']:,} of them delivered elsewhere"
    return told


def _format_stopped(window: Json) -> str:
    names = [name for name in ("filtered", "rejected", "deferred", "in_flight", "overdue", "recovered") if window[name]]
    return "".join(f"{window[name]:,} {name.replace('_', ' ')}, " for name in names)


def print_accounts(console: Console, accounts: Json) -> None:
    """Print the monitor's own accounting in one line, and a line for each undeclared name."""
    names = [name for name in ("duplicate_batches", "too_late", "implausible") if accounts[name]]
    odd = [f"{accounts[name]:,} {name.replace('_', ' ')}" for name in names]
    odd += [f"{count:,} set aside as {reason}" for reason, count in accounts["set_aside"].items()]
    told = f"{accounts['records']:,} records, {accounts['observations']:,} observations"
    console.print("; ".join([told, *odd]))
    names = accounts.get("undeclared", [])
    for one in names[:MAX_NAMES]:
        console.print(f"  {one['text']}", soft_wrap=True)
    if len(names) > MAX_NAMES:
        console.print(f"  and {len(names) - MAX_NAMES} more names, which --json shows")


def _format_start(window: Json) -> str:
    return str(window["window_start"]).replace("T", " ").replace(":00Z", "Z")


def _format_status(window: Json, terms: WindowPolicy | None, now_us: int) -> str:
    """Format the status of a window, and the time when it becomes final.

    The time is left out once it is past: the monitor is stopped or behind.
    """
    status = str(window["status"])
    if Status(status).is_final or terms is None:
        return status
    start = _read_start(window)
    try:
        final = None if start is None else start + timedelta(microseconds=terms.final_at_us(0))
    except OverflowError:
        return status
    if final is None or final <= datetime.fromtimestamp(now_us / 1e6, UTC):
        return status
    return f"{status}, final at {final:%H:%M:%S}Z"


def _read_start(window: Json) -> datetime | None:
    """Return the start of a window; None where it is in no year that a calendar has."""
    try:
        return datetime.fromisoformat(window["window_start"])
    except ValueError:
        return None


def _format_verdict(window: Json) -> Text:
    verdict = window["verdict"] or ""
    return Text(verdict, style=COLOURS.get(verdict, ""))


def format_lost(one: Json) -> str:
    """Format the loss end to end of a window or roll-up: a number, or its bounds."""
    return loss_bounds.format_bounds(one["lost"], one["lost_lower"], one["lost_upper"])


def format_lost_ratio(one: Json) -> str:
    """Format the loss ratio end to end."""
    return loss_bounds.format_ratio(
        one["loss_ratio"], one["lost"], one["lost_lower"], one["lost_upper"], texts.format_ratio
    )


def format_node_loss(node: Json) -> str:
    """Format the loss of a node: a number, or its bounds."""
    return loss_bounds.format_bounds(node["loss"], node["loss_lower"], node["loss_upper"])
