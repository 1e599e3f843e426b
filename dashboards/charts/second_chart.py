"""Chart of a node's messages by the second of their event time, and of those that are missing, as SVG."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final
from xml.etree import ElementTree as ET

from hopwatch.dashboards.charts.axes import Axis
from hopwatch.dashboards.charts.picture import begin_picture, draw_text
from hopwatch.display import texts
from hopwatch.display.colours import Palette
from hopwatch.monitor.kernel.seconds import SECOND_US
from hopwatch.monitor.results import SECONDS, SecondCounts

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 160, 64, 40, 12, 28
_TICK_SECONDS: Final = range(0, SECONDS + 1, 10)
_GAP: Final = 2.0


def draw_seconds(counts: SecondCounts, start_us: int, palette: Palette, zone: tzinfo, *, is_sure: bool) -> str:
    """Return a picture: a bar a second of the window that starts at ``start_us``, its missing part on top.

    That has the colour of a loss where any of it is sure, else that of what is unknown.
    """
    root = begin_picture(WIDTH, HEIGHT, palette)
    most, missing = max(counts.messages), palette.lossy if is_sure else palette.unknown
    across, upwards = Axis(0, SECONDS, LEFT, WIDTH - RIGHT), Axis(0, most, HEIGHT - BOTTOM, TOP)
    for value in (0, most):
        y = upwards.position(value)
        line = {"x1": f"{LEFT}", "x2": f"{WIDTH - RIGHT}", "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        ET.SubElement(root, "line", line | {"stroke": palette.line})
        draw_text(root, LEFT - 8, y + 4, texts.format_count(value), "end")
    for second, (messages, lost) in enumerate(zip(counts.messages, counts.lost, strict=True)):
        here = across.position(second) + _GAP / 2, across.position(second + 1) - _GAP / 2
        _draw_bar(root, here, (upwards.position(0), upwards.position(messages - lost)), palette.series[0])
        _draw_bar(root, here, (upwards.position(messages - lost), upwards.position(messages)), missing)
    for second in _TICK_SECONDS:
        at = texts.format_moment(start_us + second * SECOND_US, zone, texts.CLOCK).partition(" ")[0]
        draw_text(root, across.position(second), HEIGHT - 8, at, "middle")
    return ET.tostring(root, encoding="unicode")


def describe_seconds(node: str, counts: SecondCounts) -> str:
    """Return the picture in words."""
    hit = [second for second, lost in enumerate(counts.lost) if lost]
    return (
        f"Messages of {node} by second: {sum(counts.lost):,} of {sum(counts.messages):,} are missing, "
        f"from second {hit[0]} to {hit[-1]} of the minute, in {len(hit)} of its seconds"
    )


def _draw_bar(root: ET.Element, across: tuple[float, float], upwards: tuple[float, float], colour: str) -> None:
    (left, right), (bottom, top) = across, upwards
    if bottom > top:
        place = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{right - left:.1f}", "height": f"{bottom - top:.1f}"}
        ET.SubElement(root, "rect", place | {"fill": colour})
