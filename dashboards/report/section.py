"""Section of one stream in a report: summary, charts and tables."""

from __future__ import annotations

from datetime import UTC

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import time_chart
from hopwatch.dashboards.charts.time_chart import TimeChart
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.queries.report import StreamReport
from hopwatch.dashboards.report import tables
from hopwatch.dashboards.views import alt_text, display_range, pathway, series
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.display import loss_table, step_marks, texts


def render_section(told: StreamReport, place: int) -> str:
    """Return the section of the stream that is at this place of the report."""
    stretch, whole = told.stream_range, told.stream_range.total
    first = ' class="hw-first"' if not place else ""
    parts = [f'<h2 id="stream-{place}"{first}>{markup.escape_html(stretch.stream)}</h2>']
    if not stretch.steps:
        return parts[0] + markup.elements("p", ["Nothing of this stream was read in the range."], "hw-note")
    if whole is None:
        parts += markup.elements("p", ["No window of the range is final yet."], "hw-note")
    else:
        cells = "".join(markup.figure(name, figure) for name, figure in loss_table.build_figures(whole))
        parts.append(
            f"<p>{markup.badge(step_marks.mark_step(whole).mark)} {markup.escape_html(_format_summary(stretch))}</p>"
        )
        if not stretch.has_digests:
            parts.append(markup.note(series.NO_LAG))
        parts.append(f'<div class="hw-figures">{cells}</div>')
        parts.append(
            _with_heading("Loss of each node, final windows", tables.render_nodes(whole, "Nodes over the range"))
        )
        parts.append(markup.elements("p", [pathway.build_drawing(stretch.graph, whole).description], "hw-note"))
    parts.append(_render_charts(stretch))
    parts.append(_with_heading(f"Each {display_range.STEP_WORDS[stretch.step_us]}", tables.render_steps(stretch)))
    parts.append(_with_heading("Windows that are not well, node by node", tables.render_details(stretch)))
    parts.append(_with_heading("Missing messages, lost or not", tables.render_lost_ids(told)))
    parts.append(_with_heading("Outliers", tables.render_outliers(stretch.findings)))
    return f"<section>{''.join(parts)}</section>"


def _format_summary(stretch: StreamRange) -> str:
    first, last = (step_marks.get_start_us(stretch.steps[place]) for place in (0, -1))
    whole = stretch.total
    counted = f"{whole.windows:,} final windows" if whole else ""
    return f"{texts.format_moment(first)} to {texts.format_moment(last + stretch.step_us)}, {counted}"


def _with_heading(title: str, told: str) -> str:
    return f"<h3>{markup.escape_html(title)}</h3>{told}" if told else ""


def _render_charts(stretch: StreamRange) -> str:
    step, bands = display_range.STEP_WORDS[stretch.step_us], series.build_bands(stretch)
    told = alt_text.AltTextWriter(UTC, step)
    points, cells = (
        series.build_arrival_points(stretch.steps, "", UTC),
        series.build_heat_cells(stretch, HeatMeasure.LOSS, UTC),
    )
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    left_out = len(stretch.nodes) + 1 - len(rows)
    more = f", those that lost most; {left_out:,} more are not shown" if left_out else ""
    running = series.format_running(stretch)
    unfinished = f"; {running}" if running else ""
    high = time_chart.TOP + time_chart.ROW_HEIGHT * len(rows) + time_chart.BOTTOM
    drawn = [
        time_chart.draw_heat(
            _build_time_chart(stretch, f"Loss of each node over time{more}", told.describe_heat(cells, "loss"), high),
            cells,
            rows,
            "loss",
        ),
        time_chart.draw_arrivals(
            _build_time_chart(
                stretch,
                f"Expected and arrived, end to end{unfinished}",
                told.describe_arrivals(points, series.END_TO_END),
            ),
            points,
            bands,
            step,
        ),
    ]
    node = series.select_lag_node(stretch, stretch.total)
    lags, found = series.build_lag_points(stretch, node, UTC), series.build_outlier_markers(stretch, node, UTC)
    for side, _, _ in series.SIDES:
        of_side, odd = [one for one in lags if one.line == side], [one for one in found if one.line == side]
        if of_side:
            picture = _build_time_chart(
                stretch, f"{side.capitalize()} of {node}", told.describe_lags(lags, found, side, node)
            )
            drawn.append(time_chart.draw_lags(picture, of_side, odd, bands))
    nodes = (
        series.select_slowest(stretch.total, display_range.limit_lines(len(stretch.steps), series.MAX_COLOURS))
        if stretch.total
        else ()
    )
    pieces = series.build_duration_pieces(stretch, nodes, UTC)
    if pieces:
        picture = _build_time_chart(stretch, "Process duration p95", told.describe_durations(pieces))
        drawn.append(time_chart.draw_durations(picture, pieces, nodes, bands))
    return "".join(one.to_figure() for one in drawn)


def _build_time_chart(stretch: StreamRange, title: str, said: str, high: int = time_chart.HEIGHT) -> TimeChart:
    first, last = (step_marks.get_start_us(stretch.steps[place]) for place in (0, -1))
    return TimeChart(title, said, first, last + stretch.step_us, stretch.step_us, high)
