"""Page of a stream: loss and lag of its nodes over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st
from streamlit.typing import EChartsState

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pathway as drawn
from hopwatch.dashboards.charts import shares
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import (
    budget_panel,
    comparison_panel,
    downloads,
    lag_panel,
    loss_panel,
    recent_panel,
    stream_charts,
    stream_controls,
    time_panel,
)
from hopwatch.dashboards.pages.stream_charts import ChartInputs
from hopwatch.dashboards.queries.models import StreamRange, StreamsOverview
from hopwatch.dashboards.queries.stream_queries import MAX_NODES, StreamRangeQuery
from hopwatch.dashboards.queries.wrong_clocks import WrongClocksQuery
from hopwatch.dashboards.views import display_range, earlier_range, pathway, seam, series, sheets
from hopwatch.dashboards.views.address import PageName
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.dashboards.views.earlier_range import EarlierRange
from hopwatch.dashboards.views.pathway import PathwayDrawing
from hopwatch.display import step_marks, texts
from hopwatch.display.clock_offsets import describe_clock, group_clocks
from hopwatch.display.step_marks import StepResult
from hopwatch.monitor.results import RecentFigures, WindowResult
from hopwatch.monitor.texts.escaping import escape_line

STRETCH: Final = "stretch"
MAX_MARKER_LINES: Final = 10


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page of the selected stream; a stream without any window says so."""
    now = standing.find_stream(context.address.stream)
    if now is None or now.first_us is None or now.last_us is None:
        st.info("Nothing of this stream was read yet.")
        return
    shown = display_range.select_range(context.address, now.first_us, now.last_us)
    if shown.notice:
        st.warning(markup.escape_markdown(shown.notice))
    question = _build_query(context, shown, now.stream)
    answer = context.fetch(question)
    stretch = answer.value
    if stretch is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    window = _select_window(context, stretch)
    stream_controls.draw_controls(context, shown, stretch, window)
    one: StepResult | None = window or stretch.total
    _draw_head(context, stretch, _format_range(context, shown), window)
    there = earlier_range.shift_range(shown, context.address.compare)
    earlier = _fetch_earlier(context, there, question, stretch) if there else None
    _draw_comparison(context, stretch, there, earlier)
    _draw_new_schemas(context, stretch)
    _draw_markers(context, stretch)
    _draw_clocks(context)
    _draw_graph(context, stretch, one)
    if one is not None:
        loss_panel.draw_loss_table(context, one)
    time_panel.draw_times(context, stretch.nodes, stretch.times)
    recent_panel.draw_recent(context)
    lag_panel.draw_lags(context)
    _draw_seam(context, stretch)
    comparison_panel.draw_comparisons(context, shown)
    budget_panel.draw_budgets(context)

    def whole() -> StreamRange:
        # A file has all nodes, also those that a chart has no room for.
        return context.query_cache.fetch(replace(question, max_nodes=MAX_NODES, is_timed=False)).value or stretch

    stream_charts.draw_charts(context, ChartInputs(shown, stretch, one, whole, earlier))


def _build_query(context: PageContext, shown: DisplayRange, stream: str) -> StreamRangeQuery:
    """Return the one question of this page, with no more nodes at each step than a chart can show."""
    most = display_range.limit_lines(shown.step_count, MAX_NODES)
    here = context.address
    return StreamRangeQuery(stream, shown.from_us, shown.to_us, shown.step_us, here.node, here.window_us, most)


def _fetch_earlier(
    context: PageContext, there: DisplayRange, question: StreamRangeQuery, answer: StreamRange
) -> EarlierRange | None:
    """Return what was read of the range that the selected one is compared with; None where it cannot be read."""
    period = context.address.compare
    node = context.address.node or series.select_lag_node(answer, answer.window or answer.total)
    asked = replace(question, from_us=there.from_us, to_us=there.to_us, window_us=None, node=node)
    before = context.fetch(replace(asked, max_nodes=1, is_timed=False)).value
    if before is None:
        return None
    return EarlierRange(earlier_range.NAMES[period], earlier_range.SHIFTS_US[period], before)


def _draw_comparison(
    context: PageContext, stretch: StreamRange, there: DisplayRange | None, earlier: EarlierRange | None
) -> None:
    """Draw the difference to the earlier range in words, or why there is none."""
    period = context.address.compare
    if earlier is not None:
        told = earlier_range.describe_difference(stretch.total, earlier.stream_range.total, earlier.name)
        st.html(markup.note(told))
    elif period in earlier_range.NAMES and there is None:
        st.html(markup.note(f"Compared with nothing: {earlier_range.NAMES[period]} would be a part of this range."))


