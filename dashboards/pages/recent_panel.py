"""Panel of recent figures: throughput, lag and backlog of each node in the last seconds."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.recent_figures import RecentFiguresQuery
from hopwatch.display import texts
from hopwatch.display.recent import EDGE_COLUMNS, RECENT_COLUMNS, build_edge_row, build_recent_rows, describe_recent
from hopwatch.monitor.results import RecentFigures

_KINDS: Final = ("hw-name", *["hw-number"] * (len(RECENT_COLUMNS) - 1))
_HEAD: Final = tuple((name.capitalize(), kind) for name, kind in zip(RECENT_COLUMNS, _KINDS, strict=True))
_EDGE_KINDS: Final = ("hw-name", "hw-name", *["hw-number"] * (len(EDGE_COLUMNS) - 2))
EDGE_HEAD: Final = tuple((name.capitalize(), kind) for name, kind in zip(EDGE_COLUMNS, _EDGE_KINDS, strict=True))
EDGE_NOTE: Final = "From the departure to the arrival, by the clocks of both, of a sample of the messages that arrived."


def fetch_recent(context: PageContext) -> RecentFigures | None:
    """Return the recent figures of the selected stream, if they say how things are now."""
    recent = context.fetch(RecentFiguresQuery(context.address.stream)).value
    return recent if recent and not recent.is_old(context.clock.now_us()) else None


def draw_recent(context: PageContext) -> None:
    """Draw the recent figures of the selected stream; nothing where the monitor makes none."""
    recent = context.fetch(RecentFiguresQuery(context.address.stream)).value
    if recent is None or not recent.nodes:
        return
    told = describe_recent(recent, context.clock.now_us(), texts.format_second(recent.through_us, context.zone))
    note = f"Provisional: {told}. The backlog is what a node was to have and has not passed on yet."
    rows = [[markup.escape_html(cell) for cell in row] for row in build_recent_rows(recent)]
    edges = [[markup.escape_html(cell) for cell in build_edge_row(edge)] for edge in recent.edges]
    with st.container(border=True, key="recent"):
        st.html(markup.title("Now", note) + markup.table(_HEAD, rows, "hw-labels", "Throughput, lag and backlog now"))
        if edges:
            told = markup.title("Time on the edges now", EDGE_NOTE)
            st.html(told + markup.table(EDGE_HEAD, edges, "hw-labels", "Time on the edges now"))
