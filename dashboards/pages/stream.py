"""A stream: which node loses or is late, and since when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from typing import Any, Final, TypeVar

import streamlit as st

from dashboards import markup
from dashboards.charts import pathway as drawn
from dashboards.charts import ready, shares, times
from dashboards.charts.ready import Spec
from dashboards.charts.times import Frame
from dashboards.looking import Looking
from dashboards.once import Once
from dashboards.pages import choosing
from dashboards.reading.questions import MOST_NODES, HowAStreamWent
from dashboards.reading.told import Standing, Stretch
from dashboards.views import judged, loss_table, pathway, series, span, texts
from dashboards.views.address import Measure, Zone
from dashboards.views.judged import Judged
from dashboards.views.pathway import Drawing
from dashboards.views.span import Span
from monitor.results import WindowResult

WIDE: Final = "stretch"
_ONCE: Final = Once()

Made = TypeVar("Made")


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page of the stream that is looked at; one of which nothing came says so."""
    now = standing.of(looking.address.stream)
    if now is None or now.first_us is None or now.last_us is None:
        st.info("Nothing of this stream was read yet.")
        return
    shown = span.of(looking.address, now.first_us, now.last_us)
    if shown.complaint:
        st.warning(markup.plain(shown.complaint))
    answer = looking.answers.ask(_question(looking, shown, now.stream))
    stretch = answer.value
    if stretch is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    window = _window(looking, stretch)
    choosing.show(looking, shown, stretch, window)
    one: Judged | None = window or stretch.whole
    _head(looking, shown, one, window)
    _graph(looking, shown, stretch, one)
    if one is not None:
        with st.container(border=True):
            st.html(_once(looking, shown, stretch, "table", partial(_table, looking, one)))
    _charts(looking, shown, stretch, one)


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


def _head(looking: Looking, shown: Span, one: Judged | None, window: WindowResult | None) -> None:
    if one is None:
        st.html('<p class="hw-note">No window of this range is final yet.</p>')
        return
    what = texts.moment(window.window_start_us, looking.zone) if window else _range(looking, shown)
    chip = markup.chip(judged.of(one).mark, looking.palette)
    status = f" · {window.status.value}, revision {window.revision}" if window else ""
    more = f'<span class="hw-note">{markup.text(status)}</span>'
    words = f'<p class="hw-title">{chip} &nbsp;{markup.text(what)}{more}</p>'
    cells = "".join(markup.figure(name, told) for name, told in loss_table.figures(one))
    reasons = "".join(f'<p class="hw-note">{markup.text(reason)}</p>' for reason in (window.reasons if window else ()))
    st.html(f'{words}{reasons}<div class="hw-figures">{cells}</div>')


def _range(looking: Looking, shown: Span) -> str:
    ends = (texts.moment(at, looking.zone) for at in (shown.from_us, shown.to_us))
    return f"{' to '.join(ends)}, final windows by the {span.STEP_WORDS[shown.step_us]}"


def _graph(looking: Looking, shown: Span, stretch: Stretch, one: Judged | None) -> None:
    drawing, graph = _once(looking, shown, stretch, "graph", lambda: _graphed(looking, stretch, one))
    high = drawn.high_px(drawing)
    left, right = st.columns([5, 3], gap="medium")
    with left.container(border=True, height=WIDE):
        st.html(markup.title("Pathway", "Click a node to look at it. Dashed: one of several ways."))
        event = st.echarts_chart(
            graph,
            key=f"pathway-{looking.address.node}-{looking.address.window_us}",
            on_select="rerun",
            renderer="svg",
            height=high,
            alt=drawing.said,
        )
        _chosen(looking, stretch, event)
    with right.container(border=True, height=WIDE):
        st.html(markup.title("Process duration p95", "The share of each node in the time inside."))
        nodes = series.slowest(one) if one is not None else ()
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


def _chosen(looking: Looking, stretch: Stretch, event: object) -> None:
    groups = event.selection.selected if hasattr(event, "selection") else ()
    places = [place for group in groups if group["data_type"] == "node" for place in group["data_indices"]]
    if places and 0 <= places[0] < len(stretch.graph.nodes):
        node = stretch.graph.nodes[places[0]]
        looking.go(node="" if node == looking.address.node else node)


def _table(looking: Looking, one: Judged) -> str:
    table = loss_table.of(one)
    chosen = looking.address.node
    kinds = {chosen: "hw-number hw-chosen"}
    head = [("", "hw-narrow"), *((node, kinds.get(node, "hw-number")) for node in table.nodes)]
    marks = ["", *(markup.chip(seen, looking.palette) for seen in table.marks)]
    rows = [
        [markup.text(line.name), *(markup.loud(cell.words, is_bad=cell.is_bad) for cell in line.cells)]
        for line in table.lines
    ]
    drawn_table = markup.table(head, [marks, *rows], "hw-matrix", "Counts, loss and lag of each node")
    return markup.title("Loss of each node") + drawn_table


