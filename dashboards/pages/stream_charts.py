"""Charts of a stream over one common time axis; a drag across a chart selects the range of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from hopwatch.dashboards.charts import live_chart, time_chart
from hopwatch.dashboards.charts.live_chart import LiveChart
from hopwatch.dashboards.charts.time_chart import TimeChart
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import downloads, stream_controls
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.views import alt_text, display_range, series, sheets
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.dashboards.views.earlier_range import EarlierRange
from hopwatch.dashboards.views.series import ShadedBand
from hopwatch.dashboards.views.sheets import Sheet
from hopwatch.display import texts
from hopwatch.display.step_marks import StepResult


@dataclass(frozen=True, slots=True)
class ChartInputs:
    """A range, what was read of it with the nodes that charts have room for, and how it is read with all nodes.

    ``earlier`` is the range that it is compared with, if there is one.
    """

    display_range: DisplayRange
    stream_range: StreamRange
    selection: StepResult | None
    read_all_nodes: Callable[[], StreamRange]
    earlier: EarlierRange | None = None


def draw_charts(context: PageContext, shown: ChartInputs) -> None:
    """Draw them, one below the other."""
    stretch = shown.stream_range
    if not stretch.steps:
        st.info("No window of this stream falls into the range.")
        return
    _draw_heat(context, shown)
    _draw_arrivals(context, shown)
    _draw_lags(context, shown, context.address.node or series.select_lag_node(stretch, shown.selection))
    _draw_durations(context, shown)


def _build_alt_texts(context: PageContext, stretch: StreamRange) -> alt_text.AltTextWriter:
    return alt_text.AltTextWriter(context.zone, display_range.STEP_WORDS[stretch.step_us])


def _draw_heat(context: PageContext, shown: ChartInputs) -> None:
    stretch, measure = shown.stream_range, context.address.heat
    chart = context.memoize(stretch, "heat", lambda: _build_heat(context, shown))
    left_out = len(stretch.nodes) + 1 - len(chart.rows)
    more = f" The {len(chart.rows) - 1:,} nodes that lost most; {left_out:,} more are not shown." if left_out else ""
    note = f"A framed cell is not known or not final; click one to look at its window.{more}"
    made = partial(_build_full_sheet, shown, partial(sheets.build_heat, measure=measure))
    with _draw_panel("Nodes over time", note, stretch.stream, "nodes-over-time", made):
        stream_controls.draw_measure_control(context)
        step_us, nodes = stretch.step_us, stretch.nodes
        _mount_chart(context, chart, "nodes-over-time", lambda event: _parse_click(step_us, nodes, event))


def _build_heat(context: PageContext, shown: ChartInputs) -> LiveChart:
    """Return the heat map."""
    unit = "loss %" if context.address.heat is HeatMeasure.LOSS else "lag out p95"
    stretch = shown.stream_range
    cells = series.build_heat_cells(stretch, context.address.heat, context.zone)
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    high = time_chart.TOP + time_chart.ROW_HEIGHT * len(rows) + time_chart.BOTTOM
    picture = _build_time_chart(
        context, shown, "Nodes over time", _build_alt_texts(context, stretch).describe_heat(cells, unit), high
    )
    return live_chart.build_live_chart(time_chart.draw_heat(picture, cells, rows, unit), "click")


def _parse_click(step_us: int, nodes: Sequence[str], event: Any) -> dict[str, Any]:  # noqa: ANN401 - of a browser
    """Return the node and the window of the cell that was clicked; an hour or a day is no window."""
    if not event.clicked:
        return {}
    row = str(event.clicked["row"])
    start_us = int(event.clicked["at_ms"] * 1e3) // step_us * step_us
    return {"window_us": start_us if step_us == display_range.MINUTE_US else None, "node": row if row in nodes else ""}


def _draw_arrivals(context: PageContext, shown: ChartInputs) -> None:
    stretch, node = shown.stream_range, context.address.node
    name = node or "all nodes, end to end"

    def make() -> LiveChart:
        points = series.build_arrival_points(series.select_finished(stretch), node, context.zone)
        picture = _build_time_chart(
            context,
            shown,
            "Expected and arrived",
            _build_alt_texts(context, stretch).describe_arrivals(points, name),
            time_chart.HEIGHT,
        )
        return live_chart.build_live_chart(
            time_chart.draw_arrivals(
                picture,
                points,
                _build_bands(context, stretch),
                display_range.STEP_WORDS[stretch.step_us],
                shown.earlier.build_arrival_points(node, context.zone) if shown.earlier else (),
            )
        )

    note = (
        f"{name}: what should have arrived, what did. Drag across to choose a range.{_explain_bands(context, stretch)}"
    )
    with _draw_panel(
        "Expected and arrived",
        note + _explain_running(stretch),
        stretch.stream,
        "arrivals",
        lambda: sheets.build_arrivals(stretch, node),
    ):
        _mount_chart(context, context.memoize(stretch, "arrivals", make), "arrivals", _parse_drag)


def _explain_running(stretch: StreamRange) -> str:
    """Return that the newest step is left out, where it is."""
    running = series.format_running(stretch)
    return f" {running[0].upper()}{running[1:]}, and left out." if running else ""


def _draw_lags(context: PageContext, shown: ChartInputs, node: str) -> None:
    """Draw the lag of both sides of a node."""
    stretch = shown.stream_range
    step, parts = display_range.STEP_WORDS[stretch.step_us], texts.join_words(series.select_percentiles(stretch))
    note = f"{node}: {parts} a {step}; a diamond is an outlier.{_explain_bands(context, stretch)}"
    for side, _, _ in series.SIDES:
        what, made = side.replace(" ", "-"), partial(sheets.build_lags, stretch, node, side)
        with _draw_panel(side.capitalize(), note, stretch.stream, what, made):
            chart = context.memoize(stretch, f"{side} of {node}", partial(_build_lag, context, shown, node, side))
            if chart is not None:
                _mount_chart(context, chart, what, _parse_drag)
            else:
                st.html('<p class="hw-note">This side is not stamped here.</p>')


def _build_lag(context: PageContext, shown: ChartInputs, node: str, side: str) -> LiveChart | None:
    """Return the chart of one side's lag; none where it is not stamped."""
    stretch = shown.stream_range
    points = [point for point in series.build_lag_points(stretch, node, context.zone) if point.line == side]
    found = [one for one in series.build_outlier_markers(stretch, node, context.zone) if one.line == side]
    if not points:
        return None
    said = _build_alt_texts(context, stretch).describe_lags(points, found, side, node)
    picture = _build_time_chart(context, shown, side.capitalize(), said, time_chart.HEIGHT)
    before = shown.earlier.build_lag_points(node, side, context.zone) if shown.earlier else ()
    drawn = time_chart.draw_lags(picture, points, found, _build_bands(context, stretch), before)
    return live_chart.build_live_chart(drawn)


