"""The share of each node in a whole, as a ring, for ECharts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopwatch.dashboards.views.series import ChartPoint
from hopwatch.display.colours import Palette


def build_options(points: Sequence[ChartPoint], nodes: Sequence[str], palette: Palette) -> dict[str, Any]:
    """Return the options of the ring; a node has the colour that it has in other charts of these nodes."""
    label = {"color": palette.text, "fontSize": 12, "lineHeight": 16, "formatter": "{b}"}
    return {
        "animation": False,
        "tooltip": {"confine": True, "formatter": "{b}"},
        "series": [
            {
                "type": "pie",
                "radius": [42, 68],
                "center": ["50%", "50%"],
                "itemStyle": {"borderColor": palette.ground, "borderWidth": 2},
                "label": label,
                "labelLine": {"length": 10, "length2": 8},
                "data": [_build_share(point, palette.series[nodes.index(point.line)]) for point in points],
            }
        ],
    }


def _build_share(point: ChartPoint, colour: str) -> dict[str, Any]:
    name = f"{point.line}\n{point.text} ({point.part})"
    return {"name": name, "value": point.value, "itemStyle": {"color": colour}}
