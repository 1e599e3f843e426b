"""Drawing of the service map: cards of services over a picture of the connections between them.

Cards are links of HTML, placed in parts of the width, so that the map is as wide as the page; one map is drawn for wide
pages and one for narrow ones, and the page shows the one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards import markup
from hopwatch.dashboards.views import map_layout
from hopwatch.dashboards.views.map_layout import MapPlaces, MapShape, Place
from hopwatch.dashboards.views.service_map import Service, ServiceMap
from hopwatch.display.colours import Palette

CARD_HEIGHT_PX: Final = 62
ARROW_PX: Final = 5
CELL_UNITS: Final = 120
"""Width of a cell in the units of the picture, which is drawn as wide as the page."""
BOW_CELLS: Final = 0.42
"""So far a connection swerves from the services that it passes."""


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A map for pages of one kind: its class, its shape, the height of its cells, and how much of one a card takes."""

    kind: str
    shape: MapShape
    min_columns: int
    cell_height_px: int
    card_ratio: float


_SHEETS: Final = (
    _Sheet("hw-map-wide", MapShape(columns=9, line_services=24, is_down=False), 6, 78, 0.84),
    _Sheet("hw-map-narrow", MapShape(columns=3, line_services=3, is_down=True), 3, 88, 0.94),
)


def draw_map(drawn: ServiceMap, palette: Palette, chosen: str, query: Callable[[str], Mapping[str, str]]) -> str:
    """Return the markup of a map; ``query`` leads to a service by its name, and one may be chosen."""
    edges = [(one.source, one.target) for one in drawn.connections]
    said = f"{len(drawn.services):,} services, {len(edges):,} connections"
    maps = []
    for sheet in _SHEETS:
        laid = map_layout.place_services(len(drawn.services), edges, sheet.shape, sheet.min_columns)
        picture = markup.image(_draw_connections(drawn, laid, sheet, palette, chosen), said, "hw-map-lines")
        cards = "".join(
            _draw_card(service, _place_style(place, laid, sheet), palette, query(service.name), chosen == service.name)
            for service, place in zip(drawn.services, laid.places, strict=True)
        )
        high_px = laid.rows * sheet.cell_height_px
        maps.append(f'<div class="hw-map {sheet.kind}" style="height:{high_px:.0f}px">{picture}{cards}</div>')
    return "".join(maps)


def _place_style(place: Place, laid: MapPlaces, sheet: _Sheet) -> str:
    column, row = place
    left, width = (column + (1 - sheet.card_ratio) / 2) / laid.columns, sheet.card_ratio / laid.columns
    top_px = (row + 0.5) * sheet.cell_height_px - CARD_HEIGHT_PX / 2
    return f"left:{left:.3%};top:{top_px:.0f}px;width:{width:.3%};height:{CARD_HEIGHT_PX}px"


def _draw_card(service: Service, style: str, palette: Palette, query: Mapping[str, str], is_chosen: bool) -> str:  # noqa: FBT001 - a fact
    colour = service.mark.colour(palette)
    kinds = "hw-service" + " hw-chosen" * is_chosen + " hw-dated" * bool(service.old)
    several = f"{len(service.nodes):,} streams" if len(service.nodes) > 1 else ""
    lines = (" · ".join(filter(None, (service.rate, several))), service.old or service.lag, service.lost)
    loud = ("", " hw-old" if service.old else "", " hw-loud" if service.is_lossy else " hw-old")
    below = "".join(
        f'<span class="hw-second{kind}">{markup.escape_html(line)}</span>'
        for line, kind in zip(lines, loud, strict=True)
        if line
    )
    icon = f'<i style="color:{colour}">{markup.escape_html(service.mark.icon)}</i>'
    words = f'<span class="hw-first">{icon} {markup.escape_html(service.name)}</span>'
    return markup.card(f"{words}{below}", query, service.description, kinds, f"{style};border-color:{colour}")


def _draw_connections(drawn: ServiceMap, laid: MapPlaces, sheet: _Sheet, palette: Palette, chosen: str) -> str:
    """Return the connections as SVG: what loses in its colour, those of the chosen service stronger."""
    wide, high = laid.columns * CELL_UNITS, laid.rows * sheet.cell_height_px
    # Beside those of a chosen service the others stand back.
    other = palette.line if chosen else palette.muted
    colours = {"other": other, "lossy": palette.lossy, "unknown": palette.unknown, "link": palette.link}
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" '
        f'markerWidth="{2 * ARROW_PX}" markerHeight="{2 * ARROW_PX}" orient="auto">'
        f'<path d="M0 1L10 5L0 9z" fill="{colour}"/></marker>'
        for name, colour in colours.items()
    )
    paths = []
    for one in drawn.connections:
        if one.source == one.target:
            continue
        is_chosen = chosen in (drawn.services[one.source].name, drawn.services[one.target].name)
        is_bad = one.missing > 0
        name = ("lossy" if one.is_lossy else "unknown") if is_bad else "link" if is_chosen else "other"
        look = f'stroke="{colours[name]}" stroke-width="{2.4 if is_bad or is_chosen else 1.2}"'
        dash = "" if one.is_required else ' stroke-dasharray="5 4"'
        route = _route(laid.places[one.source], laid.places[one.target], sheet)
        paths.append(
            f'<path d="{route}" fill="none" {look}{dash} vector-effect="non-scaling-stroke" marker-end="url(#{name})"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high:.0f}" viewBox="0 0 {wide} {high:.0f}" '
        f'preserveAspectRatio="none"><defs>{heads}</defs>{"".join(paths)}</svg>'
    )


def _route(source: Place, target: Place, sheet: _Sheet) -> str:
    """Return the path of a connection, from the side of a card to the side of another one.

    It leaves in the direction in which messages flow, where the other card lies there, and swerves from cards between.
    """
    (left, top), (right, bottom) = source, target
    is_down = bottom != top if sheet.shape.is_down else right == left
    along, across = (bottom - top, right - left) if is_down else (right - left, bottom - top)
    half = CARD_HEIGHT_PX / 2 / sheet.cell_height_px if is_down else sheet.card_ratio / 2
    ahead = 1 if along > 0 else -1
    swerve = BOW_CELLS if abs(along) > 1 and abs(across) < BOW_CELLS else 0.0
    begin, reach = half * ahead, along - 2 * half * ahead
    steps = ((0.0, 0.0), (reach / 2, swerve), (reach / 2, across + swerve), (reach, across))
    points = []
    for forward, aside in steps:
        column, row = (left + aside, top + begin + forward) if is_down else (left + begin + forward, top + aside)
        points.append(f"{(column + 0.5) * CELL_UNITS:.1f} {(row + 0.5) * sheet.cell_height_px:.1f}")
    return f"M{points[0]}C{' '.join(points[1:])}"
