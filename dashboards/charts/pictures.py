"""Charts over time, in SVG: drawn here, the same for a page and for a report that has no script and no network.

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
from hopwatch.dashboards.views.series import Band, Cell, Outlier, Piece, Point
from hopwatch.monitor.texts import time_spans

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 960, 230, 96, 12, 34, 28
ROW: Final = 22
LEGEND: Final = 140
"""Where the legend begins, right of the unit."""
LETTER_PX: Final = 7.2
"""How wide a small letter is at most; a capital one is a third wider."""
MOST_NAME: Final = 14
NAME_PX: Final = LEFT
"""What a name at a row may take; it is a little less wide than is reckoned."""
KEY: Final = 44
"""What the piece of line of a name in the legend takes, and what is between two of them."""
STYLES: Final = """
.hw-picture text {fill: var(--hw-text); font-size: 12px; font-variant-numeric: tabular-nums;}
.hw-plane * {vector-effect: non-scaling-stroke;}
"""
_LINES: Final = {
    "p50": ("--hw-s4", "1.6", "2 3"),
    "p95": ("--hw-s0", "2", ""),
    "p99": ("--hw-s1", "1.6", "6 3"),
    "expected": ("--hw-text", "1.8", "5 3"),
    "arrived": ("--hw-s0", "1.4", ""),
}
_BANDS: Final = {"UNKNOWN": "--hw-unknown", "SILENT": "--hw-silent", "not final": "--hw-pending"}
_WORDS: Final = _BANDS | dict.fromkeys(("OPEN", "PROVISIONAL"), "--hw-pending")


@dataclass
class Picture:
    """A chart that is being drawn: of a range of time, with a title and what it shows in words."""

    title: str
    said: str
    from_us: int
    to_us: int
    step_us: int
    high: int = HIGH
    zone: tzinfo = UTC
    root: ET.Element = field(init=False)
    plane: ET.Element = field(init=False)
    steps: dict[int, str] = field(default_factory=dict)
    """What a page tells of a step that somebody points at, by its start."""
    cells: dict[tuple[str, int], str] = field(default_factory=dict)
    """What it tells of a cell, by its row and start."""
    time: Axis = field(init=False)

    def __post_init__(self) -> None:
        """Begin with title, description and the axis of time."""
        said = {"viewBox": f"0 0 {WIDE} {self.high}", "role": "img", "class": "hw-picture"}
        span = {"data-from": f"{self.from_us // 1_000}", "data-ms": f"{(self.to_us - self.from_us) // 1_000}"}
        self.root = ET.Element("svg", said | span)
        ET.SubElement(self.root, "title").text = self.title
        ET.SubElement(self.root, "desc").text = self.said
        self.plane = ET.SubElement(self.root, "g", {"class": "hw-plane"})
        self.time = Axis(self.from_us, self.to_us, LEFT, WIDE - RIGHT)
        length_us = self.to_us - self.from_us
        for at_us in axes.moments(self.from_us, self.to_us, self.zone):
            x = self.time.at(at_us)
            at = self._moment(x)
            _line(at, (x, self.high - BOTTOM), (x, self.high - BOTTOM + 4), "--hw-line")
            # A label in the middle of its moment, and inside of the picture.
            anchor = "end" if x > WIDE - RIGHT - 20 else "middle"
            _text(at, (min(x, WIDE - 2), self.high - 9), axes.clock(at_us, length_us, self.zone), anchor)
        self.text(0, self.high - 9, "UTC" if self.zone is UTC else "local time")

    def svg(self) -> str:
        """Return it as it stands in HTML."""
        return ET.tostring(self.root, encoding="unicode", method="html")

    def figure(self) -> str:
        """Return it as a figure of HTML, under its title; a browser tells its steps and cells without a script."""
        rows = tuple(dict.fromkeys(row for row, _ in self.cells))
        for start_us, when in self.steps.items():
            left, right = self.time.at(start_us), self.time.at(start_us + self.step_us)
            if not rows:
                self.rect((left, TOP, right - left, self.high - TOP - BOTTOM), "fill:transparent", when)
            for place, row in enumerate(rows):
                told = f"{when}\n{row}: {self.cells.get((row, start_us), '')}"
                self.rect((left, TOP + place * ROW, right - left, ROW), "fill:transparent", told)
        figure = ET.Element("figure")
        ET.SubElement(figure, "figcaption").text = self.title
        figure.append(self.root)
        return ET.tostring(figure, encoding="unicode", method="html")

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Write words beside the plane of time."""
        _text(self.root, (x, y), words, anchor)

    def rect(self, place: tuple[float, float, float, float], style: str, told: str = "") -> None:
        """Draw a rectangle in the plane: left, top, width, height; and what is told of it."""
        _told(_rect(self.plane, place), told).set("style", style)

    def path(self, points: Sequence[tuple[float, float]], style: str, *, is_closed: bool = False) -> None:
        """Draw a line through points of the plane."""
        _path(self.plane, points, style, is_closed=is_closed)

    def mark(self, x: float, y: float, told: str) -> None:
        """Draw a diamond over the plane, and what is told of it."""
        around = [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)]
        style = "fill:var(--hw-lossy);stroke:var(--hw-ground)"
        _told(_path(self._moment(x), around, style, is_closed=True), told)

    def tell(self, start_us: int, line: str) -> None:
        """Let a step tell one more line, wherever one points at it."""
        self.steps[start_us] = f"{self.steps[start_us]}\n{line}" if start_us in self.steps else line

    def _moment(self, x: float) -> ET.Element:
        """Return a group for what is at a moment, and keeps its form when the plane is made wider."""
        return ET.SubElement(self.root, "g", {"class": "hw-moment", "data-x": _px(x)})

    def values(self, low: float, high: float, unit: str) -> Axis:
        """Draw an axis of values with its unit, and return it."""
        round_ones = axes.values(low, high)
        axis = Axis(round_ones[0], round_ones[-1], self.high - BOTTOM, TOP)
        for value in round_ones:
            _line(self.plane, (LEFT, axis.at(value)), (WIDE - RIGHT, axis.at(value)), "--hw-line")
            self.text(LEFT - 8, axis.at(value) + 4, f"{value:,.10g}", "end")
        self.text(0, TOP - 16, unit)
        return axis

    def spans(self, low_ms: float, high_ms: float, what: str) -> Axis:
        """Draw an axis of spans of time, in the unit that suits the longest of them, and return it in ms."""
        unit, size_us = time_spans.choose_unit(max(abs(low_ms), abs(high_ms)) * 1e3)
        size_ms = size_us / 1e3
        axis = self.values(low_ms / size_ms, high_ms / size_ms, f"{what}, {unit}")
        return replace(axis, low=axis.low * size_ms, high=axis.high * size_ms)

    def bands(self, bands: Sequence[Band]) -> None:
        """Shade what is not final or not known."""
        for band in bands:
            left, right = self.time.at(band.start_us), self.time.at(band.end_us)
            style = f"fill:var({_BANDS[band.word]});fill-opacity:.16"
            self.rect((left, TOP, right - left, self.high - TOP - BOTTOM), style, band.word)

    def legend(self, names: Sequence[tuple[str, str, str]]) -> None:
        """Write names beside pieces of their lines: name, colour, dashes."""
        x = float(LEGEND)
        room = (WIDE - RIGHT - LEGEND) / max(1, len(names)) - KEY
        most = max(4, min(2 * MOST_NAME, int(room / LETTER_PX)))
        for name, colour, dashes in names:
            shown = _cut(name, most)
            style = f"stroke:var({colour});stroke-width:3;stroke-dasharray:{dashes or 'none'};fill:none"
            wide = KEY + _wide_px(shown)
            # A page that is narrow puts it on a line of its own.
            key = ET.SubElement(self.root, "g", {"class": "hw-key", "data-x": _px(x), "data-wide": _px(wide)})
            _path(key, [(x, TOP - 20), (x + 20, TOP - 20)], style)
            _text(key, (x + 26, TOP - 16), shown, "start")
            x += wide


