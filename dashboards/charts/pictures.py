"""Charts over time as figures of a document, in SVG: drawn here, so that it needs no script and no network.

Colours are names of the document's own styles, so that one picture is light and dark. Elements are made as a tree, so
that no name of anybody's can be markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree as ET

from dashboards.charts import axes
from dashboards.charts.axes import Axis
from dashboards.views.series import Band, Cell, Outlier, Piece, Point

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 960, 230, 96, 12, 34, 28
ROW: Final = 22
LEGEND: Final = 140
"""Where the legend begins, right of the unit."""
LETTER_PX: Final = 7.2
"""How wide a small letter is at most; a capital one is a third wider."""
MOST_NAME: Final = 14
_LINES: Final = {
    "p50": ("--hw-s4", "1.6", "2 3"),
    "p95": ("--hw-s0", "2", ""),
    "p99": ("--hw-s1", "1.6", "6 3"),
    "expected": ("--hw-lossy", "1.8", "5 3"),
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
    root: ET.Element = field(init=False)
    time: Axis = field(init=False)

    def __post_init__(self) -> None:
        """Begin with title, description and the axis of time."""
        box = f"0 0 {WIDE} {self.high}"
        self.root = ET.Element("svg", {"viewBox": box, "role": "img", "class": "hw-picture"})
        ET.SubElement(self.root, "title").text = self.title
        ET.SubElement(self.root, "desc").text = self.said
        self.time = Axis(self.from_us, self.to_us, LEFT, WIDE - RIGHT)
        length_us = self.to_us - self.from_us
        for at_us in axes.moments(self.from_us, self.to_us):
            x = self.time.at(at_us)
            self.line((x, self.high - BOTTOM), (x, self.high - BOTTOM + 4), "--hw-line")
            # A label in the middle of its moment, and inside of the picture.
            anchor = "end" if x > WIDE - RIGHT - 20 else "middle"
            self.text(min(x, WIDE - 2), self.high - 9, axes.clock(at_us, length_us), anchor)

    def markup(self) -> str:
        """Return it as a figure of HTML, under its title."""
        figure = ET.Element("figure")
        ET.SubElement(figure, "figcaption").text = self.title
        figure.append(self.root)
        return ET.tostring(figure, encoding="unicode", method="html")

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Write words."""
        ET.SubElement(self.root, "text", {"x": _px(x), "y": _px(y), "text-anchor": anchor}).text = words

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        """Draw a thin line."""
        (x1, y1), (x2, y2) = start, end
        places = {"x1": _px(x1), "y1": _px(y1), "x2": _px(x2), "y2": _px(y2)}
        ET.SubElement(self.root, "line", places | {"style": f"stroke:var({colour})"})

    def rect(self, place: tuple[float, float, float, float], style: str, told: str = "") -> None:
        """Draw a rectangle: left, top, width, height."""
        names = ("x", "y", "width", "height")
        made = ET.SubElement(self.root, "rect", {name: _px(value) for name, value in zip(names, place, strict=True)})
        made.set("style", style)
        if told:
            ET.SubElement(made, "title").text = told

    def path(self, points: Sequence[tuple[float, float]], style: str, *, is_closed: bool = False) -> None:
        """Draw a line through points."""
        drawn = "M" + "L".join(f"{_px(x)},{_px(y)}" for x, y in points) + ("Z" if is_closed else "")
        ET.SubElement(self.root, "path", {"d": drawn, "style": style})

    def values(self, low: float, high: float, unit: str) -> Axis:
        """Draw an axis of values with its unit, and return it."""
        round_ones = axes.values(low, high)
        axis = Axis(round_ones[0], round_ones[-1], self.high - BOTTOM, TOP)
        for value in round_ones:
            self.line((LEFT, axis.at(value)), (WIDE - RIGHT, axis.at(value)), "--hw-line")
            self.text(LEFT - 8, axis.at(value) + 4, f"{value:,.10g}", "end")
        self.text(0, TOP - 16, unit)
        return axis

    def bands(self, bands: Sequence[Band]) -> None:
        """Shade what is not final or not known."""
        for band in bands:
            left, right = self.time.at(band.start_us), self.time.at(band.end_us)
            style = f"fill:var({_BANDS[band.word]});fill-opacity:.16"
            self.rect((left, TOP, right - left, self.high - TOP - BOTTOM), style, band.word)

    def legend(self, names: Sequence[tuple[str, str, str]]) -> None:
        """Write names beside pieces of their lines: name, colour, dashes."""
        x = float(LEGEND)
        for name, colour, dashes in names:
            shown = name if len(name) <= 2 * MOST_NAME else f"{name[: 2 * MOST_NAME - 1]}…"
            style = f"stroke:var({colour});stroke-width:3;stroke-dasharray:{dashes or 'none'};fill:none"
            self.path([(x, TOP - 20), (x + 20, TOP - 20)], style)
            self.text(x + 26, TOP - 16, shown)
            x += 26 + LETTER_PX * (len(shown) + sum(map(str.isupper, shown)) / 3) + 18


