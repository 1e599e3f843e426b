"""The charts of a stream over time: one axis for all, and a drag across one of them chooses the range of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import streamlit as st
from streamlit.typing import VegaLiteState

from dashboards.charts import ready, times
from dashboards.charts.ready import Spec
from dashboards.charts.times import Frame
from dashboards.looking import Looking
from dashboards.pages import choosing, files
from dashboards.reading.told import Stretch
from dashboards.views import described, series, sheets, span, texts
from dashboards.views.address import Measure, Zone
from dashboards.views.judged import Judged
from dashboards.views.sheets import Sheet
from dashboards.views.span import Span

WIDE: Final = "stretch"


class Chart(NamedTuple):
    """What the browser draws, and the same in words."""

    spec: Spec
    said: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A range, what was read of it with the nodes that charts have room for, and how it is read with all nodes."""

    span: Span
    stretch: Stretch
    one: Judged | None
    whole: Callable[[], Stretch]


def show(looking: Looking, shown: Shown) -> None:
    """Draw them, one below the other."""
    stretch = shown.stretch
    if not stretch.steps:
        st.info("No window of this stream falls into the range.")
        return
    bands = looking.once(stretch, "bands", lambda: series.bands(stretch))
    frame = Frame(shown.span, looking.address.zone is Zone.UTC, looking.palette, bands)
    _heat(looking, frame, shown)
    _arrivals(looking, frame, stretch)
    _lags(looking, frame, stretch, looking.address.node or series.telling(stretch, shown.one))
    _durations(looking, frame, shown)


def _told(looking: Looking, stretch: Stretch) -> described.Told:
    return described.Told(looking.zone, span.STEP_WORDS[stretch.step_us])


def _heat(looking: Looking, frame: Frame, shown: Shown) -> None:
    stretch, measure = shown.stretch, looking.address.heat
    chart, rows = looking.once(stretch, "heat", lambda: _heated(looking, frame, stretch))
    left_out = len(stretch.graph.nodes) - len(rows)
    more = f" The {len(rows):,} nodes that lost most; {left_out:,} more are not shown." if left_out else ""
    note = f"A framed cell is not known or not final; click one to look at its window.{more}"
    made = partial(_sheet_of_all, shown, partial(sheets.heat, measure=measure))
    with _panel("Nodes over time", note, stretch.stream, "nodes-over-time", made):
        choosing.measure(looking)
        key = f"heat-{looking.address.node}-{looking.address.window_us}-{measure}-{looking.query()}"
        click = looking.changes(key, lambda event: _clicked(stretch, event))
        st.vega_lite_chart(
            spec=chart.spec, width=WIDE, key=key, on_select=click, selection_mode=times.CLICK, alt=chart.said
        )


def _clicked(stretch: Stretch, event: VegaLiteState) -> dict[str, str | int | None]:
    """Return the node and the window of the cell that was clicked; an hour or a day is no window."""
    picked = event["selection"].get(times.CLICK)
    if not picked:
        return {}
    row = str(picked[0].get("row", ""))
    start_us = int(picked[0]["start_us"]) if stretch.step_us == span.MINUTE_US else None
    return {"window_us": start_us, "node": row if row in stretch.graph.nodes else ""}


def _heated(looking: Looking, frame: Frame, stretch: Stretch) -> tuple[Chart, list[str]]:
    """Return the heat map, and the nodes that have a row in it."""
    unit = "loss, %" if looking.address.heat is Measure.LOSS else "lag out p95, ms"
    cells = series.heat(stretch, looking.address.heat, looking.zone)
    rows = {cell.row for cell in cells}
    nodes = [node for node in stretch.graph.nodes if node in rows]
    spec = ready.of(times.heat(frame, cells, nodes, unit))
    return Chart(spec, _told(looking, stretch).heat(cells, unit)), nodes


def _arrivals(looking: Looking, frame: Frame, stretch: Stretch) -> None:
    node, step = looking.address.node, span.STEP_WORDS[stretch.step_us]
    name = node or "all nodes, end to end"

    def make() -> Chart:
        points = series.arrivals(stretch, node, looking.zone)
        return Chart(ready.of(times.arrivals(frame, points, step)), _told(looking, stretch).arrivals(points, name))

    note = f"{name}: what should have arrived, what did. Drag across to choose a range.{_shaded(frame)}"
    with _panel("Expected and arrived", note, stretch.stream, "arrivals", lambda: sheets.arrivals(stretch, node)):
        _drawn(looking, looking.once(stretch, "arrivals", make), "arrivals")


def _lags(looking: Looking, frame: Frame, stretch: Stretch, node: str) -> None:
    """Draw the lag of both sides of a node."""
    step, parts = span.STEP_WORDS[stretch.step_us], texts.listed(series.percentiles(stretch))
    note = f"{node}: {parts} a {step}; a diamond is an outlier.{_shaded(frame)}"
    for side, _, _ in series.SIDES:
        made = partial(sheets.lags, stretch, node, side)
        with _panel(side.capitalize(), note, stretch.stream, side.replace(" ", "-"), made):
            chart = looking.once(stretch, f"{side} of {node}", partial(_lag, looking, frame, stretch, node, side))
            if chart is not None:
                _drawn(looking, chart, side)
            else:
                st.html('<p class="hw-note">This side is not stamped here.</p>')


def _lag(looking: Looking, frame: Frame, stretch: Stretch, node: str, side: str) -> Chart | None:
    """Return the chart of one side's lag; none where it is not stamped."""
    points, found = series.lags(stretch, node, looking.zone), series.outliers(stretch, node, looking.zone)
    if not any(point.line == side for point in points):
        return None
    said = _told(looking, stretch).lags(points, found, side, node)
    return Chart(ready.of(times.lags(frame, points, found, side)), said)


def _durations(looking: Looking, frame: Frame, shown: Shown) -> None:
    stretch, one = shown.stretch, shown.one
    nodes = series.slowest(one, span.thinned(len(stretch.steps), series.MOST_COLOURS)) if one is not None else ()
    if not nodes:
        return

    def make() -> Chart:
        pieces = series.durations(stretch, nodes, looking.zone)
        return Chart(ready.of(times.durations(frame, pieces, nodes)), _told(looking, stretch).durations(pieces))

    note = f"p95 of lag out less p95 of lag in, one node on top of the other.{_shaded(frame)}"
    made = partial(_sheet_of_all, shown, sheets.durations)
    with _panel("Process duration p95", note, stretch.stream, "durations", made):
        _drawn(looking, looking.once(stretch, "durations", make), "durations")


def _sheet_of_all(shown: Shown, made: Callable[[Stretch], Sheet]) -> Sheet:
    return made(shown.whole())


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


def _drawn(looking: Looking, chart: Chart, name: str) -> None:
    """Draw a chart on which a drag across chooses the range of all."""
    key = f"{name}-{looking.address.from_us}-{looking.address.to_us}-{looking.address.range}"
    drag = looking.changes(key, _dragged)
    st.vega_lite_chart(spec=chart.spec, width=WIDE, key=key, on_select=drag, selection_mode=times.DRAG, alt=chart.said)


def _dragged(event: VegaLiteState) -> dict[str, int]:
    """Return the range that was dragged across."""
    ends = (event["selection"].get(times.DRAG) or {}).get("at")
    return dict(zip(("from_us", "to_us"), span.dragged(*ends), strict=True)) if ends else {}
