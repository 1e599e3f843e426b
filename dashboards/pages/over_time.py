"""The charts of a stream over time: one axis for all, and a drag across one of them chooses the range of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from hopwatch.dashboards.charts import live, pictures
from hopwatch.dashboards.charts.live import Live
from hopwatch.dashboards.charts.pictures import Picture
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import choosing, files
from hopwatch.dashboards.reading.told import Stretch
from hopwatch.dashboards.views import described, series, sheets, span, texts
from hopwatch.dashboards.views.address import Measure
from hopwatch.dashboards.views.judged import Judged
from hopwatch.dashboards.views.series import Band
from hopwatch.dashboards.views.sheets import Sheet
from hopwatch.dashboards.views.span import Span


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
    _heat(looking, shown)
    _arrivals(looking, shown)
    _lags(looking, shown, looking.address.node or series.telling(stretch, shown.one))
    _durations(looking, shown)


def _told(looking: Looking, stretch: Stretch) -> described.Told:
    return described.Told(looking.zone, span.STEP_WORDS[stretch.step_us])


def _heat(looking: Looking, shown: Shown) -> None:
    stretch, measure = shown.stretch, looking.address.heat
    chart = looking.once(stretch, "heat", lambda: _heated(looking, shown))
    left_out = len(stretch.graph.nodes) + 1 - len(chart.rows)
    more = f" The {len(chart.rows) - 1:,} nodes that lost most; {left_out:,} more are not shown." if left_out else ""
    note = f"A framed cell is not known or not final; click one to look at its window.{more}"
    made = partial(_sheet_of_all, shown, partial(sheets.heat, measure=measure))
    with _panel("Nodes over time", note, stretch.stream, "nodes-over-time", made):
        choosing.measure(looking)
        step_us, nodes = stretch.step_us, stretch.graph.nodes
        _drawn(looking, chart, "nodes-over-time", lambda event: _clicked(step_us, nodes, event))


def _heated(looking: Looking, shown: Shown) -> Live:
    """Return the heat map."""
    unit = "loss, %" if looking.address.heat is Measure.LOSS else "lag out p95"
    stretch = shown.stretch
    cells = series.heat(stretch, looking.address.heat, looking.zone)
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    high = pictures.TOP + pictures.ROW * len(rows) + pictures.BOTTOM
    picture = _picture(looking, shown, "Nodes over time", _told(looking, stretch).heat(cells, unit), high)
    return live.of(pictures.heat(picture, cells, rows, unit), "click")


def _clicked(step_us: int, nodes: Sequence[str], event: Any) -> dict[str, Any]:  # noqa: ANN401 - of a browser
    """Return the node and the window of the cell that was clicked; an hour or a day is no window."""
    if not event.clicked:
        return {}
    row = str(event.clicked["row"])
    start_us = int(event.clicked["at_ms"] * 1e3) // step_us * step_us
    return {"window_us": start_us if step_us == span.MINUTE_US else None, "node": row if row in nodes else ""}


def _arrivals(looking: Looking, shown: Shown) -> None:
    stretch, node = shown.stretch, looking.address.node
    name = node or "all nodes, end to end"

    def make() -> Live:
        points = series.arrivals(series.finished(stretch), node, looking.zone)
        picture = _picture(
            looking, shown, "Expected and arrived", _told(looking, stretch).arrivals(points, name), pictures.HIGH
        )
        return live.of(pictures.arrivals(picture, points, _bands(looking, stretch), span.STEP_WORDS[stretch.step_us]))

    note = f"{name}: what should have arrived, what did. Drag across to choose a range.{_shaded(looking, stretch)}"
    with _panel(
        "Expected and arrived",
        note + _running(stretch),
        stretch.stream,
        "arrivals",
        lambda: sheets.arrivals(stretch, node),
    ):
        _drawn(looking, looking.once(stretch, "arrivals", make), "arrivals", _dragged)


def _running(stretch: Stretch) -> str:
    """Return that the newest step is left out, where it is."""
    running = series.running(stretch)
    return f" {running[0].upper()}{running[1:]}, and left out." if running else ""


def _lags(looking: Looking, shown: Shown, node: str) -> None:
    """Draw the lag of both sides of a node."""
    stretch = shown.stretch
    step, parts = span.STEP_WORDS[stretch.step_us], texts.listed(series.percentiles(stretch))
    note = f"{node}: {parts} a {step}; a diamond is an outlier.{_shaded(looking, stretch)}"
    for side, _, _ in series.SIDES:
        what, made = side.replace(" ", "-"), partial(sheets.lags, stretch, node, side)
        with _panel(side.capitalize(), note, stretch.stream, what, made):
            chart = looking.once(stretch, f"{side} of {node}", partial(_lag, looking, shown, node, side))
            if chart is not None:
                _drawn(looking, chart, what, _dragged)
            else:
                st.html('<p class="hw-note">This side is not stamped here.</p>')


def _lag(looking: Looking, shown: Shown, node: str, side: str) -> Live | None:
    """Return the chart of one side's lag; none where it is not stamped."""
    stretch = shown.stretch
    points = [point for point in series.lags(stretch, node, looking.zone) if point.line == side]
    found = [one for one in series.outliers(stretch, node, looking.zone) if one.line == side]
    if not points:
        return None
    said = _told(looking, stretch).lags(points, found, side, node)
    picture = _picture(looking, shown, side.capitalize(), said, pictures.HIGH)
    return live.of(pictures.lags(picture, points, found, _bands(looking, stretch)))


