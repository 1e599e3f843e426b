"""Charts over time as SVG, drawn on the server: the same for a page and for a report without script.

Colours are names of the document's own styles, so that one picture is light and dark. Elements are made as a tree, so
that no name of anybody's can be markup. What lies in the plane of time is in a group of its own, which a page makes as
wide as there is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree as ET

from hopwatch.dashboards.charts import axes
from hopwatch.dashboards.charts.axes import Axis
from hopwatch.dashboards.views.series import ChartPoint, HeatCell, MarkerLine, OutlierMarker, ShadedBand, StackPiece
from hopwatch.monitor.texts import time_spans

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 230, 96, 12, 34, 28
ROW_HEIGHT: Final = 22
LEGEND_X: Final = 140
"""Start of the legend, right of the unit."""
LETTER_PX: Final = 7.2
"""Largest width of a small letter; a capital one is a third wider."""
MAX_NAME_CHARS: Final = 14
ROW_NAME_PX: Final = LEFT
"""Width for the name of a row; a name is a little narrower than it is computed."""
LEGEND_KEY_PX: Final = 44
"""Width of a name's line sample in the legend with the gap to the next."""
STYLES: Final = """
.hw-picture text {fill: var(--hw-text); font-size: 12px; font-variant-numeric: tabular-nums;}
.hw-plane * {vector-effect: non-scaling-stroke;}
"""
_LINE_STYLES: Final = {
    "p50": ("--hw-s4", "1.6", "2 3"),
    "p95": ("--hw-s0", "2", ""),
    "p99": ("--hw-s1", "1.6", "6 3"),
    "expected": ("--hw-text", "1.8", "5 3"),
    "arrived": ("--hw-s0", "1.4", ""),
    "earlier": ("--hw-muted", "1.4", "1 3"),
}
_BAND_COLOURS: Final = {"UNKNOWN": "--hw-unknown", "SILENT": "--hw-silent", "not final": "--hw-pending"}
_STATUS_COLOURS: Final = _BAND_COLOURS | dict.fromkeys(("OPEN", "PROVISIONAL"), "--hw-pending")