def _select_window(context: PageContext, stretch: StreamRange) -> WindowResult | None:
    """Return the selected window; if there is none, say so with a link back."""
    if context.address.window_us is not None and stretch.window is None:
        at = texts.format_moment(context.address.window_us, context.zone)
        st.warning(markup.escape_markdown(f"the store has no window of {at} for this stream: showing the range"))
    return stretch.window


def _draw_head(context: PageContext, stretch: StreamRange, of_range: str, window: WindowResult | None) -> None:
    one: StepResult | None = window or stretch.total
    if one is None:
        st.html('<p class="hw-note">No window of this range is final yet.</p>')
        return
    what = texts.format_moment(window.window_start_us, context.zone) if window else of_range
    chip = markup.chip(step_marks.mark_step(one).mark, context.palette)
    status = f" · {window.status.value}, revision {window.revision}" if window else ""
    more = f'<span class="hw-note">{markup.escape_html(status)}</span>'
    whole = context.url_query(page=PageName.WINDOW) if window else None
    link = (
        f" &nbsp;{markup.link('Everything about this minute', whole)}" if whole else _link_newest_loss(context, stretch)
    )
    words = f'<p class="hw-title">{chip} &nbsp;{markup.escape_html(what)}{more}{link}</p>'
    words += context.link_labels(stretch.stream)
    reasons = markup.note_list(window.reasons) if window and window.reasons else ""
    words += reasons or _explain_unknown(context, stretch, window)
    if window is None and not stretch.has_digests:
        words += markup.note(series.NO_LAG)
    st.html(words + loss_panel.format_figures(one, whole))


def _draw_new_schemas(context: PageContext, stretch: StreamRange) -> None:
    """Mark the minutes in which a schema was seen for the first time, each with a link to its figures."""
    if not stretch.new_schemas:
        return
    lines = []
    for one in stretch.new_schemas:
        at = texts.format_moment(one.window_start_us, context.zone)
        query = context.url_query(page=PageName.WINDOW, window_us=one.window_start_us, node=one.node)
        words = markup.escape_html(f"Schema {escape_line(one.value)} first seen at {one.node}:")
        lines.append(f'<p class="hw-note">{words} {markup.link(at, query)}</p>')
    st.html("".join(lines))


def _draw_markers(context: PageContext, stretch: StreamRange) -> None:
    """Draw what the upright lines in the charts mean, the latest last."""
    lines = series.build_marker_lines(stretch, context.zone)[-MAX_MARKER_LINES:]
    left_out = len(stretch.markers) - len(lines)
    more = f'<p class="hw-note">{left_out:,} earlier markers are in the charts alone.</p>' if left_out else ""
    told = "".join(f'<p class="hw-note">Marker: {markup.escape_html(escape_line(one.text))}</p>' for one in lines)
    if told:
        st.html(more + told)


def _draw_clocks(context: PageContext) -> None:
    """Draw which clocks are wrong, as lags are shown as they were stamped."""
    clocks = context.fetch(WrongClocksQuery(context.address.stream)).value or ()
    told = "".join(markup.note(f"Clock: {describe_clock(*one)}") for one in group_clocks(clocks))
    if told:
        st.html(told)


def _draw_seam(context: PageContext, stretch: StreamRange) -> None:
    """Draw loss and lag before and after the latest version of the range, if there is one."""
    if stretch.seam is None:
        return
    at = texts.format_moment(stretch.seam.at_us, context.zone)
    head = [(name, "hw-number" if place else "hw-name") for place, name in enumerate(seam.SEAM_COLUMNS)]
    rows = (tuple(map(markup.escape_html, row)) for row in seam.build_seam_rows(stretch.seam))
    note = "Final windows of this range, up to the versions next to it. A dash: no such node, or no such window."
    with st.container(border=True, key="seam"):
        told = markup.title(f"Before and after the version of {at}", note)
        st.html(told + markup.table(head, rows, "hw-labels", f"Loss and lag before and after the version of {at}"))


def _explain_unknown(context: PageContext, stretch: StreamRange, window: WindowResult | None) -> str:
    """Return how many windows of a range nothing can be shown of, and why not of the newest that is listed."""
    told = "" if window else series.format_unknown_windows(stretch)
    newest = series.find_newest_unknown(stretch)
    if not told or newest is None:
        return markup.note(told) if told else ""
    at = texts.format_moment(newest.window_start_us, context.zone)
    link = markup.link(f"The newest: {at}", context.url_query(page=PageName.WINDOW, window_us=newest.window_start_us))
    return f'<p class="hw-note">{markup.escape_html(told)} {link}</p>{markup.note_list(newest.reasons)}'


