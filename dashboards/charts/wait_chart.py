"""Chart of the share of windows that would have been incomplete, over the wait before they are judged, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree as ET

from hopwatch.dashboards.charts.axes import Axis
from hopwatch.dashboards.charts.picture import begin_picture, draw_text
from hopwatch.display import texts
from hopwatch.display.colours import Palette
from hopwatch.monitor.kernel.completeness_curve import SECOND_US, WaitCurve

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 200, 64, 40, 20, 28
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


def draw_waits(curve: WaitCurve, wait_now_us: int, palette: Palette) -> str:
    """Return a picture: between its bounds the share of windows that a message came to later than a wait.

    The wait is on a logarithmic axis; ``wait_now_us`` is the one of the configuration, transit and settle.
    """
    root = begin_picture(WIDTH, HEIGHT, palette)
    wait_now_us = max(wait_now_us, SECOND_US)
    spans = [math.log10(point.wait_us) for point in curve.points] + [math.log10(wait_now_us)]
    across, upwards = Axis(min(spans), max(spans), LEFT, WIDTH - RIGHT), Axis(0, 1, HEIGHT - BOTTOM, TOP)
    for share in _TICKS:
        y = upwards.position(share)
        _draw_line(root, [(LEFT, y), (WIDTH - RIGHT, y)], f"stroke:{palette.line}")
        draw_text(root, LEFT - 8, y + 4, texts.format_ratio(share), "end")
    lower, upper = [], []
    for point in curve.points:
        x = across.position(math.log10(point.wait_us))
        draw_text(root, x, HEIGHT - 8, texts.format_lag(point.wait_us), "middle")
        lower.append((x, upwards.position(point.windows_lower / curve.windows)))
        upper.append((x, upwards.position(point.windows_upper / curve.windows)))
    _draw_line(root, [*upper, *reversed(lower)], f"fill:{palette.series[0]};fill-opacity:.2")
    _draw_line(root, upper, f"fill:none;stroke:{palette.series[0]};stroke-width:2")
    _draw_line(root, lower, f"fill:none;stroke:{palette.series[0]};stroke-width:1.4;stroke-dasharray:5 3")
    x = across.position(math.log10(wait_now_us))
    _draw_line(root, [(x, TOP), (x, HEIGHT - BOTTOM)], f"stroke:{palette.clean};stroke-dasharray:6 3")
    draw_text(root, x - 4, TOP + 12, f"judged now, {texts.format_lag(wait_now_us)}", "end")
    return ET.tostring(root, encoding="unicode")


def _draw_line(root: ET.Element, points: Iterable[tuple[float, float]], style: str) -> None:
    path = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
    ET.SubElement(root, "path", {"d": path, "style": style})
