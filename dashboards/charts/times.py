"""Charts over time, for Altair: one axis of time for all, the same width of labels, a drag across chooses a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import altair as alt
import pandas as pd

from dashboards.views.colours import Palette
from dashboards.views.series import END_TO_END, PERCENTILES, Band, Cell, Outlier, Piece, Point
from dashboards.views.span import Span

DRAG: Final = "span"
"""The name of the selection of a range."""
CLICK: Final = "cell"
"""The name of the selection of a cell."""
LABELS_PX: Final = 84
ROW_PX: Final = 26
HIGH_PX: Final = 270
"""With its legend and axis."""
AROUND_PX: Final = 112
"""What legend and axis of the heat map take."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What all charts of a page share."""

    span: Span
    is_utc: bool
    palette: Palette
    bands: tuple[Band, ...]

    def moments(self) -> alt.X:
        """Return the axis of time."""
        scale: dict[str, Any] = {"type": "utc" if self.is_utc else "time", "nice": False}
        domain = [self.span.from_us / 1e3, self.span.to_us / 1e3]
        whose = "UTC" if self.is_utc else "local time"
        axis = alt.Axis(title=whose, grid=False, labelOverlap="greedy", labelFlush=True, tickCount=8, format=_FORMAT)
        return alt.X("at:T", scale=alt.Scale(domain=domain, **scale), axis=axis)


_FORMAT: Final[Any] = {"hours": "%H:%M", "minutes": "%H:%M", "date": "%b %d", "month": "%b %d"}


def lags(frame: Frame, points: Sequence[Point], found: Sequence[Outlier], side: str) -> alt.LayerChart:
    """Return one side's lag: a line a percentile, in ms, outliers marked."""
    palette = frame.palette
    of_side = [point for point in points if point.line == side]
    colours = dict(zip(PERCENTILES, (palette.series[4], palette.series[0], palette.series[1]), strict=True))
    drawn = [part for part in PERCENTILES if any(point.part == part for point in of_side)]
    scale = alt.Scale(domain=drawn, range=[colours[part] for part in drawn])
    percentiles = alt.Color("part:N", title=None, sort=drawn, scale=scale)
    base = alt.Chart(_frame_of(of_side, frame.span))
    lines = base.mark_line(strokeWidth=1.8, point=_dots(of_side)).encode(
        frame.moments(), _value(f"{side}, ms"), percentiles, tooltip=_tooltip("part", "percentile")
    )
    odd = [one for one in found if one.line == side]
    marks = (
        alt.Chart(_frame_of(odd, frame.span, ("start_us", "when", "line", "value", "said")))
        .mark_point(shape="diamond", size=110, filled=True, color=palette.lossy, stroke=palette.ground, strokeWidth=1.5)
        .encode(x="at:T", y="value:Q", tooltip=_tooltip("line", "side"))
    )
    return _layered(frame, lines, marks)


def arrivals(frame: Frame, points: Sequence[Point], unit: str) -> alt.LayerChart:
    """Return what should have arrived as a line, over the area of what did."""
    palette = frame.palette
    base = alt.Chart(_frame_of(points, frame.span)).encode(frame.moments())
    words = alt.Scale(domain=["expected", "arrived"], range=[palette.lossy, palette.series[0]])
    colour = alt.Color("line:N", title=None, scale=words)
    dots = _dots(points)
    area = base.transform_filter("datum.line == 'arrived'").mark_area(
        opacity=0.28, line={"strokeWidth": 1.2}, point=dots
    )
    line = base.transform_filter("datum.line == 'expected'").mark_line(strokeWidth=1.8, strokeDash=[5, 3], point=dots)
    value, told = _value(f"messages a {unit}", whole=True), _tooltip("line", "messages that were")
    return _layered(frame, area.encode(value, colour, tooltip=told), line.encode(value, colour, tooltip=told))


def durations(frame: Frame, pieces: Sequence[Piece], nodes: Sequence[str]) -> alt.LayerChart:
    """Return the process duration p95 of the nodes, one on top of the other, in ms."""
    table = _frame_of(pieces, frame.span, tuple(Piece.__dataclass_fields__))
    low = alt.Y("low:Q", title="process duration p95, ms", axis=_axis())
    colour = _by_node(frame.palette, nodes)
    rects = alt.Chart(table).mark_rect(stroke=frame.palette.ground, strokeWidth=0.5)
    told = _tooltip("line", "node")
    return _layered(frame, rects.encode(frame.moments(), alt.X2("end:T"), low, alt.Y2("high:Q"), colour, tooltip=told))


