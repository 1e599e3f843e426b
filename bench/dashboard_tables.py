"""Tables of the dashboard's figures; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from bench.dashboard import TRIPS_GOAL, CrowdTimes, Line, PageTimes, QueryTimes
from bench.table_style import format_number, format_ratio, new_table


def dashboard(lines: Sequence[Line]) -> Group:
    """Return questions, pages and crowds; of a ratio over 1 Hopwatch is ahead."""
    asked = new_table(
        "Questions alone, ms: the first time in a process, and again",
        ("store", "question"),
        ("first", "again", "statements", "pandas reads all", "pandas / first"),
    )
    viewed = new_table(
        "Pages in a browser, until all of it is drawn, s",
        ("store", "what"),
        ("times", "p50", "p95", "goal, p95", "plain page of an hour", "plain / p50"),
    )
    crowds = new_table(
        f"Viewers of one page, a refresh of each every 5 s; goal: {TRIPS_GOAL:.0f} trip a refresh",
        ("store", "page"),
        ("viewers", "refreshes", "trips a refresh", "statements", "CPU s", "cores", "MB", "p50 s", "p95 s"),
    )
    for line in lines:
        if isinstance(line, QueryTimes):
            ratio = None if line.pandas_ms is None else line.pandas_ms / line.first_ms
            numbers = (format_number(line.first_ms, 0), format_number(line.again_ms, 0), f"{line.statements}")
            asked.add_row(
                line.store, line.question, *numbers, format_number(line.pandas_ms, 0), format_number(ratio, 2)
            )
        elif isinstance(line, PageTimes):
            ratio = None if line.plain_s is None else line.plain_s / line.p50_s
            spans = (line.p50_s, line.p95_s, line.goal_s, line.plain_s, ratio)
            viewed.add_row(line.store, line.what, f"{line.times}", *(format_number(span_s, 2) for span_s in spans))
        else:
            crowds.add_row(*_crowd(line))
    return Group(asked, viewed, crowds)


def _crowd(line: CrowdTimes) -> tuple[str, ...]:
    numbers = (line.trips, line.statements, line.cpu_s, line.cores)
    told = (format_number(number, 3) for number in numbers)
    spans = (format_number(span_s, 2) for span_s in (line.p50_s, line.p95_s))
    memory = format_number(format_ratio(line.memory_bytes, 1e6), 0)
    return line.store, line.who, f"{line.viewers}", f"{line.refreshes}", *told, memory, *spans
