"""A stream: which node loses or is late, and since when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import streamlit as st
from altair import LayerChart

from dashboards import markup
from dashboards.charts import pathway as drawn
from dashboards.charts import shares, times
from dashboards.charts.times import Frame
from dashboards.looking import Looking
from dashboards.pages import choosing, files, losses
from dashboards.reading.questions import HowAStreamWent, OneWindow
from dashboards.reading.told import Standing, Stretch
from dashboards.views import described, judged, pathway, series, sheets, span, texts
from dashboards.views.address import Measure, Page, Zone
from dashboards.views.judged import Judged
from dashboards.views.sheets import Sheet
from dashboards.views.span import Span
from monitor.results import WindowResult

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
    answer = looking.answers.ask(HowAStreamWent(now.stream, shown.from_us, shown.to_us, shown.step_us))
    stretch = answer.value
    if stretch is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    window = _window(looking, now.stream)
    choosing.show(looking, shown, stretch, window)
    one: Judged | None = window or stretch.whole
    _head(looking, shown, one, window)
    _graph(looking, stretch, one)
    if one is not None:
        losses.show(looking, one)
    _charts(looking, shown, stretch, one)


def _window(looking: Looking, stream: str) -> WindowResult | None:
    """Return the window that is looked at; one that is not there is told, with a way back."""
    if looking.address.window_us is None:
        return None
    found = looking.answers.ask(OneWindow(stream, looking.address.window_us)).value
    if found is None:
        at = texts.moment(looking.address.window_us, looking.zone)
        st.warning(markup.plain(f"the store has no window of {at} for this stream: showing the range"))
    return found


def _head(looking: Looking, shown: Span, one: Judged | None, window: WindowResult | None) -> None:
    if one is None:
        st.html('<p class="hw-note">No window of this range is final yet.</p>')
        return
    what = texts.moment(window.window_start_us, looking.zone) if window else _range(looking, shown)
    chip = markup.chip(judged.of(one).mark, looking.palette)
    status = f" · {window.status.value}, revision {window.revision}" if window else ""
    more = f'<span class="hw-note">{markup.text(status)}</span>'
    whole = looking.query(page=Page.WINDOW) if window else None
    link = f" &nbsp;{markup.link('Everything about this minute', whole)}" if whole else ""
    words = f'<p class="hw-title">{chip} &nbsp;{markup.text(what)}{more}{link}</p>'
    reasons = "".join(f'<p class="hw-note">{markup.text(reason)}</p>' for reason in (window.reasons if window else ()))
    st.html(f"{words}{reasons}{losses.figures(one, whole)}")


def _range(looking: Looking, shown: Span) -> str:
    ends = (texts.moment(at, looking.zone) for at in (shown.from_us, shown.to_us))
    return f"{' to '.join(ends)}, final windows by the {span.STEP_WORDS[shown.step_us]}"


def _graph(looking: Looking, stretch: Stretch, one: Judged | None) -> None:
    drawing = pathway.of(stretch.graph, one)
    high = drawn.high_px(drawing)
    left, right = st.columns([5, 3], gap="medium")
    with left.container(border=True, height=WIDE):
        note, stream = "Click a node to look at it. Dashed: one of several ways.", stretch.stream
        files.titled("Pathway", note, stream, "pathway", lambda: sheets.pathway_of(stretch.graph, one))
        event = st.echarts_chart(
            drawn.option(drawing, looking.palette, looking.address.node),
            key=f"pathway-{looking.address.node}-{looking.address.window_us}",
            on_select="rerun",
            renderer="canvas",  # of which the browser makes a PNG; it makes none of SVG
            height=high,
            alt=drawing.said,
        )
        _chosen(looking, stretch, event)
    with right.container(border=True, height=WIDE):
        note = "The share of each node in the time inside."
        files.titled("Process duration p95", note, stretch.stream, "shares", lambda: sheets.shares(one))
        nodes = series.slowest(one) if one is not None else ()
        points = series.shares(one, nodes) if one is not None else ()
        if points:
            said = ", ".join(f"{point.line} {point.said} ({point.part})" for point in points)
            st.echarts_chart(shares.option(points, nodes, looking.palette), key="shares", height=high, alt=said)
        else:
            st.html('<p class="hw-note">No node stamps both sides.</p>')


def _chosen(looking: Looking, stretch: Stretch, event: object) -> None:
    groups = event.selection.selected if hasattr(event, "selection") else ()
    places = [place for group in groups if group["data_type"] == "node" for place in group["data_indices"]]
    if places and 0 <= places[0] < len(stretch.graph.nodes):
        node = stretch.graph.nodes[places[0]]
        looking.go(node="" if node == looking.address.node else node)


def _charts(looking: Looking, shown: Span, stretch: Stretch, one: Judged | None) -> None:
    if not stretch.steps:
        st.info("No window of this stream falls into the range.")
        return
    zone, node = looking.zone, looking.address.node
    frame = Frame(shown, looking.address.zone is Zone.UTC, looking.palette, series.bands(stretch))
    step = span.STEP_WORDS[shown.step_us]
    _heat(looking, frame, stretch)
    shaded = _shaded(frame)
    name = node or "all nodes, end to end"
    stream, told = stretch.stream, described.Told(zone, step)
    note = f"{name}: what should have arrived, what did. Drag across to choose a range.{shaded}"
    with _panel("Expected and arrived", note, stream, "arrivals", lambda: sheets.arrivals(stretch, node)):
        points = series.arrivals(stretch, node, zone)
        _drawn(looking, times.arrivals(frame, points, step), "arrivals", told.arrivals(points, name))
    late = node or series.telling(stretch, one)
    _lags(looking, frame, stretch, late)
    nodes = series.slowest(one, span.thinned(len(stretch.steps), series.MOST_COLOURS)) if one is not None else ()
    if nodes:
        note = f"p95 of lag out less p95 of lag in, one node on top of the other.{shaded}"
        with _panel("Process duration p95", note, stream, "durations", lambda: sheets.durations(stretch)):
            pieces = series.durations(stretch, nodes, zone)
            _drawn(looking, times.durations(frame, pieces, nodes), "durations", told.durations(pieces))


def _lags(looking: Looking, frame: Frame, stretch: Stretch, node: str) -> None:
    """Draw the lag of both sides of a node."""
    step, parts = span.STEP_WORDS[stretch.step_us], texts.listed(series.percentiles(stretch))
    note = f"{node}: {parts} a {step}; a diamond is an outlier.{_shaded(frame)}"
    points, found = series.lags(stretch, node, looking.zone), series.outliers(stretch, node, looking.zone)
    for side, _, _ in series.SIDES:
        made = partial(sheets.lags, stretch, node, side)
        with _panel(side.capitalize(), note, stretch.stream, side.replace(" ", "-"), made):
            if any(point.line == side for point in points):
                said = described.Told(looking.zone, step).lags(points, found, side, node)
                _drawn(looking, times.lags(frame, points, found, side), side, said)
            else:
                st.html('<p class="hw-note">This side is not stamped here.</p>')


def _shaded(frame: Frame) -> str:
    """Return what the shades behind a chart are, if there are any."""
    words = dict.fromkeys(band.word for band in frame.bands)
    return f" Shaded: {', '.join(words)}." if words else ""


@contextmanager
def _panel(title: str, note: str, stream: str, what: str, made: Callable[[], Sheet]) -> Iterator[None]:
    """Draw what is inside in a panel, with a way to its numbers as a file above it and as a table below."""
    with st.container(border=True):
        files.titled(title, note, stream, what, made)
        yield
        files.table(what, made)


def _heat(looking: Looking, frame: Frame, stretch: Stretch) -> None:
    measure = looking.address.heat
    cells = series.heat(stretch, measure, looking.zone)
    shown = [node for node in stretch.graph.nodes if any(cell.row == node for cell in cells)]
    left_out = len(stretch.graph.nodes) - len(shown)
    more = f" The {len(shown):,} nodes that lost most; {left_out:,} more are not shown." if left_out else ""
    unit = "loss, %" if measure is Measure.LOSS else "lag out p95, ms"
    note = f"A framed cell is not known or not final; click one to look at its window.{more}"
    with _panel("Nodes over time", note, stretch.stream, "nodes-over-time", lambda: sheets.heat(stretch, measure)):
        choosing.measure(looking)
        chart = times.heat(frame, cells, shown, unit)
        key = f"heat-{looking.address.node}-{looking.address.window_us}-{measure}-{looking.query()}"
        event = st.altair_chart(
            chart,
            width=WIDE,
            key=key,
            on_select="rerun",
            selection_mode=times.CLICK,
            alt=described.Told(looking.zone, span.STEP_WORDS[stretch.step_us]).heat(cells, unit),
        )
        picked = event["selection"].get(times.CLICK) or []
        if picked:
            row = str(picked[0].get("row", ""))
            node = row if row in stretch.graph.nodes else ""
            looking.go(window_us=int(picked[0]["start_us"]) if stretch.step_us == span.MINUTE_US else None, node=node)


def _drawn(looking: Looking, chart: LayerChart, name: str, said: str) -> None:
    """Draw a chart on which a drag across chooses the range of all."""
    key = f"{name}-{looking.address.from_us}-{looking.address.to_us}-{looking.address.range}"
    event = st.altair_chart(chart, width=WIDE, key=key, on_select="rerun", selection_mode=times.DRAG, alt=said)
    dragged = (event["selection"].get(times.DRAG) or {}).get("at")
    if dragged:
        from_us, to_us = span.dragged(*dragged)
        looking.go(from_us=from_us, to_us=to_us)