@dataclass
class TimeChart:
    """A chart that is being drawn: of a range of time, with a title and what it shows in words."""

    title: str
    description: str
    from_us: int
    to_us: int
    step_us: int
    height_px: int = HEIGHT
    zone: tzinfo = UTC
    root: ET.Element = field(init=False)
    plane: ET.Element = field(init=False)
    step_tooltips: dict[int, str] = field(default_factory=dict)
    """Tooltips of steps, by the step's start."""
    cell_tooltips: dict[tuple[str, int], str] = field(default_factory=dict)
    """Tooltips of cells, by row and start."""
    time_axis: Axis = field(init=False)

    def __post_init__(self) -> None:
        """Begin with title, description and the axis of time."""
        said = {"viewBox": f"0 0 {WIDTH} {self.height_px}", "role": "img", "class": "hw-picture"}
        span = {"data-from": f"{self.from_us // 1_000}", "data-ms": f"{(self.to_us - self.from_us) // 1_000}"}
        self.root = ET.Element("svg", said | span)
        ET.SubElement(self.root, "title").text = self.title
        ET.SubElement(self.root, "desc").text = self.description
        self.plane = ET.SubElement(self.root, "g", {"class": "hw-plane"})
        self.time_axis = Axis(self.from_us, self.to_us, LEFT, WIDTH - RIGHT)
        length_us = self.to_us - self.from_us
        for at_us in axes.build_time_ticks(self.from_us, self.to_us, self.zone):
            x = self.time_axis.position(at_us)
            at = self._add_moment_group(x)
            _add_line(at, (x, self.height_px - BOTTOM), (x, self.height_px - BOTTOM + 4), "--hw-line")
            # A label in the middle of its moment, and inside of the picture.
            anchor = "end" if x > WIDTH - RIGHT - 20 else "middle"
            _add_text(
                at, (min(x, WIDTH - 2), self.height_px - 9), axes.format_tick(at_us, length_us, self.zone), anchor
            )
        self.draw_text(0, self.height_px - 9, "UTC" if self.zone is UTC else "local time")

    def to_svg(self) -> str:
        """Return it as it stands in HTML."""
        return ET.tostring(self.root, encoding="unicode", method="html")

    def to_figure(self) -> str:
        """Return it as a figure of HTML, under its title; a browser tells its steps and cells without a script."""
        rows = tuple(dict.fromkeys(row for row, _ in self.cell_tooltips))
        for start_us, when in self.step_tooltips.items():
            left, right = self.time_axis.position(start_us), self.time_axis.position(start_us + self.step_us)
            if not rows:
                self.draw_rect((left, TOP, right - left, self.height_px - TOP - BOTTOM), "fill:transparent", when)
            for place, row in enumerate(rows):
                told = f"{when}\n{row}: {self.cell_tooltips.get((row, start_us), '')}"
                self.draw_rect((left, TOP + place * ROW_HEIGHT, right - left, ROW_HEIGHT), "fill:transparent", told)
        figure = ET.Element("figure")
        ET.SubElement(figure, "figcaption").text = self.title
        figure.append(self.root)
        return ET.tostring(figure, encoding="unicode", method="html")

    def draw_text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Write words beside the plane of time."""
        _add_text(self.root, (x, y), words, anchor)

    def draw_rect(self, place: tuple[float, float, float, float], style: str, told: str = "") -> None:
        """Draw a rectangle in the plot area: left, top, width, height; and its tooltip."""
        _with_title(_add_rect(self.plane, place), told).set("style", style)

    def draw_path(self, points: Sequence[tuple[float, float]], style: str, *, is_closed: bool = False) -> None:
        """Draw a line through points of the plane."""
        _add_path(self.plane, points, style, is_closed=is_closed)

    def draw_mark(self, x: float, y: float, told: str) -> None:
        """Draw a diamond over the plot area, and its tooltip."""
        around = [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)]
        style = "fill:var(--hw-lossy);stroke:var(--hw-ground)"
        _with_title(_add_path(self._add_moment_group(x), around, style, is_closed=True), told)

    def draw_marker_lines(self, markers: Sequence[MarkerLine]) -> None:
        """Draw an upright line with a flag at each moment that was marked, and its tooltip."""
        for one in markers:
            x = self.time_axis.position(one.at_us)
            at = self._add_moment_group(x)
            style = "stroke:var(--hw-text);stroke-dasharray:1 3;fill:var(--hw-text)"
            foot = self.height_px - BOTTOM
            flag = [(x, foot), (x, TOP - 8), (x + 8, TOP - 4), (x, TOP)]
            _with_title(_add_path(at, flag, style), one.text)

    def add_tooltip(self, start_us: int, line: str) -> None:
        """Add a line to the tooltip of a step."""
        self.step_tooltips[start_us] = (
            f"{self.step_tooltips[start_us]}\n{line}" if start_us in self.step_tooltips else line
        )

    def _add_moment_group(self, x: float) -> ET.Element:
        """Return a group for what is at a moment, and keeps its form when the plane is made wider."""
        return ET.SubElement(self.root, "g", {"class": "hw-moment", "data-x": _format_px(x)})

    def draw_value_axis(self, low: float, high: float, unit: str) -> Axis:
        """Draw an axis of values with its unit, and return it."""
        round_ones = axes.build_value_ticks(low, high)
        axis = Axis(round_ones[0], round_ones[-1], self.height_px - BOTTOM, TOP)
        for value in round_ones:
            _add_line(self.plane, (LEFT, axis.position(value)), (WIDTH - RIGHT, axis.position(value)), "--hw-line")
            self.draw_text(LEFT - 8, axis.position(value) + 4, f"{value:,.10g}", "end")
        self.draw_text(0, TOP - 16, unit)
        return axis

    def draw_duration_axis(self, low_ms: float, high_ms: float, what: str) -> Axis:
        """Draw an axis of spans of time, in the unit that suits the longest of them, and return it in ms."""
        unit, size_us = time_spans.choose_unit(max(abs(low_ms), abs(high_ms)) * 1e3)
        size_ms = size_us / 1e3
        axis = self.draw_value_axis(low_ms / size_ms, high_ms / size_ms, f"{what}, {unit}")
        return replace(axis, low=axis.low * size_ms, high=axis.high * size_ms)

    def draw_bands(self, bands: Sequence[ShadedBand]) -> None:
        """Shade what is not final or not known."""
        for band in bands:
            left, right = self.time_axis.position(band.start_us), self.time_axis.position(band.end_us)
            style = f"fill:var({_BAND_COLOURS[band.word]});fill-opacity:.16"
            self.draw_rect((left, TOP, right - left, self.height_px - TOP - BOTTOM), style, band.word)

    def draw_legend(self, names: Sequence[tuple[str, str, str]]) -> None:
        """Write names beside pieces of their lines: name, colour, dashes."""
        x = float(LEGEND_X)
        room = (WIDTH - RIGHT - LEGEND_X) / max(1, len(names)) - LEGEND_KEY_PX
        most = max(4, min(2 * MAX_NAME_CHARS, int(room / LETTER_PX)))
        for name, colour, dashes in names:
            shown = _shorten(name, most)
            style = f"stroke:var({colour});stroke-width:3;stroke-dasharray:{dashes or 'none'};fill:none"
            wide = LEGEND_KEY_PX + _measure_name_px(shown)
            # A page that is narrow puts it on a line of its own.
            key = ET.SubElement(
                self.root, "g", {"class": "hw-key", "data-x": _format_px(x), "data-wide": _format_px(wide)}
            )
            _add_path(key, [(x, TOP - 20), (x + 20, TOP - 20)], style)
            _add_text(key, (x + 26, TOP - 16), shown, "start")
            x += wide


def draw_arrivals(
    picture: TimeChart,
    points: Sequence[ChartPoint],
    bands: Sequence[ShadedBand],
    step: str,
    earlier: Sequence[ChartPoint] = (),
) -> TimeChart:
    """Return what should have arrived as a dashed line over the area of what did; ``earlier`` is a faint line."""
    most = max((point.value for point in (*points, *earlier)), default=1) or 1
    axis = picture.draw_value_axis(0, most, f"messages a {step}")
    picture.draw_bands(bands)
    arrived = [point for point in points if point.line == "arrived"]
    for run in _split_runs(picture, arrived):
        low, through = axis.position(0), [(x, axis.position(point.value)) for x, point in run]
        picture.draw_path(
            [(through[0][0], low), *through, (through[-1][0], low)], "fill:var(--hw-s0);fill-opacity:.2", is_closed=True
        )
    for line in ("arrived", "expected"):
        _draw_line(picture, axis, [point for point in points if point.line == line], line)
    _draw_line(picture, axis, earlier, "earlier")
    _add_tooltips(picture, [(point, point.line) for point in (*points, *earlier)])
    names = [(name, _LINE_STYLES[name][0], _LINE_STYLES[name][2]) for name in ("expected", "arrived")]
    picture.draw_legend([*names, *_name_earlier(earlier)])
    return picture


def draw_lags(
    picture: TimeChart,
    points: Sequence[ChartPoint],
    found: Sequence[OutlierMarker],
    bands: Sequence[ShadedBand],
    earlier: Sequence[ChartPoint] = (),
) -> TimeChart:
    """Return a line a percentile of one side's lag, outliers as diamonds; ``earlier`` is a faint line."""
    values = [point.value for point in (*points, *earlier)] + [one.value for one in found]
    axis = picture.draw_duration_axis(min(0, *values), max(values) or 1, points[0].line)
    picture.draw_bands(bands)
    parts = tuple(dict.fromkeys(point.part for point in points))
    for part in parts:
        _draw_line(picture, axis, [point for point in points if point.part == part], part)
    _draw_line(picture, axis, earlier, "earlier")
    _add_tooltips(picture, [(point, point.part) for point in points] + [(point, point.line) for point in earlier])
    for one in found:
        at = picture.time_axis.position(one.start_us + picture.step_us / 2), axis.position(one.value)
        picture.draw_mark(*at, one.text)
    names = [(part, _LINE_STYLES[part][0], _LINE_STYLES[part][2]) for part in parts]
    names += _name_earlier(earlier)
    picture.draw_legend([*names, ("outlier, a diamond", "--hw-lossy", "")] if found else names)
    return picture