def arrivals(picture: Picture, points: Sequence[Point], bands: Sequence[Band], step: str) -> Picture:
    """Return what should have arrived as a dashed line over the area of what did."""
    axis = picture.values(0, max((point.value for point in points), default=1) or 1, f"messages a {step}")
    picture.bands(bands)
    arrived = [point for point in points if point.line == "arrived"]
    for run in _runs(picture, arrived):
        low, through = axis.at(0), [(x, axis.at(point.value)) for x, point in run]
        picture.path(
            [(through[0][0], low), *through, (through[-1][0], low)], "fill:var(--hw-s0);fill-opacity:.2", is_closed=True
        )
    for line in ("arrived", "expected"):
        _through(picture, axis, [point for point in points if point.line == line], line)
    _tell(picture, [(point, point.line) for point in points])
    picture.legend([(name, _LINES[name][0], _LINES[name][2]) for name in ("expected", "arrived")])
    return picture


def lags(picture: Picture, points: Sequence[Point], found: Sequence[Outlier], bands: Sequence[Band]) -> Picture:
    """Return a line a percentile of one side's lag, outliers as diamonds."""
    values = [point.value for point in points] + [one.value for one in found]
    axis = picture.spans(min(0, *values), max(values) or 1, points[0].line)
    picture.bands(bands)
    parts = tuple(dict.fromkeys(point.part for point in points))
    for part in parts:
        _through(picture, axis, [point for point in points if point.part == part], part)
    _tell(picture, [(point, point.part) for point in points])
    for one in found:
        at = picture.time.at(one.start_us + picture.step_us / 2), axis.at(one.value)
        picture.mark(*at, one.said)
    names = [(part, _LINES[part][0], _LINES[part][2]) for part in parts]
    picture.legend([*names, ("outlier, a diamond", "--hw-lossy", "")] if found else names)
    return picture


