"""Chart of curves over the rate, both axes logarithmic, as SVG without a script. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from hopwatch.dashboards.charts.axes import Axis

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 300, 84, 16, 34, 40
MARK_PX: Final = 3.5
_STEPS: Final = (1, 2, 5)
MAX_TICKS: Final = 8


class RatePoint(NamedTuple):
    """Point of a curve; ``told`` is its tooltip."""

    rate_per_s: float
    value: float
    is_good: bool
    told: str


class Curve(NamedTuple):
    """Curve with its name and the place of its color among those of series."""

    name: str
    color: int
    points: tuple[RatePoint, ...]


def draw_curves(
    title: str, unit: str, curves: Sequence[Curve], limits: Sequence[tuple[str, float]], rating_per_s: float | None
) -> str:
    """Return a figure: curves with a circle for what held and a cross for what did not, bounds, and the rating."""
    rates = [point.rate_per_s for curve in curves for point in curve.points]
    values = [point.value for curve in curves for point in curve.points] + [value for _, value in limits]
    root = ET.Element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "class": "hw-picture"})
    ET.SubElement(root, "title").text = title
    ET.SubElement(root, "desc").text = "Curves over the rate; the table below has the same figures."
    if not rates:
        return ""
    across = _build_axis(rates, LEFT, WIDTH - RIGHT)
    upwards = _build_axis(values, HEIGHT - BOTTOM, TOP)
    for tick in _build_ticks(across):
        x = across.position(math.log10(tick))
        _draw_line(root, (x, TOP), (x, HEIGHT - BOTTOM), "--hw-line")
        _draw_text(root, x, HEIGHT - BOTTOM + 16, f"{tick:,.10g}", "middle")
    for tick in _build_ticks(upwards):
        y = upwards.position(math.log10(tick))
        _draw_line(root, (LEFT, y), (WIDTH - RIGHT, y), "--hw-line")
        _draw_text(root, LEFT - 8, y + 4, f"{tick:,.10g}", "end")
    _draw_text(root, 0, TOP - 16, unit)
    _draw_text(root, WIDTH - RIGHT, HEIGHT - 6, "messages a second", "end")
    for name, value in limits:
        y = upwards.position(math.log10(value))
        _draw_line(root, (LEFT, y), (WIDTH - RIGHT, y), "--hw-lossy", "6 3")
        _draw_text(root, WIDTH - RIGHT, y - 4, name, "end")
    if rating_per_s:
        x = across.position(math.log10(rating_per_s))
        _draw_line(root, (x, TOP), (x, HEIGHT - BOTTOM), "--hw-clean", "6 3")
        _draw_text(root, x - 4, TOP + 12, "rating", "end")
    for place, curve in enumerate(curves):
        _draw_curve(root, curve, across, upwards)
        _draw_line(root, (LEFT + 110 * place, TOP - 20), (LEFT + 110 * place + 20, TOP - 20), f"--hw-s{curve.color}")
        _draw_text(root, LEFT + 110 * place + 26, TOP - 16, curve.name)
    figure = ET.Element("figure")
    ET.SubElement(figure, "figcaption").text = title
    figure.append(root)
    return ET.tostring(figure, encoding="unicode", method="html")


def _build_axis(values: Iterable[float], start: float, end: float) -> Axis:
    known = [math.log10(value) for value in values if value > 0]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = max(0.05 * (high - low), 0.05)
    return Axis(low - room, high + room, start, end)


def _build_ticks(axis: Axis) -> list[float]:
    whole = range(math.floor(axis.low), math.ceil(axis.high) + 1)
    every = [10.0**power * step for power in whole for step in _STEPS]
    ticks = [tick for tick in every if axis.low <= math.log10(tick) <= axis.high]
    return ticks if len(ticks) <= MAX_TICKS else ticks[:: -(-len(ticks) // MAX_TICKS)]


def _draw_curve(root: ET.Element, curve: Curve, across: Axis, upwards: Axis) -> None:
    color = f"var(--hw-s{curve.color})"
    placed = [
        (across.position(math.log10(point.rate_per_s)), upwards.position(math.log10(point.value)), point)
        for point in sorted(curve.points)
        if point.value > 0
    ]
    path = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y, _) in enumerate(placed))
    if path:
        ET.SubElement(root, "path", {"d": path, "style": f"stroke:{color};stroke-width:1.4;fill:none;opacity:.6"})
    for x, y, point in placed:
        if point.is_good:
            mark = ET.SubElement(
                root, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{MARK_PX}", "style": f"fill:{color}"}
            )
        else:
            cross = "".join(
                f"M{x - MARK_PX:.1f} {y - side:.1f}L{x + MARK_PX:.1f} {y + side:.1f}" for side in (MARK_PX, -MARK_PX)
            )
            mark = ET.SubElement(root, "path", {"d": cross, "style": f"stroke:{color};stroke-width:2"})
        ET.SubElement(mark, "title").text = point.told


def _draw_line(
    root: ET.Element, start: tuple[float, float], end: tuple[float, float], color: str, dashes: str = "none"
) -> None:
    ends = {"x1": f"{start[0]:.1f}", "y1": f"{start[1]:.1f}", "x2": f"{end[0]:.1f}", "y2": f"{end[1]:.1f}"}
    ET.SubElement(root, "line", {**ends, "style": f"stroke:var({color});stroke-dasharray:{dashes}"})


def _draw_text(root: ET.Element, x: float, y: float, words: str, anchor: str = "start") -> None:
    ET.SubElement(root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}).text = words
