"""The overview: every stream, those that need a person first."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import files
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import overview, sheets, texts
from hopwatch.dashboards.views.address import Page
from hopwatch.dashboards.views.overview import Row
from hopwatch.monitor.results import Verdict

HEAD = (
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


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page."""
    rows = overview.rows(standing, looking.clock.now_us())
    files.titled("", overview.summary(rows), "", "overview", lambda: sheets.overview(standing))
    cells = [_cells(looking, row) for row in rows]
    st.html(markup.table(HEAD, cells, "hw-overview", "All streams, those that need a person first"))


def _cells(looking: Looking, row: Row) -> tuple[str, ...]:
    is_lossy = row.mark.word == Verdict.LOSSY and row.loss_ppm != texts.UNKNOWN
    ended = f'<span class="{"hw-old" if row.is_old else ""}">{markup.text(_age(row))}</span>'
    return (
        markup.link(row.stream, looking.query(page=Page.STREAM, stream=row.stream)),
        markup.chip(row.mark, looking.palette) + markup.because(row.reasons),
        _worst(looking, row),
        markup.two(
            row.loss_ppm, ", ".join(part for part in (row.loss_percent, row.loss_note) if part), is_loud=is_lossy
        ),
        markup.text(row.lag),
        markup.text(row.rate),
        markup.two(row.coverage, row.coverage_note),
        markup.sparkline(row.bars, row.bars_said, looking.palette),
        ended,
    )


def _worst(looking: Looking, row: Row) -> str:
    """Return the worst minute of the last hour, a link to its page."""
    if row.worst is None:
        return texts.NONE
    at = texts.moment(row.worst.start_us, looking.zone, "%H:%M")
    query = looking.query(page=Page.WINDOW, stream=row.stream, window_us=row.worst.start_us)
    lost = f"{row.worst.loss_percent} lost, " if row.worst.loss_percent else ""
    return (
        f"{markup.chip(row.worst.mark, looking.palette)}"
        f'<span class="hw-second">{markup.text(lost)}{markup.link(at, query)}</span>'
    )


def _age(row: Row) -> str:
    return f"⚠ {row.age} ago" if row.is_old else f"{row.age} ago" if row.age[:1].isdigit() else row.age