def durations(picture: Picture, pieces: Sequence[Piece], nodes: Sequence[str], bands: Sequence[Band]) -> Picture:
    """Return the process duration p95 of the nodes, one on top of the other."""
    axis = picture.spans(0, max((piece.high for piece in pieces), default=1), "p95")
    picture.bands(bands)
    shapes: dict[str, list[str]] = defaultdict(list)
    for piece in pieces:
        left, right = picture.time.at(piece.start_us), picture.time.at(piece.start_us + picture.step_us)
        top, low = axis.at(piece.high), axis.at(piece.low)
        shapes[piece.line].append(_box((left, top, right - left, low - top)))
    for node, boxes in shapes.items():
        _shape(picture.plane, boxes, f"fill:var(--hw-s{nodes.index(node)})")
    _tell(picture, [(piece, piece.line) for piece in pieces])
    picture.legend([(node, f"--hw-s{place}", "") for place, node in enumerate(nodes)])
    return picture


def heat(picture: Picture, cells: Sequence[Cell], rows: Sequence[str], unit: str) -> Picture:
    """Return a row end to end and one a node, darker where the value is higher; what is not known has a frame."""
    worst = max((cell for cell in cells if (cell.value or 0) > 0), key=lambda cell: cell.value or 0, default=None)
    most = (worst.value if worst else None) or 1.0
    picture.text(0, TOP - 16, unit)
    for place, row in enumerate(rows):
        picture.text(LEFT - 8, TOP + place * ROW + 15, _cut_to_px(row, NAME_PX), "end")
    shapes: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        left, right = picture.time.at(cell.start_us), picture.time.at(cell.end_us)
        box = left, TOP + rows.index(cell.row) * ROW + 1.0, max(right - left - 0.4, 0.5), ROW - 2.0
        style = "fill:var(--hw-blank)"
        if (cell.value or 0) > 0:
            style = f"fill:var(--hw-lossy);fill-opacity:{0.15 + 0.85 * (cell.value or 0) / most:.2f}"
        elif cell.word in _WORDS:
            style = f"fill:var({_WORDS[cell.word]});fill-opacity:.16;stroke:var({_WORDS[cell.word]})"
        shapes[style].append(_box(box))
        if cell.row == rows[0]:
            picture.tell(cell.start_us, cell.when)
        picture.cells[cell.row, cell.start_us] = f"{cell.icon} {cell.word}, {cell.said}"
    # Cells that look alike are one shape: a browser takes long for two thousand of them.
    for style, boxes in shapes.items():
        _shape(picture.plane, boxes, style)
    names = [("UNKNOWN", "--hw-unknown", ""), ("not final", "--hw-pending", "")]
    picture.legend([*names, (f"at most {worst.said}", "--hw-lossy", "")] if worst else names)
    return picture


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _wide_px(name: str) -> float:
    """Return how wide a name is at most."""
    return LETTER_PX * (len(name) + sum(map(str.isupper, name)) / 3 + sum(map("MWmw@%".count, name)) / 3)