def _draw_durations(context: PageContext, shown: ChartInputs) -> None:
    stretch, one = shown.stream_range, shown.selection
    nodes = (
        series.select_slowest(one, display_range.limit_lines(len(stretch.steps), series.MAX_COLOURS))
        if one is not None
        else ()
    )
    if one is None or not nodes:
        return

    def make() -> LiveChart:
        pieces = series.build_duration_pieces(stretch, nodes, context.zone)
        said = _build_alt_texts(context, stretch).describe_durations(pieces)
        picture = _build_time_chart(context, shown, "Process duration p95", said, time_chart.HEIGHT)
        return live_chart.build_live_chart(
            time_chart.draw_durations(picture, pieces, nodes, _build_bands(context, stretch))
        )

    left_out = series.format_left_out(one, nodes)
    note = (
        f"p95 of lag out less p95 of lag in, one node on top of the other.{left_out}{_explain_bands(context, stretch)}"
    )
    made = partial(_build_full_sheet, shown, sheets.build_durations)
    with _draw_panel("Process duration p95", note, stretch.stream, "durations", made):
        _mount_chart(context, context.memoize(stretch, "durations", make), "durations", _parse_drag)


def _build_time_chart(context: PageContext, shown: ChartInputs, title: str, said: str, high: int) -> TimeChart:
    """Return a chart of the range in which nothing is drawn yet."""
    here = shown.display_range
    chart = TimeChart(title, said, here.from_us, here.to_us, here.step_us, high, context.zone)
    chart.draw_marker_lines(series.build_marker_lines(shown.stream_range, context.zone))
    return chart


def _build_full_sheet(shown: ChartInputs, made: Callable[[StreamRange], Sheet]) -> Sheet:
    return made(shown.read_all_nodes())


def _build_bands(context: PageContext, stretch: StreamRange) -> tuple[ShadedBand, ...]:
    """Return the shades behind all charts, made once for them."""
    return context.memoize(stretch, "bands", lambda: series.build_bands(stretch))


def _explain_bands(context: PageContext, stretch: StreamRange) -> str:
    """Return what the shades behind a chart are, if there are any."""
    words = dict.fromkeys(band.word for band in _build_bands(context, stretch))
    return f" Shaded: {', '.join(words)}." if words else ""


@contextmanager
def _draw_panel(title: str, note: str, stream: str, what: str, made: Callable[[], Sheet]) -> Iterator[None]:
    """Draw what is inside in a panel, with a way to its numbers as a file above it and as a table below."""
    with st.container(border=True):
        downloads.draw_title(title, note, stream, what, made)
        yield
        downloads.draw_table(what, made)


def _mount_chart(context: PageContext, chart: LiveChart, what: str, means: Callable[[Any], Mapping[str, Any]]) -> None:
    """Draw a chart; ``means`` says where a drag across it or a click leads."""
    key = f"chart-{what}"
    file = f"{sheets.build_file_name(context.address.stream, what)}.png"
    live_chart.mount(chart, key, file, context.on_change(key, means))


def _parse_drag(event: Any) -> dict[str, int]:  # noqa: ANN401 - of a browser
    """Return the range that was dragged across, for all charts."""
    return (
        dict(zip(("from_us", "to_us"), display_range.parse_drag(*event.dragged), strict=True)) if event.dragged else {}
    )
