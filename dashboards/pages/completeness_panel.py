"""Panels of completeness on the page of quality: contracts, and timeliness against accuracy."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import wait_chart
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.completeness import CompletenessAnswers, CompletenessQuery, CurveQuery
from hopwatch.dashboards.views import completeness
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.monitor.lookup.completeness_curve import CurveAnswer, format_proposal
from hopwatch.probes.contract.limits import WINDOW_US

CONTRACT_COLUMNS: Final = (
    ("Contract, stream", "hw-name"),
    ("Span", "hw-long"),
    ("Complete", "hw-narrow"),
    ("Messages", "hw-number"),
    ("Lost", "hw-number"),
    ("What stands in the way", "hw-long"),
)
CURVE_COLUMNS: Final = (
    ("Judged after", "hw-name"),
    ("Incomplete windows", "hw-number"),
    ("Of all", "hw-number"),
    ("Later arrivals", "hw-number"),
    ("Of all", "hw-number"),
    ("Worst node and window", "hw-number"),
)


def draw_panels(context: PageContext, shown: DisplayRange) -> None:
    """Draw the contracts of the configuration, and the curve of the stream that is looked at."""
    settings, here = context.query_cache.settings, context.address
    if settings is None or not (settings.completeness or here.stream):
        return
    now_us = context.clock.now_us() // WINDOW_US * WINDOW_US
    answer = context.fetch(CompletenessQuery(here.stream, now_us, settings))
    if answer.value is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    if answer.value.contracts:
        _draw_contracts(context, answer.value)
    if (known := settings.streams.get(here.stream)) is not None:
        curve = context.fetch(CurveQuery(here.stream, shown.from_us, shown.to_us, known.rules.terms))
        if curve.value is not None:
            _draw_curve(context, curve.value)


def _draw_contracts(context: PageContext, found: CompletenessAnswers) -> None:
    with st.container(border=True):
        note = "Whether consumers may take the last spans of a stream as all that there will be."
        rows = [
            (
                f'{markup.code(row.name)}<span class="hw-second">{markup.escape_html(row.stream)}</span>',
                markup.stack_lines(*map(markup.escape_html, row.span)),
                markup.emphasis(row.state, is_bad=row.is_bad),
                markup.escape_html(row.known),
                markup.emphasis(row.lost, is_bad=row.is_bad),
                markup.stack_lines(*map(markup.escape_html, row.obstacles)),
            )
            for one in found.contracts
            for row in completeness.build_contract_rows(one.answers, context.zone)
        ]
        wrong = "".join(markup.note(one.error) for one in found.contracts if one.error)
        more = markup.note(f"{found.left_out:,} more are not shown.") if found.left_out else ""
        table = markup.table(CONTRACT_COLUMNS, rows, "hw-signs", "Contracts of completeness") if rows else ""
        st.html(markup.title("Completeness contracts", note) + table + wrong + more)


def _draw_curve(context: PageContext, answer: CurveAnswer) -> None:
    with st.container(border=True):
        whole = answer.curve.whole
        note = "How many windows would have lacked messages, had they been judged sooner or later behind their ends: "
        note += f"{whole.windows:,} final windows of the shown range, of its last 7 days at most."
        head = markup.title("Timeliness against accuracy", note)
        if answer.proposal is None:
            st.html(head + markup.note("No final window of this range has messages."))
            return
        rows = [
            tuple(
                markup.escape_html(cell)
                for cell in (row.wait, row.windows, row.windows_share, row.arrivals, row.arrivals_share, row.worst)
            )
            for row in completeness.build_curve_rows(whole)
        ]
        wait_us = answer.terms.transit_us + answer.terms.settle_us
        said = "Share of windows that would have been incomplete, by the wait: the table below has the same figures"
        picture = markup.image(wait_chart.draw_waits(whole, wait_us, context.palette), said, "hw-wide")
        table = markup.table(CURVE_COLUMNS, rows, "hw-signs", "Windows that would have been incomplete, by the wait")
        st.html(head + picture + table)
        st.code("\n".join(format_proposal(answer.stream, answer.proposal)), language="toml")