def _cut_to_px(name: str, most_px: float) -> str:
    """Return as much of a name as there is room for."""
    return next(
        shown for most in range(MOST_NAME, 0, -1) if _wide_px(shown := _cut(name, most)) <= most_px or most == 1
    )


def _text(into: ET.Element, place: tuple[float, float], words: str, anchor: str) -> None:
    ET.SubElement(into, "text", {"x": _px(place[0]), "y": _px(place[1]), "text-anchor": anchor}).text = words


def _line(into: ET.Element, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    (x1, y1), (x2, y2) = start, end
    places = {"x1": _px(x1), "y1": _px(y1), "x2": _px(x2), "y2": _px(y2)}
    ET.SubElement(into, "line", places | {"style": f"stroke:var({colour})"})


def _path(
    into: ET.Element, points: Sequence[tuple[float, float]], style: str, *, is_closed: bool = False
) -> ET.Element:
    drawn = "M" + "L".join(f"{_px(x)},{_px(y)}" for x, y in points) + ("Z" if is_closed else "")
    return ET.SubElement(into, "path", {"d": drawn, "style": style})


def _rect(into: ET.Element, place: tuple[float, float, float, float]) -> ET.Element:
    names = ("x", "y", "width", "height")
    return ET.SubElement(into, "rect", {name: _px(value) for name, value in zip(names, place, strict=True)})


def _shape(into: ET.Element, boxes: Sequence[str], style: str) -> ET.Element:
    return ET.SubElement(into, "path", {"d": "".join(boxes), "style": style})


def _box(place: tuple[float, float, float, float]) -> str:
    x, y, wide, high = map(_px, place)
    return f"M{x} {y}h{wide}v{high}h-{wide}z"


def _tell(picture: Picture, told: Sequence[tuple[Point | Piece, str]]) -> None:
    """Let each step tell when it is, and what its points say under their names."""
    for one, name in told:
        if one.start_us not in picture.steps:
            picture.tell(one.start_us, one.when)
        picture.tell(one.start_us, f"{name}: {one.said}")


def _told(drawn: ET.Element, words: str) -> ET.Element:
    if words:
        ET.SubElement(drawn, "title").text = words
    return drawn


def _through(picture: Picture, axis: Axis, points: Sequence[Point], line: str) -> None:
    colour, wide, dashes = _LINES[line]
    style = f"fill:none;stroke:var({colour});stroke-width:{wide};stroke-dasharray:{dashes or 'none'}"
    for run in _runs(picture, points):
        places = [(x, axis.at(point.value)) for x, point in run]
        # One point is a short line, so that it is seen.
        picture.path(
            places if len(places) > 1 else [(places[0][0] - 2, places[0][1]), (places[0][0] + 2, places[0][1])], style
        )


def _runs(picture: Picture, points: Sequence[Point]) -> list[list[tuple[float, Point]]]:
    """Return points with where they lie, in runs without a gap: of what is not known there is no line."""
    if not points:
        return []
    placed = [(picture.time.at(point.start_us + picture.step_us / 2), point) for point in points]
    runs = [[placed[0]]]
    for (_, before), one in pairwise(placed):
        if one[1].start_us - before.start_us > picture.step_us:
            runs.append([])
        runs[-1].append(one)
    return runs


def _px(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