def heat(frame: Frame, cells: Sequence[Cell], nodes: Sequence[str], unit: str) -> alt.LayerChart:
    """Return a row end to end and one a node; what nobody knows has a frame and no colour of a value."""
    palette = frame.palette
    rows = [END_TO_END, *nodes]
    table = _frame_of(cells, frame.span, tuple(Cell.__dataclass_fields__))
    table["node"] = table["row"]
    row = alt.Y("row:N", sort=rows, title="node", scale=alt.Scale(domain=rows), axis=_names())
    told = [
        alt.Tooltip("when:N", title="from"),
        alt.Tooltip("row:N", title="node"),
        alt.Tooltip("word:N", title="seen as"),
        alt.Tooltip("said:N", title="figure"),
    ]
    base = alt.Chart(table).encode(frame.moments(), alt.X2("end:T"), row, tooltip=told)
    click = alt.selection_point(name=CLICK, fields=["start_us", "row"], on="click", empty=False)
    known = base.transform_filter("isValid(datum.value)").mark_rect(cursor="pointer", stroke=palette.ground)
    colour = alt.Color(
        "value:Q",
        title=unit,
        scale=alt.Scale(range=[palette.blank, *palette.heat], domainMin=0, interpolate="rgb"),
        legend=alt.Legend(gradientLength=120, orient="top", titleOrient="left", tickCount=3, format=",.3~f", offset=4),
    )
    blind = base.transform_filter("!isValid(datum.value)").mark_rect(
        cursor="pointer", filled=True, fillOpacity=0.16, strokeOpacity=0.9, strokeWidth=1
    )
    words = ["UNKNOWN", "SILENT", "not final", "OPEN", "PROVISIONAL", "IDLE", "CLEAN", "NO DATA", "LOSSY"]
    ranges = [palette.unknown, palette.silent, *[palette.pending] * 3, *[palette.blank] * 4]
    seen = alt.Scale(domain=words, range=ranges)
    frames = blind.encode(
        fill=alt.Fill("word:N", scale=seen, legend=None), stroke=alt.Stroke("word:N", scale=seen, legend=None)
    )
    layers = alt.layer(known.encode(colour), frames).add_params(click).resolve_scale(color="independent")
    return _dressed(layers.properties(height=ROW_PX * len(rows) + AROUND_PX), palette)


def _layered(frame: Frame, *layers: alt.Chart) -> alt.LayerChart:
    """Return the layers over the bands of what is not final or not known, with a drag across that chooses a range."""
    palette = frame.palette
    bands = pd.DataFrame(
        [{"at": _moment(one.start_us), "end": _moment(one.end_us), "word": one.word} for one in frame.bands],
        columns=["at", "end", "word"],
    ).astype({"at": "datetime64[ms, UTC]", "end": "datetime64[ms, UTC]"})
    colours = [palette.unknown, palette.silent, palette.pending]
    scale = alt.Scale(domain=["UNKNOWN", "SILENT", "not final"], range=colours)
    fill = alt.Fill("word:N", scale=scale, title=None, legend=None)
    rects = alt.Chart(bands).mark_rect(opacity=0.14)
    ground = rects.encode(frame.moments(), alt.X2("end:T"), fill=fill, tooltip="word:N")
    drag = alt.selection_interval(name=DRAG, encodings=["x"])
    first, *others = layers
    chart = alt.layer(ground, first.add_params(drag), *others).properties(height=HIGH_PX)
    return _dressed(chart, palette)


def _dressed(chart: alt.LayerChart | alt.FacetChart, palette: Palette) -> alt.LayerChart:
    # Streamlit's own colours of labels are too weak to be read by everybody.
    words: dict[str, Any] = {"labelColor": palette.muted, "titleColor": palette.muted}
    symbols: dict[str, Any] = {"symbolStrokeWidth": 2.5, "symbolOpacity": 1}
    dressed: Any = chart.configure_legend(
        orient="top", direction="horizontal", labelLimit=240, titlePadding=6, **symbols, **words
    )
    return cast("alt.LayerChart", dressed.configure_axis(**words).configure_view(strokeWidth=0))


def _axis(*, grid: bool = True, whole: bool = False) -> alt.Axis:
    # Labels of the same width, so that the same moment is at the same place in all charts.
    wide: dict[str, Any] = {"minExtent": LABELS_PX, "maxExtent": LABELS_PX, "labelLimit": LABELS_PX - 8}
    return alt.Axis(grid=grid, gridOpacity=0.5, tickCount=4, format=",d" if whole else ",~f", **wide)


def _names() -> alt.Axis:
    wide: dict[str, Any] = {"minExtent": LABELS_PX, "maxExtent": LABELS_PX, "labelLimit": LABELS_PX - 8}
    return alt.Axis(grid=False, ticks=False, domain=False, labelOverlap=False, labelFlush=False, **wide)


def _value(title: str, *, whole: bool = False) -> alt.Y:
    return alt.Y("value:Q", title=title, axis=_axis(whole=whole))


def _by_node(palette: Palette, nodes: Sequence[str]) -> alt.Color:
    return alt.Color("line:N", title=None, sort=list(nodes), scale=_scale(palette, nodes))


def _scale(palette: Palette, nodes: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(nodes), range=list(palette.series[: len(nodes)]))


def _tooltip(line: str, title: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("when:N", title="from"),
        alt.Tooltip(f"{line}:N", title=title),
        alt.Tooltip("said:N", title="figure"),
    ]


def _dots(points: Sequence[Point]) -> Any:  # noqa: ANN401 - what Altair takes
    """Return dots where there are so few points that a line alone would hide them."""
    return {"size": 36} if len({point.start_us for point in points}) <= _FEW else False


_FEW: Final = 3
_POINT: Final = tuple(Point.__dataclass_fields__)


def _frame_of(
    rows: Sequence[Point] | Sequence[Piece] | Sequence[Cell] | Sequence[Outlier],
    span: Span,
    columns: tuple[str, ...] = _POINT,
) -> pd.DataFrame:
    """Return rows as a table with the moments that they begin and end at."""
    table = pd.DataFrame([tuple(getattr(row, name) for name in columns) for row in rows], columns=list(columns))
    table["at"] = _moment(table["start_us"])
    table["end"] = _moment(table["start_us"] + span.step_us)
    return table


def _moment(at_us: Any) -> Any:  # noqa: ANN401 - one, or a column of them
    return pd.to_datetime(at_us, unit="us", utc=True)