def _link_newest_loss(context: PageContext, stretch: StreamRange) -> str:
    """Return a link to where messages were lost last: the page of a minute, or the range of an hour or day."""
    start_us = series.find_newest_loss_us(stretch)
    if start_us is None:
        return ""
    step, at = display_range.STEP_WORDS[stretch.step_us], texts.format_moment(start_us, context.zone)
    query = context.url_query(from_us=start_us, to_us=start_us + stretch.step_us)
    if stretch.step_us == display_range.MINUTE_US:
        query = context.url_query(page=PageName.WINDOW, window_us=start_us)
    return f" &nbsp;{markup.link(f'The newest {step} with a loss: {at}', query)}"


def _format_range(context: PageContext, shown: DisplayRange) -> str:
    ends = (texts.format_moment(at, context.zone) for at in (shown.from_us, shown.to_us))
    return f"{' to '.join(ends)}, final windows by the {display_range.STEP_WORDS[shown.step_us]}"


def _draw_graph(context: PageContext, stretch: StreamRange, one: StepResult | None) -> None:
    recent = recent_panel.fetch_recent(context)
    seen = f"graph {recent.through_us if recent else 0}"
    drawing, graph = context.memoize(stretch, seen, lambda: _build_graph(context, stretch, one, recent))
    high = drawn.compute_height_px(drawing)
    # A long one has all the width that there is.
    left, right = (st.container(), st.container()) if drawing.is_close else st.columns([5, 3], gap="medium")
    beside_px = drawn.MIN_HEIGHT_PX if drawing.is_close else high
    with left.container(border=True, height=STRETCH):
        note, stream = (
            "Click a node to look at it. Dashed: one of several ways; what was lost on them stands where they begin.",
            stretch.stream,
        )
        downloads.draw_title("Pathway", note, stream, "pathway", lambda: sheets.build_pathway(stretch.graph, one))
        nodes, chosen = stretch.graph.nodes, context.address.node
        key = f"pathway-{context.address.node}-{context.address.window_us}"
        # Where it is narrower than its names have room, it is scrolled.
        with st.container(key=f"graph-{min(drawing.columns, pathway.MAX_SCROLLED_COLUMNS)}"):
            st.echarts_chart(
                graph,
                key=key,
                on_select=context.on_change(key, lambda event: _parse_click(nodes, chosen, event)),
                renderer="canvas",  # of which the browser makes a PNG; it makes none of SVG
                height=high,
                alt=drawing.description,
            )
    with right.container(border=True, height=STRETCH):
        nodes = series.select_slowest(one) if one is not None else ()
        note = "The share of each node in the sum of all that are shown."
        more = series.format_left_out(one, nodes) if one is not None and nodes else ""
        downloads.draw_title(
            "Process duration p95", note + more, stretch.stream, "shares", lambda: sheets.build_shares(one)
        )
        points = series.build_share_points(one, nodes) if one is not None else ()
        if points:
            said = ", ".join(f"{point.line} {point.text} ({point.part})" for point in points)
            st.echarts_chart(
                shares.build_options(points, nodes, context.palette), key="shares", height=beside_px, alt=said
            )
        else:
            lacks_lag = one is stretch.total and not stretch.has_digests
            st.html(markup.note("No lag of the whole range is known." if lacks_lag else "No node stamps both sides."))


def _build_graph(
    context: PageContext, stretch: StreamRange, one: StepResult | None, recent: RecentFigures | None
) -> tuple[PathwayDrawing, dict[str, Any]]:
    """Return what is drawn of the pathway, and the options of its chart."""
    drawing = pathway.build_drawing(stretch.graph, one, recent, stretch.times)
    return drawing, drawn.build_options(drawing, context.palette, context.address.node)


def _parse_click(nodes: Sequence[str], chosen: str, event: EChartsState) -> dict[str, str]:
    """Return the node that was clicked, or none where it was looked at already."""
    groups = event.selection.selected
    places = [place for group in groups if group["data_type"] == "node" for place in group["data_indices"]]
    if not places or not 0 <= places[0] < len(nodes):
        return {}
    node = nodes[places[0]]
    return {"node": "" if node == chosen else node}
