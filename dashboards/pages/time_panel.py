"""Panel of the times on a path: where messages spend the time from their event to the end of the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.display import texts
from hopwatch.display.path_times import (
    TIME_COLUMNS,
    build_time_lines,
    describe_left_out,
    describe_mean,
    select_lines,
)
from hopwatch.monitor.results import SpanTimes

_HEAD: Final = tuple(
    (name if name[1:].isdigit() else name.capitalize(), "hw-number" if place else "hw-name")
    for place, name in enumerate(TIME_COLUMNS)
)


def draw_times(context: PageContext, nodes: Sequence[str], span: SpanTimes | None) -> None:
    """Draw the parts of the path as a bar and a table; nothing where nothing was timed."""
    if span is None:
        return
    every = build_time_lines(nodes, span)
    lines = select_lines(every)
    note = describe_mean(span)
    if span.windows > 1:
        since = texts.format_moment(span.from_us, context.zone)
        note += f", in {span.windows:,} windows since {since}; percentiles are those of the slowest window"
    with st.container(border=True, key="times"):
        what = "First arrivals and departures of each message; clocks of two hosts may differ on the way between them."
        told = markup.title("Where the time goes", what) + markup.note(f"{note[:1].upper()}{note[1:]}.")
        shares = [(line.cells[0], line.cells[-1], line.share or 0.0) for line in lines]
        said = ", ".join(f"{name} {share}" for name, share, _ in shares)
        if any(share > 0 for *_, share in shares):
            told += markup.stack(shares, context.palette, f"Shares of the mean lag: {said}")
        rows = (tuple(map(markup.escape_html, line.cells)) for line in lines)
        told += markup.table(_HEAD, rows, "hw-labels", "Times on the path")
        if left_out := describe_left_out(every):
            told += markup.note(f"{left_out}.")
        st.html(told)