def draw_durations(
    picture: TimeChart, pieces: Sequence[StackPiece], nodes: Sequence[str], bands: Sequence[ShadedBand]
) -> TimeChart:
    """Return the process duration p95 of the nodes, one on top of the other."""
    axis = picture.draw_duration_axis(0, max((piece.high for piece in pieces), default=1), "p95")
    picture.draw_bands(bands)
    shapes: dict[str, list[str]] = defaultdict(list)
    for piece in pieces:
        left, right = (
            picture.time_axis.position(piece.start_us),
            picture.time_axis.position(piece.start_us + picture.step_us),
        )
        top, low = axis.position(piece.high), axis.position(piece.low)
        shapes[piece.line].append(_format_box((left, top, right - left, low - top)))
    for node, boxes in shapes.items():
        _add_shape(picture.plane, boxes, f"fill:var(--hw-s{nodes.index(node)})")
    _add_tooltips(picture, [(piece, piece.line) for piece in pieces])
    picture.draw_legend([(node, f"--hw-s{place}", "") for place, node in enumerate(nodes)])
    return picture


def draw_heat(picture: TimeChart, cells: Sequence[HeatCell], rows: Sequence[str], unit: str) -> TimeChart:
    """Return a row end to end and one a node, darker where the value is higher; what is not known has a frame."""
    worst = max((cell for cell in cells if (cell.value or 0) > 0), key=lambda cell: cell.value or 0, default=None)
    most = (worst.value if worst else None) or 1.0
    picture.draw_text(0, TOP - 16, unit)
    for place, row in enumerate(rows):
        picture.draw_text(LEFT - 8, TOP + place * ROW_HEIGHT + 15, _shorten_to_px(row, ROW_NAME_PX), "end")
    shapes: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        left, right = picture.time_axis.position(cell.start_us), picture.time_axis.position(cell.end_us)
        box = left, TOP + rows.index(cell.row) * ROW_HEIGHT + 1.0, max(right - left - 0.4, 0.5), ROW_HEIGHT - 2.0
        style = "fill:var(--hw-blank)"
        if (cell.value or 0) > 0:
            style = f"fill:var(--hw-lossy);fill-opacity:{0.15 + 0.85 * (cell.value or 0) / most:.2f}"
        elif cell.word in _STATUS_COLOURS:
            style = f"fill:var({_STATUS_COLOURS[cell.word]});fill-opacity:.16;stroke:var({_STATUS_COLOURS[cell.word]})"
        shapes[style].append(_format_box(box))
        if cell.row == rows[0]:
            picture.add_tooltip(cell.start_us, cell.moment)
        picture.cell_tooltips[cell.row, cell.start_us] = f"{cell.icon} {cell.word}, {cell.text}"
    # Cells that look alike are one shape: a browser takes long for two thousand of them.
    for style, boxes in shapes.items():
        _add_shape(picture.plane, boxes, style)
    names = [("UNKNOWN", "--hw-unknown", ""), ("not final", "--hw-pending", "")]
    picture.draw_legend([*names, (f"at most {worst.text}", "--hw-lossy", "")] if worst else names)
    return picture


