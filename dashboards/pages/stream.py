"""A stream: which node loses or is late, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st
from streamlit.typing import EChartsState

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pathway as drawn
from hopwatch.dashboards.charts import shares
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import choosing, files, losses, over_time
from hopwatch.dashboards.pages.over_time import Shown
from hopwatch.dashboards.reading.questions import MOST_NODES, HowAStreamWent
from hopwatch.dashboards.reading.told import Standing, Stretch
from hopwatch.dashboards.views import judged, pathway, series, sheets, span, texts
from hopwatch.dashboards.views.address import Page
from hopwatch.dashboards.views.judged import Judged
from hopwatch.dashboards.views.pathway import Drawing
from hopwatch.dashboards.views.span import Span
from hopwatch.monitor.results import WindowResult

WIDE: Final = "stretch"


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page of the stream that is looked at; one of which nothing came says so."""
    now = standing.of(looking.address.stream)
    if now is None or now.first_us is None or now.last_us is None:
        st.info("Nothing of this stream was read yet.")
        return
    shown = span.of(looking.address, now.first_us, now.last_us)
    if shown.complaint:
        st.warning(markup.plain(shown.complaint))
    question = _question(looking, shown, now.stream)
    answer = looking.ask(question)
    stretch = answer.value
    if stretch is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    window = _window(looking, stretch)
    choosing.show(looking, shown, stretch, window)
    one: Judged | None = window or stretch.whole
    _head(looking, stretch, _range(looking, shown), window)
    _graph(looking, stretch, one)
    if one is not None:
        losses.show(looking, one)

    def whole() -> Stretch:
        # A file has all nodes, also those that a chart has no room for.
        return looking.answers.ask(replace(question, most=MOST_NODES)).value or stretch

    over_time.show(looking, Shown(shown, stretch, one, whole))


def _question(looking: Looking, shown: Span, stream: str) -> HowAStreamWent:
    """Return the one question of this page, with no more nodes at each step than a chart can show."""
    most = span.thinned(shown.steps, MOST_NODES)
    here = looking.address
    return HowAStreamWent(stream, shown.from_us, shown.to_us, shown.step_us, here.node, here.window_us, most)


def _window(looking: Looking, stretch: Stretch) -> WindowResult | None:
    """Return the window that is looked at; one that is not there is told, with a way back."""
    if looking.address.window_us is not None and stretch.window is None:
        at = texts.moment(looking.address.window_us, looking.zone)
        st.warning(markup.plain(f"the store has no window of {at} for this stream: showing the range"))
    return stretch.window


def _head(looking: Looking, stretch: Stretch, of_range: str, window: WindowResult | None) -> None:
    one: Judged | None = window or stretch.whole
    if one is None:
        st.html('<p class="hw-note">No window of this range is final yet.</p>')
        return
    what = texts.moment(window.window_start_us, looking.zone) if window else of_range
    chip = markup.chip(judged.of(one).mark, looking.palette)
    status = f" · {window.status.value}, revision {window.revision}" if window else ""
    more = f'<span class="hw-note">{markup.text(status)}</span>'
    whole = looking.query(page=Page.WINDOW) if window else None
    link = f" &nbsp;{markup.link('Everything about this minute', whole)}" if whole else _newest_loss(looking, stretch)
    words = f'<p class="hw-title">{chip} &nbsp;{markup.text(what)}{more}{link}</p>'
    reasons = markup.notes(window.reasons) if window and window.reasons else ""
    st.html(f"{words}{reasons or _why(looking, stretch, window)}{losses.figures(one, whole)}")


def _why(looking: Looking, stretch: Stretch, window: WindowResult | None) -> str:
    """Return how many windows of a range nothing can be shown of, and why not of the newest that is listed."""
    told = "" if window else series.ignorance(stretch)
    newest = series.ignorant(stretch)
    if not told or newest is None:
        return markup.note(told) if told else ""
    at = texts.moment(newest.window_start_us, looking.zone)
    link = markup.link(f"The newest: {at}", looking.query(page=Page.WINDOW, window_us=newest.window_start_us))
    return f'<p class="hw-note">{markup.text(told)} {link}</p>{markup.notes(newest.reasons)}'


def _newest_loss(looking: Looking, stretch: Stretch) -> str:
    """Return a link to where messages were lost last: the page of a minute, or the range of an hour or day."""
    start_us = series.newest_loss_us(stretch)
    if start_us is None:
        return ""
    step, at = span.STEP_WORDS[stretch.step_us], texts.moment(start_us, looking.zone)
    query = looking.query(from_us=start_us, to_us=start_us + stretch.step_us)
    if stretch.step_us == span.MINUTE_US:
        query = looking.query(page=Page.WINDOW, window_us=start_us)
    return f" &nbsp;{markup.link(f'The newest {step} with a loss: {at}', query)}"


def _range(looking: Looking, shown: Span) -> str:
    ends = (texts.moment(at, looking.zone) for at in (shown.from_us, shown.to_us))
    return f"{' to '.join(ends)}, final windows by the {span.STEP_WORDS[shown.step_us]}"


def _graph(looking: Looking, stretch: Stretch, one: Judged | None) -> None:
    drawing, graph = looking.once(stretch, "graph", lambda: _graphed(looking, stretch, one))
    high = drawn.high_px(drawing)
    left, right = st.columns([5, 3], gap="medium")
    with left.container(border=True, height=WIDE):
        note, stream = (
            "Click a node to look at it. Dashed: one of several ways; what was lost on them stands where they begin.",
            stretch.stream,
        )
        files.titled("Pathway", note, stream, "pathway", lambda: sheets.pathway_of(stretch.graph, one))
        nodes, chosen = stretch.graph.nodes, looking.address.node
        key = f"pathway-{looking.address.node}-{looking.address.window_us}"
        # Where it is narrower than its names have room, it is scrolled.
        with st.container(key=f"graph-{drawing.columns}"):
            st.echarts_chart(
                graph,
                key=key,
                on_select=looking.changes(key, lambda event: _clicked(nodes, chosen, event)),
                renderer="canvas",  # of which the browser makes a PNG; it makes none of SVG
                height=high,
                alt=drawing.said,
            )
    with right.container(border=True, height=WIDE):
        nodes = series.slowest(one) if one is not None else ()
        note = "The share of each node in the sum of all that are shown."
        more = series.left_out(one, nodes) if one is not None and nodes else ""
        files.titled("Process duration p95", note + more, stretch.stream, "shares", lambda: sheets.shares(one))
        points = series.shares(one, nodes) if one is not None else ()
        if points:
            said = ", ".join(f"{point.line} {point.said} ({point.part})" for point in points)
            st.echarts_chart(shares.option(points, nodes, looking.palette), key="shares", height=high, alt=said)
        else:
            st.html('<p class="hw-note">No node stamps both sides.</p>')


def _graphed(looking: Looking, stretch: Stretch, one: Judged | None) -> tuple[Drawing, dict[str, Any]]:
    """Return what is drawn of the pathway, and the options of its chart."""
    drawing = pathway.of(stretch.graph, one)
    return drawing, drawn.option(drawing, looking.palette, looking.address.node)


def _clicked(nodes: Sequence[str], chosen: str, event: EChartsState) -> dict[str, str]:
    """Return the node that was clicked, or none where it was looked at already."""
    groups = event.selection.selected
    places = [place for group in groups if group["data_type"] == "node" for place in group["data_indices"]]
    if not places or not 0 <= places[0] < len(nodes):
        return {}
    node = nodes[places[0]]
    return {"node": "" if node == chosen else node}
