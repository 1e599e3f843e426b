"""Chart of how an error budget was spent, as SVG: what was left of it at the end of each day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Final
from xml.etree import ElementTree as ET

from hopwatch.dashboards.charts.axes import DAY_US, Axis, build_time_ticks, build_value_ticks
from hopwatch.dashboards.charts.picture import begin_picture, draw_text
from hopwatch.display import texts
from hopwatch.display.colours import Palette

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 150, 64, 40, 12, 28
_DAY_FORMAT, _MINUTE_FORMAT = "%d %b", "%H:%M"
_SHORT_US: Final = 2 * DAY_US
"""Span of a budget whose moments are told by the minute."""


def draw_budget(traced: Sequence[tuple[int, float]], palette: Palette, zone: tzinfo) -> str:
    """Return a picture: a line from all of the budget down to what is left, red where more was bad than may be."""
    root = begin_picture(WIDTH, HEIGHT, palette)
    values = build_value_ticks(min(0.0, *(left for _, left in traced)), 1.0)
    first_us, last_us = traced[0][0], max(traced[-1][0], traced[0][0] + 1)
    across, upwards = Axis(first_us, last_us, LEFT, WIDTH - RIGHT), Axis(values[0], values[-1], HEIGHT - BOTTOM, TOP)
    for value in values:
        y = upwards.position(value)
        line = {"x1": f"{LEFT}", "x2": f"{WIDTH - RIGHT}", "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        ET.SubElement(root, "line", line | {"stroke": palette.text if value == 0 else palette.line})
        draw_text(root, LEFT - 8, y + 4, f"{value:.0%}", "end")
    form = _MINUTE_FORMAT if last_us - first_us < _SHORT_US else _DAY_FORMAT
    for at_us in build_time_ticks(first_us, last_us, zone):
        moment = texts.format_moment(at_us, zone, form).rpartition(" ")[0]
        draw_text(root, across.position(at_us), HEIGHT - 8, moment, "middle")
    places = [(across.position(at_us), upwards.position(left)) for at_us, left in traced]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    colour = palette.lossy if traced[-1][1] <= 0 else palette.series[0]
    ET.SubElement(root, "polyline", {"points": points, "fill": "none", "stroke": colour, "stroke-width": "2"})
    return ET.tostring(root, encoding="unicode")


def describe_trace(traced: Sequence[tuple[int, float]], zone: tzinfo) -> str:
    """Return the picture in words."""
    (first_us, _), (last_us, left) = traced[0], traced[-1]
    ends = (texts.format_moment(at_us, zone) for at_us in (first_us, last_us))
    return f"Error budget from {' to '.join(ends)}: {left:.1%} is left"
