"""Page of data quality: completeness, records set aside, and messages rejected or filtered."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import completeness_panel, filters, selftest_panel
from hopwatch.dashboards.queries.health import MAX_ROWS, QualityQuery
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import common_range, quality
from hopwatch.dashboards.views.display_range import STEP_WORDS, DisplayRange
from hopwatch.monitor.accounting.quality import Quality
from hopwatch.monitor.kernel.tally import NEVER_US

REASON_COLUMNS: Final = (
    ("Reason", "hw-name"),
    ("Records in the range", "hw-number"),
    ("Share", "hw-number"),
    ("Ever", "hw-number"),
    ("What it means", "hw-long"),
)
RECORD_COLUMNS: Final = (
    ("Arrived", "hw-narrow"),
    ("Reason", "hw-narrow"),
    ("What is wrong", "hw-long"),
    ("Where its bytes are", "hw-long"),
)
NAME_COLUMNS: Final = (
    ("Name", "hw-name"),
    ("Nearest that is declared", "hw-name"),
    ("Probe", "hw-name"),
    ("Records", "hw-number"),
    ("Last arrived", "hw-narrow"),
)
STOPPED_COLUMNS: Final = (
    ("Node, stream", "hw-name"),
    ("Messages seen", "hw-number"),
    ("Rejected", "hw-number"),
    ("Rejected of seen", "hw-number"),
    ("Filtered", "hw-number"),
    ("Filtered of seen", "hw-number"),
    ("Deferred", "hw-number"),
    ("Deferred of seen", "hw-number"),
)
HOLE_COLUMNS: Final = (
    ("Partition", "hw-name"),
    ("Offsets", "hw-narrow"),
    ("Records", "hw-number"),
    ("Arrived between", "hw-long"),
)


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page."""
    here = context.address
    shown = common_range.select_common_range(here, standing, context.clock.now_us())
    filters.draw_filters(context, standing)
    if shown.notice:
        st.warning(markup.escape_markdown(shown.notice))
    # What came behind the newest window is of a range that moves on, too.
    arrived_us = shown.to_us if here.is_fixed else NEVER_US
    answer = context.fetch(QualityQuery(here.stream, shown.from_us, shown.to_us, shown.step_us, arrived_us))
    if answer.value is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    selftest_panel.draw_panel(context, standing)
    completeness_panel.draw_panels(context, shown)
    _draw_stopped(context, answer.value, shown)
    _draw_set_aside(context, answer.value)
    if answer.value.undeclared:
        _draw_names(context, answer.value)
    if answer.value.holes:
        _draw_holes(context, answer.value)


def _draw_stopped(context: PageContext, found: Quality, shown: DisplayRange) -> None:
    with st.container(border=True):
        step = STEP_WORDS[shown.step_us]
        note = f"Messages that ended at a node, on purpose or as bad, or wait there, in final windows by the {step}: "
        note += filters.format_range(context, shown)
        head = markup.title("Rejected, filtered and deferred", note)
        rows = [
            (
                filters.link_node_and_stream(context, row.stream, row.node),
                markup.escape_html(row.seen),
                markup.emphasis(row.rejected, is_bad=row.is_bad),
                markup.emphasis(row.rejected_share, is_bad=row.is_bad),
                markup.escape_html(row.filtered),
                markup.escape_html(row.filtered_share),
                markup.escape_html(row.deferred),
                markup.escape_html(row.deferred_share),
            )
            for row in quality.build_stopped_rows(found)
        ]
        table = markup.table(STOPPED_COLUMNS, rows, "hw-signs", "Messages rejected, filtered and deferred at each node")
        told = (
            quality.format_node_counts(found)
            if found.node_count
            else "No message was seen in a final window of this range."
        )
        st.html(head + (table if rows else "") + _note(f"{told} {quality.NOT_KEPT}"))


def _draw_set_aside(context: PageContext, found: Quality) -> None:
    with st.container(border=True):
        note = "Records of the transport that could not be read, by when they arrived."
        whose = " They are of no stream: all of them are shown." if context.address.stream else ""
        head = markup.title("Records set aside", f"{note}{whose}")
        if not found.reasons:
            st.html(head + _note("None, ever."))
            return
        reasons = [
            (
                markup.code(row.name),
                markup.emphasis(row.in_range, is_bad=row.in_range != "0"),
                markup.escape_html(row.share),
                markup.escape_html(row.ever),
                markup.escape_html(row.meaning),
            )
            for row in quality.build_reason_rows(found)
        ]
        st.html(head + markup.table(REASON_COLUMNS, reasons, "hw-signs", "Records set aside, by reason"))
        rows = [
            (
                markup.two_lines(row.arrived, row.age),
                markup.code(row.reason),
                markup.escape_html(row.message),
                f'{markup.code(row.path)}<span class="hw-second">{markup.escape_html(row.where)}</span>',
            )
            for row in quality.build_record_rows(found, context.clock.now_us(), context.zone)
        ]
        if not rows:
            st.html(_note("None arrived in this range, or those that did are pruned."))
            return
        title = markup.title("The newest of them", f"{len(rows):,}, at most {MAX_ROWS:,} are shown." if rows else "")
        st.html(title + markup.table(RECORD_COLUMNS, rows, "hw-signs", "The newest records set aside"))


def _draw_names(context: PageContext, found: Quality) -> None:
    with st.container(border=True):
        note = "The configuration has no such stream or node: a misspelt one, or one that is to be declared or ignored."
        rows = [
            (
                f'{markup.code(row.name)}<span class="hw-second">{markup.escape_html(row.place)}</span>',
                markup.code(row.nearest),
                f'{markup.code(row.probe)}<span class="hw-second">{markup.escape_html(row.started)}</span>',
                markup.emphasis(row.records, is_bad=True),
                markup.escape_html(row.last),
            )
            for row in quality.build_name_rows(found, context.clock.now_us(), context.zone)
        ]
        head = markup.title("Names that are not declared", note)
        st.html(head + markup.table(NAME_COLUMNS, rows, "hw-signs", "Names that are not declared"))


def _draw_holes(context: PageContext, found: Quality) -> None:
    with st.container(border=True):
        note = "They make the windows that they may be of UNKNOWN."
        rows = [
            (
                markup.code(row.place),
                markup.escape_html(row.offsets),
                markup.emphasis(row.records, is_bad=True),
                markup.escape_html(row.arrived),
            )
            for row in quality.build_hole_rows(found, context.zone)
        ]
        left_out = found.hole_count - len(rows)
        more = _note(f"{left_out:,} older ones are not shown.") if left_out else ""
        head = markup.title("Records that aged out before they were read", note)
        st.html(head + markup.table(HOLE_COLUMNS, rows, "hw-signs", "Holes of the transport") + more)


def _note(words: str) -> str:
    return f'<p class="hw-note">{markup.escape_html(words)}</p>'