def _charts(looking: Looking, shown: Span, stretch: Stretch, one: Judged | None) -> None:
    if not stretch.steps:
        st.info("No window of this stream falls into the range.")
        return
    zone, node = looking.zone, looking.address.node
    bands = _once(looking, shown, stretch, "bands", lambda: series.bands(stretch))
    frame = Frame(shown, looking.address.zone is Zone.UTC, looking.palette, bands)
    step = span.STEP_WORDS[shown.step_us]
    _heat(looking, frame, stretch)
    shaded = _shaded(frame)
    name = node or "all nodes, end to end"
    with _panel(
        "Expected and arrived", f"{name}: what should have arrived, what did. Drag across to choose a range.{shaded}"
    ):
        chart = _once(
            looking,
            shown,
            stretch,
            "arrivals",
            lambda: ready.of(times.arrivals(frame, series.arrivals(stretch, node, zone), step)),
        )
        _drawn(looking, chart, "arrivals", f"Expected and arrived messages, {name}")
    late = node or _latest(stretch, one)
    for side, _, _ in series.SIDES:
        with _panel(side.capitalize(), f"{late}: p50, p95 and p99 a {step}; a diamond is an outlier.{shaded}"):
            lagging = _once(looking, shown, stretch, side, partial(_lags, frame, stretch, late, side, zone))
            if lagging is not None:
                _drawn(looking, lagging, side, f"{side} of {late}, percentiles in ms")
            else:
                st.html('<p class="hw-note">This side is not stamped here.</p>')
    nodes = series.slowest(one, span.thinned(len(stretch.steps), series.MOST_COLOURS)) if one is not None else ()
    if nodes:
        with _panel(
            "Process duration p95", f"p95 of lag out less p95 of lag in, one node on top of the other.{shaded}"
        ):
            chart = _once(
                looking,
                shown,
                stretch,
                "durations",
                lambda: ready.of(times.durations(frame, series.durations(stretch, nodes, zone), nodes)),
            )
            _drawn(looking, chart, "durations", "Process duration p95 of each node, ms")


def _shaded(frame: Frame) -> str:
    """Return what the shades behind a chart are, if there are any."""
    words = dict.fromkeys(band.word for band in frame.bands)
    return f" Shaded: {', '.join(words)}." if words else ""


def _panel(title: str, note: str) -> st.delta_generator.DeltaGenerator:
    panel = st.container(border=True)
    panel.html(markup.title(title, note))
    return panel


def _latest(stretch: Stretch, one: Judged | None) -> str:
    """Return the node that is looked at where none is chosen: the one that lost most, else the last."""
    losses = {node.node: node.loss for node in one.nodes} if one is not None else {}
    worst = max(losses, key=lambda name: losses[name], default="")
    return worst if losses.get(worst) else stretch.graph.nodes[-1]


def _heat(looking: Looking, frame: Frame, stretch: Stretch) -> None:
    measure = looking.address.heat
    unit = "loss, %" if measure is Measure.LOSS else "lag out p95, ms"
    chart, shown = _once(looking, frame.span, stretch, "heat", lambda: _heated(looking, frame, stretch, unit))
    left_out = len(stretch.graph.nodes) - len(shown)
    more = f" The {len(shown):,} nodes that lost most; {left_out:,} more are not shown." if left_out else ""
    note = f"A framed cell is not known or not final; click one to look at its window.{more}"
    with _panel("Nodes over time", note):
        choosing.measure(looking)
        key = f"heat-{looking.address.node}-{looking.address.window_us}-{measure}-{looking.query()}"
        event = st.vega_lite_chart(
            spec=chart,
            width=WIDE,
            key=key,
            on_select="rerun",
            selection_mode=times.CLICK,
            alt=f"{unit} of each node over time",
        )
        picked = event["selection"].get(times.CLICK) or []
        if picked:
            row = str(picked[0].get("row", ""))
            node = row if row in stretch.graph.nodes else ""
            looking.go(window_us=int(picked[0]["start_us"]) if stretch.step_us == span.MINUTE_US else None, node=node)


def _heated(looking: Looking, frame: Frame, stretch: Stretch, unit: str) -> tuple[Spec, list[str]]:
    """Return the heat map, and the nodes that have a row in it."""
    cells = series.heat(stretch, looking.address.heat, looking.zone)
    rows = {cell.row for cell in cells}
    shown = [node for node in stretch.graph.nodes if node in rows]
    return ready.of(times.heat(frame, cells, shown, unit)), shown


def _lags(frame: Frame, stretch: Stretch, node: str, side: str, zone: tzinfo) -> Spec | None:
    """Return the chart of one side's lag; none where it is not stamped."""
    points = series.lags(stretch, node, zone)
    if not any(point.line == side for point in points):
        return None
    return ready.of(times.lags(frame, points, series.outliers(stretch, node, zone), side))


def _once(looking: Looking, shown: Span, stretch: Stretch, name: str, make: Callable[[], Made]) -> Made:
    """Return what is made of what is looked at, made once for all who look at the same."""
    return _ONCE.of(stretch, (name, looking.address, shown, looking.palette, str(looking.zone)), make)


def _drawn(looking: Looking, chart: Spec, name: str, said: str) -> None:
    """Draw a chart on which a drag across chooses the range of all."""
    key = f"{name}-{looking.address.from_us}-{looking.address.to_us}-{looking.address.range}"
    event = st.vega_lite_chart(spec=chart, width=WIDE, key=key, on_select="rerun", selection_mode=times.DRAG, alt=said)
    dragged = (event["selection"].get(times.DRAG) or {}).get("at")
    if dragged:
        from_us, to_us = span.dragged(*dragged)
        looking.go(from_us=from_us, to_us=to_us)