def _shorten(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _measure_name_px(name: str) -> float:
    """Return how wide a name is at most."""
    return LETTER_PX * (len(name) + sum(map(str.isupper, name)) / 3 + sum(map("MWmw@%".count, name)) / 3)


def _shorten_to_px(name: str, most_px: float) -> str:
    """Return as much of a name as there is room for."""
    return next(
        shown
        for most in range(MAX_NAME_CHARS, 0, -1)
        if _measure_name_px(shown := _shorten(name, most)) <= most_px or most == 1
    )


def _add_text(into: ET.Element, place: tuple[float, float], words: str, anchor: str) -> None:
    ET.SubElement(
        into, "text", {"x": _format_px(place[0]), "y": _format_px(place[1]), "text-anchor": anchor}
    ).text = words


def _add_line(into: ET.Element, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    (x1, y1), (x2, y2) = start, end
    places = {"x1": _format_px(x1), "y1": _format_px(y1), "x2": _format_px(x2), "y2": _format_px(y2)}
    ET.SubElement(into, "line", places | {"style": f"stroke:var({colour})"})


def _add_path(
    into: ET.Element, points: Sequence[tuple[float, float]], style: str, *, is_closed: bool = False
) -> ET.Element:
    drawn = "M" + "L".join(f"{_format_px(x)},{_format_px(y)}" for x, y in points) + ("Z" if is_closed else "")
    return ET.SubElement(into, "path", {"d": drawn, "style": style})


def _add_rect(into: ET.Element, place: tuple[float, float, float, float]) -> ET.Element:
    names = ("x", "y", "width", "height")
    return ET.SubElement(into, "rect", {name: _format_px(value) for name, value in zip(names, place, strict=True)})


def _add_shape(into: ET.Element, boxes: Sequence[str], style: str) -> ET.Element:
    return ET.SubElement(into, "path", {"d": "".join(boxes), "style": style})


def _format_box(place: tuple[float, float, float, float]) -> str:
    x, y, wide, high = map(_format_px, place)
    return f"M{x} {y}h{wide}v{high}h-{wide}z"


def _add_tooltips(picture: TimeChart, told: Sequence[tuple[ChartPoint | StackPiece, str]]) -> None:
    """Let each step tell when it is, and what its points say under their names."""
    for one, name in told:
        if one.start_us not in picture.step_tooltips:
            picture.add_tooltip(one.start_us, one.moment)
        picture.add_tooltip(one.start_us, f"{name}: {one.text}")


def _with_title(drawn: ET.Element, words: str) -> ET.Element:
    if words:
        ET.SubElement(drawn, "title").text = words
    return drawn


def _name_earlier(earlier: Sequence[ChartPoint]) -> list[tuple[str, str, str]]:
    """Return the line of an earlier range as the legend has it, if there is one."""
    colour, _, dashes = _LINE_STYLES["earlier"]
    return [(earlier[0].line, colour, dashes)] if earlier else []


def _draw_line(picture: TimeChart, axis: Axis, points: Sequence[ChartPoint], line: str) -> None:
    colour, wide, dashes = _LINE_STYLES[line]
    style = f"fill:none;stroke:var({colour});stroke-width:{wide};stroke-dasharray:{dashes or 'none'}"
    for run in _split_runs(picture, points):
        places = [(x, axis.position(point.value)) for x, point in run]
        # One point is a short line, so that it is seen.
        picture.draw_path(
            places if len(places) > 1 else [(places[0][0] - 2, places[0][1]), (places[0][0] + 2, places[0][1])], style
        )


def _split_runs(picture: TimeChart, points: Sequence[ChartPoint]) -> list[list[tuple[float, ChartPoint]]]:
    """Return points with where they lie, in runs without a gap: of what is not known there is no line."""
    if not points:
        return []
    placed = [(picture.time_axis.position(point.start_us + picture.step_us / 2), point) for point in points]
    runs = [[placed[0]]]
    for (_, before), one in pairwise(placed):
        if one[1].start_us - before.start_us > picture.step_us:
            runs.append([])
        runs[-1].append(one)
    return runs


def _format_px(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