def _durations(looking: Looking, shown: Shown) -> None:
    stretch, one = shown.stretch, shown.one
    nodes = series.slowest(one, span.thinned(len(stretch.steps), series.MOST_COLOURS)) if one is not None else ()
    if one is None or not nodes:
        return

    def make() -> Live:
        pieces = series.durations(stretch, nodes, looking.zone)
        said = _told(looking, stretch).durations(pieces)
        picture = _picture(looking, shown, "Process duration p95", said, pictures.HIGH)
        return live.of(pictures.durations(picture, pieces, nodes, _bands(looking, stretch)))

    left_out = series.left_out(one, nodes)
    note = f"p95 of lag out less p95 of lag in, one node on top of the other.{left_out}{_shaded(looking, stretch)}"
    made = partial(_sheet_of_all, shown, sheets.durations)
    with _panel("Process duration p95", note, stretch.stream, "durations", made):
        _drawn(looking, looking.once(stretch, "durations", make), "durations", _dragged)


def _picture(looking: Looking, shown: Shown, title: str, said: str, high: int) -> Picture:
    """Return a chart of the range in which nothing is drawn yet."""
    here = shown.span
    return Picture(title, said, here.from_us, here.to_us, here.step_us, high, looking.zone)


def _sheet_of_all(shown: Shown, made: Callable[[Stretch], Sheet]) -> Sheet:
    return made(shown.whole())


def _bands(looking: Looking, stretch: Stretch) -> tuple[Band, ...]:
    """Return the shades behind all charts, made once for them."""
    return looking.once(stretch, "bands", lambda: series.bands(stretch))


def _shaded(looking: Looking, stretch: Stretch) -> str:
    """Return what the shades behind a chart are, if there are any."""
    words = dict.fromkeys(band.word for band in _bands(looking, stretch))
    return f" Shaded: {', '.join(words)}." if words else ""


@contextmanager
def _panel(title: str, note: str, stream: str, what: str, made: Callable[[], Sheet]) -> Iterator[None]:
    """Draw what is inside in a panel, with a way to its numbers as a file above it and as a table below."""
    with st.container(border=True):
        files.titled(title, note, stream, what, made)
        yield
        files.table(what, made)


def _drawn(looking: Looking, chart: Live, what: str, means: Callable[[Any], Mapping[str, Any]]) -> None:
    """Draw a chart; ``means`` says where a drag across it or a click leads."""
    key = f"chart-{what}"
    file = f"{sheets.file_name(looking.address.stream, what)}.png"
    live.show(chart, key, file, looking.changes(key, means))


def _dragged(event: Any) -> dict[str, int]:  # noqa: ANN401 - of a browser
    """Return the range that was dragged across, for all charts."""
    return dict(zip(("from_us", "to_us"), span.dragged(*event.dragged), strict=True)) if event.dragged else {}
