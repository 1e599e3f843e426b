"""The pathway as a graph, for ECharts: nodes coloured and worded by verdict, edges by loss."""

from __future__ import annotations

from typing import Any, Final

from dashboards.views.colours import Palette
from dashboards.views.pathway import Arrow, Drawing, Node

ROW_PX: Final = 104
SIDE_PX: Final = 84
ABOVE_PX, BELOW_PX = 30, 58
LEAST_PX: Final = 210
MOST_WORD: Final = 18


def high_px(drawing: Drawing) -> int:
    """Return how high the drawing wants to be."""
    rows = [node.row for node in drawing.nodes] or [0.0]
    return round(max(LEAST_PX, (max(rows) - min(rows) + 1) * ROW_PX))


def option(drawing: Drawing, palette: Palette, chosen: str) -> dict[str, Any]:
    """Return the options of the graph; one node may be chosen."""
    columns = max((node.column for node in drawing.nodes), default=0)
    rows = max((abs(node.row) for node in drawing.nodes), default=0.0)
    hidden = {"show": False, "type": "value"}
    return {
        "animation": False,
        "tooltip": {"confine": True, "formatter": "{b}"},
        # Hidden axes, so that a node is round whatever the shape of the drawing.
        "grid": {"left": SIDE_PX, "right": SIDE_PX, "top": ABOVE_PX, "bottom": BELOW_PX},
        "xAxis": hidden | {"min": 0, "max": max(columns, 1)},
        "yAxis": hidden | {"min": -max(rows, 0.5), "max": max(rows, 0.5), "inverse": True},
        "series": [
            {
                "type": "graph",
                "coordinateSystem": "cartesian2d",
                "selectedMode": "single",
                "data": [_node(node, palette, is_chosen=node.name == chosen) for node in drawing.nodes],
                "links": [_edge(arrow, palette) for arrow in drawing.arrows],
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 9,
                "select": {"itemStyle": {"borderWidth": 4, "borderColor": palette.link}},
                "cursor": "pointer",
            }
        ],
    }


def _node(node: Node, palette: Palette, *, is_chosen: bool) -> dict[str, Any]:
    colour = node.mark.colour(palette)
    name = node.name if len(node.name) <= MOST_WORD else f"{node.name[: MOST_WORD - 1]}…"
    below = "\n".join(part for part in (f"{node.mark.icon} {node.mark.word} · {node.count}", node.loss) if part)
    return {
        "name": node.name,
        "value": [node.column, node.row],
        "symbol": "circle",
        "symbolSize": 30,
        "itemStyle": {
            "color": colour,
            "borderColor": palette.link if is_chosen else palette.ground,
            "borderWidth": 4 if is_chosen else 2,
        },
        "label": {
            "show": True,
            "position": "bottom",
            "distance": 7,
            "formatter": f"{{name|{name}}}\n{{below|{below}}}",
            "rich": {
                "name": {"fontSize": 13, "fontWeight": 600, "color": palette.text, "align": "center", "lineHeight": 17},
                "below": {"fontSize": 11.5, "color": colour, "align": "center", "lineHeight": 15},
            },
        },
    }


def _edge(arrow: Arrow, palette: Palette) -> dict[str, Any]:
    is_bad = arrow.lost > 0
    return {
        "source": arrow.source,
        "target": arrow.target,
        "value": arrow.said,
        "lineStyle": {
            "color": palette.lossy if is_bad else palette.muted,
            "width": 3 if is_bad else 1.6,
            "type": "solid" if arrow.is_must else "dashed",
            "opacity": 0.9,
            "curveness": 0,
        },
        "label": {
            "show": is_bad,
            "formatter": f"{arrow.lost:,} lost",
            "color": palette.lossy,
            "fontSize": 12,
            "fontWeight": 600,
            "backgroundColor": palette.ground,
            "padding": [1, 4],
        },
    }
