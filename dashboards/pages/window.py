"""Page of one window of a stream."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import label_panel, loss_panel, lost_ids, second_panel, time_panel
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.queries.window_detail import WindowDetailQuery
from hopwatch.dashboards.queries.window_models import WindowDetail
from hopwatch.dashboards.views import conservation, window_detail
from hopwatch.dashboards.views.address import PageName
from hopwatch.display import step_marks, texts
from hopwatch.display.counts import describe_counts, describe_servers
from hopwatch.display.markers import describe_markers
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import WindowResult

HOLE_COLUMNS = (
    ("Node", "hw-name"),
    ("Probe", ""),
    ("Started", "hw-narrow"),
    ("What it did not report of this minute", ""),
)


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page of the selected window; if there is none, say so with a link back."""
    here = context.address
    start_us = here.window_us
    if start_us is None or standing.find_stream(here.stream) is None:
        return
    terms = context.query_cache.message_search.window_terms(here.stream)
    answer = context.fetch(WindowDetailQuery(here.stream, start_us, here.node, terms))
    if answer.value is None:
        _draw_nothing_found(context, start_us, answer.error)
        return
    whole = answer.value
    _draw_head(context, whole, terms)
    _draw_conservation(context, whole.result)
    loss_panel.draw_loss_table(context, whole.result)
    _draw_counts(whole.result)
    time_panel.draw_times(context, whole.graph.nodes, whole.times)
    second_panel.draw_seconds(context, whole)
    label_panel.draw_labels(context, whole)
    left, right = st.columns([3, 2], gap="medium")
    with left.container(border=True, height="stretch"):
        _draw_holes(context, whole)
    with right.container(border=True, height="stretch"):
        _draw_revisions(context, whole)
    lost_ids.draw_lost_ids(context, whole)


def _draw_nothing_found(context: PageContext, start_us: int, trouble: str) -> None:
    """Say that there is no such window, or that it could not be read."""
    at = texts.format_moment(start_us, context.zone)
    back = markup.link("Back to the stream", context.url_query(page=PageName.STREAM, window_us=None))
    if trouble:
        st.error(markup.escape_markdown(f"The window of {at} was not read: {trouble}"))
    else:
        told = f"The store has no window of {at} for this stream: nothing of it was read, or it is kept no more."
        st.warning(markup.escape_markdown(told))
    st.html(f'<div class="hw-steps">{back}</div>')


def _draw_head(context: PageContext, whole: WindowDetail, terms: WindowPolicy | None) -> None:
    one = whole.result
    chip = markup.chip(step_marks.mark_step(one).mark, context.palette)
    at = markup.escape_html(texts.format_moment(one.window_start_us, context.zone))
    life = markup.escape_html(f" · {one.status.value}, revision {one.revision}")
    title = f'<p class="hw-title">{chip} &nbsp;{at}<span class="hw-note">{life}</span></p>'
    state = f'<div class="hw-state">{markup.note(window_detail.format_status(one, terms, context.zone))}</div>'
    notes = [*one.reasons, *describe_markers(whole.markers, one.stream, one.window_start_us)]
    reasons = markup.note_list(notes) if notes else ""
    st.html(f"{_format_neighbours(context, whole)}{title}{state}{reasons}{loss_panel.format_figures(one)}")


def _format_neighbours(context: PageContext, whole: WindowDetail) -> str:
    """Return links to the windows before and after, and to this one on the page of the stream."""
    ways = [
        _link_window(context, "← ", whole.previous_us, "no window before"),
        _link_window(context, "", whole.next_us, "no window after", " →"),
        markup.link("This minute on the page of the stream", context.url_query(page=PageName.STREAM)),
    ]
    return f'<nav class="hw-steps" aria-label="Windows beside this one">{"".join(ways)}</nav>'


def _link_window(context: PageContext, before: str, start_us: int | None, none: str, after: str = "") -> str:
    if start_us is None:
        return f'<span class="hw-off">{markup.escape_html(none)}</span>'
    at = texts.format_moment(start_us, context.zone)
    return markup.link(f"{before}{at}{after}", context.url_query(window_us=start_us, search="", part=1))


def _draw_conservation(context: PageContext, one: WindowResult) -> None:
    told = conservation.build_conservation(one)
    with st.container(border=True):
        bar = markup.bar(told.parts, context.palette, told.total, is_final=one.status.is_final)
        apart = "".join(
            f"<dt>{markup.escape_html(name)}</dt><dd>{markup.escape_html(words)}</dd>" for name, words in told.notes
        )
        total = f'<p class="hw-sum">{markup.escape_html(told.total)}</p>'
        st.html(f'{markup.title("Outcome of its messages")}{total}{bar}<dl class="hw-apart">{apart}</dl>')


def _draw_counts(one: WindowResult) -> None:
    """Draw what the nodes without ids counted; nothing of a stream in which none counts."""
    if not one.counts:
        return
    lines = [line for of_node in one.counts for line in (describe_counts(of_node), *describe_servers(of_node))]
    with st.container(border=True):
        title = markup.title("By count", "Nodes that only count, beside the nearest nodes that know ids.")
        st.html(title + markup.note_list(lines))


def _draw_holes(context: PageContext, whole: WindowDetail) -> None:
    lines = [window_detail.build_hole_line(one, context.zone) for one in whole.holes]
    rows = [
        (
            markup.escape_html(line.node),
            markup.escape_html(line.probe),
            markup.escape_html(line.since),
            markup.note_list(line.holes),
        )
        for line in lines
    ]
    more = whole.hole_count - len(lines)
    note = f"{whole.hole_count:,} probe instances; the first {len(lines):,} are shown." if more else ""
    told = markup.title("Probes that had holes", note)
    told += markup.note_list(map(window_detail.format_aged_out, whole.aged_out)) if whole.aged_out else ""
    if rows:
        told += markup.table(HOLE_COLUMNS, rows, "hw-holes", "Probe instances that did not report all of this minute")
    elif not whole.aged_out:
        told += markup.note(window_detail.format_no_holes(whole.result, is_live=whole.is_live))
    st.html(told)


def _draw_revisions(context: PageContext, whole: WindowDetail) -> None:
    told = markup.title("Revisions", "What came after the first judgement, and what it changed.")
    if not whole.revisions:
        told += markup.note("None: the first judgement stands." if whole.result.status.is_final else "None so far.")
    for one in whole.revisions:
        amended = window_detail.build_amendment(one, context.zone)
        more = [("", f"and {amended.left_out:,} more nodes")] if amended.left_out else []
        lines = "".join(
            f"<dt>{markup.escape_html(name)}</dt><dd>{markup.escape_html(words)}</dd>"
            for name, words in (*amended.lines, *more)
        )
        head = markup.escape_html(f"Revision {amended.revision}, judged at {amended.judged_at}")
        told += f'<p class="hw-title hw-revision">{head}</p><dl class="hw-apart">{lines}</dl>'
    st.html(told)
