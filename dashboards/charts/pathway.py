"""The pathway as a graph, for ECharts: nodes coloured and worded by verdict, edges by loss."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.dashboards.views.pathway import Arrow, PathwayDrawing, PathwayNode
from hopwatch.display.colours import Palette

ROW_PX: Final = 118
SIDE_PX: Final = 84
ABOVE_PX, BELOW_PX = 30, 88
MIN_HEIGHT_PX: Final = 225
MAX_NAME_CHARS: Final = 18
CLOSE_ROW_PX: Final = 54
CLOSE_SIDE_PX: Final = 40
CLOSE_NAME_CHARS: Final = 11
"""Of a longer name the end is shown: nodes of a kind are numbered there."""


def compute_height_px(drawing: PathwayDrawing) -> int:
    """Return how high the drawing wants to be."""
    rows = [node.row for node in drawing.nodes] or [0.0]
    each_px = CLOSE_ROW_PX if drawing.is_close else ROW_PX
    return round(max(MIN_HEIGHT_PX, (max(rows) - min(rows) + 1) * each_px))


def build_options(drawing: PathwayDrawing, palette: Palette, chosen: str) -> dict[str, Any]:
    """Return the options of the graph; one node may be chosen."""
    columns = max((node.column for node in drawing.nodes), default=0)
    rows = max((abs(node.row) for node in drawing.nodes), default=0.0)
    hidden = {"show": False, "type": "value"}
    side_px, below_px = (CLOSE_SIDE_PX, ABOVE_PX) if drawing.is_close else (SIDE_PX, BELOW_PX)
    dress = _build_close_node if drawing.is_close else _build_node
    return {
        "animation": False,
        "tooltip": {"confine": True, "formatter": "{b}"},
        # Hidden axes, so that a node is round whatever the shape of the drawing.
        "grid": {"left": side_px, "right": side_px, "top": ABOVE_PX, "bottom": below_px},
        "xAxis": hidden | {"min": 0, "max": max(columns, 1)},
        "yAxis": hidden | {"min": -max(rows, 0.5), "max": max(rows, 0.5), "inverse": True},
        "series": [
            {
                "type": "graph",
                "coordinateSystem": "cartesian2d",
                "selectedMode": "single",
                "symbol": "circle",
                "symbolSize": 15 if drawing.is_close else 30,
                "label": {"show": True, "position": "bottom", "distance": 4 if drawing.is_close else 7},
                "data": [
                    {"name": node.name, "value": [node.column, node.row]}
                    | dress(node, palette, is_chosen=node.name == chosen)
                    for node in drawing.nodes
                ],
                "links": [_build_edge(arrow, palette, has_room=not drawing.is_close) for arrow in drawing.arrows],
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 5 if drawing.is_close else 9,
                "select": {"itemStyle": {"borderWidth": 4, "borderColor": palette.link}},
                "cursor": "pointer",
            }
        ],
    }


def _build_close_node(node: PathwayNode, palette: Palette, *, is_chosen: bool) -> dict[str, Any]:
    name = node.name if len(node.name) <= CLOSE_NAME_CHARS else f"…{node.name[1 - CLOSE_NAME_CHARS :]}"
    # Edges that pass below a name do not cross it.
    ground = {"backgroundColor": palette.ground, "padding": [1, 2]}
    style = {"fontSize": 10.5, "color": palette.text, "formatter": f"{node.mark.icon} {name}"} | ground
    return {"itemStyle": _build_ring(node, palette, is_chosen=is_chosen), "label": style}


def _build_node(node: PathwayNode, palette: Palette, *, is_chosen: bool) -> dict[str, Any]:
    colour = node.mark.colour(palette)
    name = node.name if len(node.name) <= MAX_NAME_CHARS else f"{node.name[: MAX_NAME_CHARS - 1]}…"
    below = "\n".join(
        part for part in (f"{node.mark.icon} {node.mark.word} · {node.count}", node.loss, node.after, node.now) if part
    )
    return {
        "itemStyle": _build_ring(node, palette, is_chosen=is_chosen),
        "label": {
            "formatter": f"{{name|{name}}}\n{{below|{below}}}",
            "rich": {
                "name": {"fontSize": 13, "fontWeight": 600, "color": palette.text, "align": "center", "lineHeight": 17},
                "below": {"fontSize": 11.5, "color": colour, "align": "center", "lineHeight": 15},
            },
        },
    }


def _build_ring(node: PathwayNode, palette: Palette, *, is_chosen: bool) -> dict[str, Any]:
    border = {"borderColor": palette.link, "borderWidth": 4} if is_chosen else {"borderColor": palette.ground}
    return {"color": node.mark.colour(palette), "borderWidth": 2} | border


def _build_edge(arrow: Arrow, palette: Palette, *, has_room: bool) -> dict[str, Any]:
    is_bad, colour = arrow.missing > 0, palette.lossy if arrow.surely_lost else palette.unknown
    line = {
        "source": arrow.source,
        "target": arrow.target,
        "value": ", ".join(filter(None, (arrow.description, *arrow.times))),
        "lineStyle": {
            "color": colour if is_bad else palette.muted,
            "width": 3 if is_bad else 1.6,
            "type": "solid" if arrow.is_required else "dashed",
            "opacity": 0.9,
        },
    }
    words = "\n".join(filter(None, (arrow.label if is_bad else "", *arrow.times)))
    if not words or not has_room:
        return line
    label = {
        "show": True,
        "formatter": words,
        "color": colour if is_bad else palette.muted,
        "fontSize": 12,
        "lineHeight": 15,
    }
    weight = {"fontWeight": 600} if is_bad else {}
    return line | {"label": label | weight | {"backgroundColor": palette.ground, "padding": [1, 4]}}