def arrivals(picture: Picture, points: Sequence[Point], bands: Sequence[Band], step: str) -> str:
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
    picture.legend([(name, _LINES[name][0], _LINES[name][2]) for name in ("expected", "arrived")])
    return picture.markup()


def lags(picture: Picture, points: Sequence[Point], found: Sequence[Outlier], bands: Sequence[Band]) -> str:
    """Return a line a percentile in ms, outliers as diamonds."""
    values = [point.value for point in points] + [one.value for one in found]
    axis = picture.values(min(0, *values), max(values) or 1, "ms")
    picture.bands(bands)
    parts = tuple(dict.fromkeys(point.part for point in points))
    for part in parts:
        _through(picture, axis, [point for point in points if point.part == part], part)
    for one in found:
        x, y = picture.time.at(one.start_us + picture.step_us / 2), axis.at(one.value)
        picture.path(
            [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
            "fill:var(--hw-lossy);stroke:var(--hw-ground)",
            is_closed=True,
        )
    names = [(part, _LINES[part][0], _LINES[part][2]) for part in parts]
    picture.legend([*names, ("outlier, a diamond", "--hw-lossy", "")] if found else names)
    return picture.markup()


def durations(picture: Picture, pieces: Sequence[Piece], nodes: Sequence[str], bands: Sequence[Band]) -> str:
    """Return the process duration p95 of the nodes, one on top of the other."""
    axis = picture.values(0, max((piece.high for piece in pieces), default=1), "ms")
    picture.bands(bands)
    for piece in pieces:
        left, right = picture.time.at(piece.start_us), picture.time.at(piece.start_us + picture.step_us)
        top, low = axis.at(piece.high), axis.at(piece.low)
        style = f"fill:var(--hw-s{nodes.index(piece.line)})"
        picture.rect((left, top, right - left, low - top), style, f"{piece.when}, {piece.line}: {piece.said}")
    picture.legend([(node, f"--hw-s{place}", "") for place, node in enumerate(nodes)])
    return picture.markup()


def heat(picture: Picture, cells: Sequence[Cell], rows: Sequence[str]) -> str:
    """Return a row end to end and one a node, darker where the value is higher; what is not known has a frame."""
    worst = max((cell for cell in cells if cell.value), key=lambda cell: cell.value or 0, default=None)
    most = (worst.value if worst else None) or 1.0
    for place, row in enumerate(rows):
        shown = row if len(row) <= MOST_NAME else f"{row[: MOST_NAME - 1]}…"
        picture.text(LEFT - 8, TOP + place * ROW + 15, shown, "end")
    for cell in cells:
        left, right = picture.time.at(cell.start_us), picture.time.at(cell.end_us)
        box = left, TOP + rows.index(cell.row) * ROW + 1.0, max(right - left - 0.4, 0.5), ROW - 2.0
        style = "fill:var(--hw-blank)"
        if cell.value:
            style = f"fill:var(--hw-lossy);fill-opacity:{0.15 + 0.85 * cell.value / most:.3f}"
        elif cell.word in _WORDS:
            style = f"fill:var({_WORDS[cell.word]});fill-opacity:.16;stroke:var({_WORDS[cell.word]})"
        picture.rect(box, style, f"{cell.when}, {cell.row}: {cell.icon} {cell.word}, {cell.said}")
    names = [("UNKNOWN", "--hw-unknown", ""), ("not final", "--hw-pending", "")]
    picture.legend([*names, (f"at most {worst.said}", "--hw-lossy", "")] if worst else names)
    return picture.markup()


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
