"""One stream of a report: what it was judged, its charts, and all its tables."""

from __future__ import annotations

from datetime import UTC

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pictures
from hopwatch.dashboards.charts.pictures import Picture
from hopwatch.dashboards.reading.reported import StreamReport
from hopwatch.dashboards.reading.told import Stretch
from hopwatch.dashboards.report import tables
from hopwatch.dashboards.views import described, judged, loss_table, pathway, series, span, texts
from hopwatch.dashboards.views.address import Measure


def of(told: StreamReport, place: int) -> str:
    """Return the section of the stream that is at this place of the report."""
    stretch, whole = told.stretch, told.stretch.whole
    first = ' class="hw-first"' if not place else ""
    parts = [f'<h2 id="stream-{place}"{first}>{markup.text(stretch.stream)}</h2>']
    if not stretch.steps:
        return parts[0] + markup.elements("p", ["Nothing of this stream was read in the range."], "hw-note")
    if whole is None:
        parts += markup.elements("p", ["No window of the range is final yet."], "hw-note")
    else:
        cells = "".join(markup.figure(name, figure) for name, figure in loss_table.figures(whole))
        parts.append(f"<p>{markup.badge(judged.of(whole).mark)} {markup.text(_told(stretch))}</p>")
        parts.append(f'<div class="hw-figures">{cells}</div>')
        parts.append(_headed("Loss of each node, final windows", tables.nodes(whole, "Nodes over the range")))
        parts.append(markup.elements("p", [pathway.of(stretch.graph, whole).said], "hw-note"))
    parts.append(_charts(stretch))
    parts.append(_headed(f"Each {span.STEP_WORDS[stretch.step_us]}", tables.steps(stretch)))
    parts.append(_headed("Windows that are not well, node by node", tables.details(stretch)))
    parts.append(_headed("Missing messages, lost or not", tables.lost_ids(told)))
    parts.append(_headed("Outliers", tables.outliers(stretch.findings)))
    return f"<section>{''.join(parts)}</section>"


def _told(stretch: Stretch) -> str:
    first, last = (judged.start_us(stretch.steps[place]) for place in (0, -1))
    whole = stretch.whole
    counted = f"{whole.windows:,} final windows" if whole else ""
    return f"{texts.moment(first)} to {texts.moment(last + stretch.step_us)}, {counted}"


def _headed(title: str, told: str) -> str:
    return f"<h3>{markup.text(title)}</h3>{told}" if told else ""


def _charts(stretch: Stretch) -> str:
    step, bands = span.STEP_WORDS[stretch.step_us], series.bands(stretch)
    told = described.Told(UTC, step)
    points, cells = series.arrivals(stretch.steps, "", UTC), series.heat(stretch, Measure.LOSS, UTC)
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    left_out = len(stretch.graph.nodes) + 1 - len(rows)
    more = f", those that lost most; {left_out:,} more are not shown" if left_out else ""
    running = series.running(stretch)
    unfinished = f"; {running}" if running else ""
    high = pictures.TOP + pictures.ROW * len(rows) + pictures.BOTTOM
    drawn = [
        pictures.heat(
            _picture(stretch, f"Loss of each node over time{more}", told.heat(cells, "loss"), high), cells, rows, "loss"
        ),
        pictures.arrivals(
            _picture(
                stretch, f"Expected and arrived, end to end{unfinished}", told.arrivals(points, series.END_TO_END)
            ),
            points,
            bands,
            step,
        ),
    ]
    node = series.telling(stretch, stretch.whole)
    lags, found = series.lags(stretch, node, UTC), series.outliers(stretch, node, UTC)
    for side, _, _ in series.SIDES:
        of_side, odd = [one for one in lags if one.line == side], [one for one in found if one.line == side]
        if of_side:
            picture = _picture(stretch, f"{side.capitalize()} of {node}", told.lags(lags, found, side, node))
            drawn.append(pictures.lags(picture, of_side, odd, bands))
    nodes = (
        series.slowest(stretch.whole, span.thinned(len(stretch.steps), series.MOST_COLOURS)) if stretch.whole else ()
    )
    pieces = series.durations(stretch, nodes, UTC)
    if pieces:
        picture = _picture(stretch, "Process duration p95", told.durations(pieces))
        drawn.append(pictures.durations(picture, pieces, nodes, bands))
    return "".join(one.figure() for one in drawn)


def _picture(stretch: Stretch, title: str, said: str, high: int = pictures.HIGH) -> Picture:
    first, last = (judged.start_us(stretch.steps[place]) for place in (0, -1))
    return Picture(title, said, first, last + stretch.step_us, stretch.step_us, high)
