"""The pathway as a graph, for ECharts: nodes coloured and worded by verdict, edges by loss."""

from __future__ import annotations

from typing import Any, Final

from dashboards.views.colours import Palette
from dashboards.views.pathway import Arrow, Drawing, Node

COLUMN_PX: Final = 190
ROW_PX: Final = 92
LEAST_PX: Final = 150
MOST_WORD: Final = 18


def high_px(drawing: Drawing) -> int:
    """Return how high the drawing wants to be."""
    rows = [node.row for node in drawing.nodes] or [0.0]
    return round(max(LEAST_PX, (max(rows) - min(rows) + 1) * ROW_PX + 40))


def option(drawing: Drawing, palette: Palette, chosen: str) -> dict[str, Any]:
    """Return the options of the graph; one node may be chosen."""
    edges = [_edge(arrow, palette) for arrow in drawing.arrows]
    return {
        "animation": False,
        "tooltip": {"confine": True},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "selectedMode": "single",
                "left": 84,
                "right": 84,
                "top": 34,
                "bottom": 44,
                "data": [_node(node, palette, is_chosen=node.name == chosen) for node in drawing.nodes],
                "links": edges,
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 9,
                "emphasis": {"focus": "adjacency"},
                "select": {"itemStyle": {"borderWidth": 4, "borderColor": palette.link}},
                "cursor": "pointer",
                "tooltip": {"formatter": "{b}"},
            }
        ],
    }


def _node(node: Node, palette: Palette, *, is_chosen: bool) -> dict[str, Any]:
    colour = node.mark.colour(palette)
    name = node.name if len(node.name) <= MOST_WORD else f"{node.name[: MOST_WORD - 1]}…"
    below = "\n".join(part for part in (f"{node.mark.icon} {node.mark.word} · {node.count}", node.loss) if part)
    return {
        "name": node.name,
        "x": node.column * COLUMN_PX,
        "y": node.row * ROW_PX,
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
