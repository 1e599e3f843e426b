"""The overview: every stream, those that need a person first."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import downloads, filters, selftest_panel
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import overview, sheets
from hopwatch.dashboards.views.address import PageName
from hopwatch.dashboards.views.overview import StreamRow
from hopwatch.dashboards.views.stream_search import find_streams
from hopwatch.display import texts
from hopwatch.monitor.results import Verdict

COLUMNS = (
    ("Stream", "hw-name"),
    ("Verdict now", "hw-narrow"),
    ("Worst of the last hour", "hw-narrow"),
    ("Surely lost", "hw-number"),
    ("End-to-end lag p95", "hw-number"),
    ("Messages", "hw-number"),
    ("Coverage", "hw-number"),
    ("Last hour, messages a minute", "hw-narrow"),
    ("Newest final window", "hw-number"),
)
FEW_STREAMS: Final = 5
"""So many streams are found without a search."""


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page."""
    labels = {one.stream: context.stream_labels(one.stream) for one in standing.listed_streams}
    if len(labels) > FEW_STREAMS or any(labels.values()) or context.address.search:
        filters.draw_search(context, "Stream, node or label")
    found = find_streams(standing, labels, context.address.search)
    rows = overview.build_rows(found, context.clock.now_us())
    downloads.draw_title(
        "", overview.format_summary(rows, len(labels)), "", "overview", lambda: sheets.build_overview(found)
    )
    if rows or not context.address.search:
        cells = [_format_row(context, row) for row in rows]
        st.html(markup.table(COLUMNS, cells, "hw-overview", "All streams, those that need a person first"))
    else:
        st.info(filters.NOTHING_FOUND)
    selftest_panel.draw_line(context, standing)


def _format_row(context: PageContext, row: StreamRow) -> tuple[str, ...]:
    is_lossy = row.mark.word == Verdict.LOSSY and row.loss_ppm != texts.UNKNOWN
    ended = f'<span class="{"hw-old" if row.is_old else ""}">{markup.escape_html(_format_age(row))}</span>'
    return (
        markup.link(row.stream, context.url_query(page=PageName.STREAM, stream=row.stream))
        + context.link_labels(row.stream),
        markup.chip(row.mark, context.palette) + markup.first_reason(row.reasons),
        _format_worst(context, row),
        markup.two_lines(
            row.loss_ppm, ", ".join(part for part in (row.loss_percent, row.loss_note) if part), is_loud=is_lossy
        ),
        markup.escape_html(row.lag),
        markup.escape_html(row.rate),
        markup.two_lines(row.coverage, row.coverage_note),
        markup.sparkline(row.bars, row.bars_said, context.palette),
        ended,
    )


def _format_worst(context: PageContext, row: StreamRow) -> str:
    """Return the worst minute of the last hour, a link to its page."""
    if row.worst is None:
        return texts.NONE
    at = texts.format_moment(row.worst.start_us, context.zone, "%H:%M")
    query = context.url_query(page=PageName.WINDOW, stream=row.stream, window_us=row.worst.start_us)
    lost = f"{row.worst.loss_percent} lost, " if row.worst.loss_percent else ""
    return (
        f"{markup.chip(row.worst.mark, context.palette)}"
        f'<span class="hw-second">{markup.escape_html(lost)}{markup.link(at, query)}</span>'
    )


def _format_age(row: StreamRow) -> str:
    return f"⚠ {row.age} ago" if row.is_old else f"{row.age} ago" if row.age[:1].isdigit() else row.age
