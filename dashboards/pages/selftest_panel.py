"""Panel of the self-test on the page of quality, and its line in the overview."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import selftest
from hopwatch.dashboards.views.address import PageName
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM

COLUMNS: Final = (("Window", "hw-narrow"), ("What was not measured as it was injected", "hw-long"))


def draw_panel(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the outcomes of the last hour, and each minute that failed; nothing where there is no self-test."""
    told = selftest.build_lines(standing, context.clock.now_us(), context.zone)
    if not told or standing.selftest is None:
        return
    with st.container(border=True):
        note = "A stream of the monitor's own, compared minute by minute with what was injected into it."
        lines = "".join(f'<p class="hw-note">{markup.emphasis(line.words, is_bad=line.is_bad)}</p>' for line in told)
        rows = [
            (
                markup.link(
                    row.moment,
                    context.url_query(page=PageName.WINDOW, stream=SELFTEST_STREAM, window_us=row.start_us),
                ),
                markup.stack_lines(*map(markup.escape_html, row.problems)),
            )
            for row in selftest.build_rows(standing.selftest, context.zone)
        ]
        table = markup.table(COLUMNS, rows, "hw-signs", "Minutes of the self-test that failed") if rows else ""
        st.html(markup.title("Self-test", note) + lines + table)


def draw_line(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the outcomes of the last hour in a line that leads to the panel; nothing where there is no self-test."""
    told = selftest.build_lines(standing, context.clock.now_us(), context.zone)
    if told:
        lines = " ".join(markup.emphasis(line.words, is_bad=line.is_bad) for line in told)
        name = markup.link("Self-test", context.url_query(page=PageName.QUALITY))
        st.html(f'<p class="hw-note">{name}: {lines}</p>')
