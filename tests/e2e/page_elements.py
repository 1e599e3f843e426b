"""Elements of the dashboard: the picture of the pathway, figures, rows of the loss table."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Locator, Page, Position, expect

from hopwatch.dashboards.charts.pathway import ABOVE_PX, BELOW_PX, SIDE_PX

GRAPH: Final = '[class*="st-key-pathway"] canvas'
SETTLES_MS: Final = 2_000


def find_figure(page: Page, name: str) -> Locator:
    """Return where a figure of the page is, by what stands above it."""
    return page.locator(".hw-figures div").filter(has_text=re.compile(f"^{name}")).locator(".hw-value")


def figure(page: Page, name: str) -> str:
    """Return a figure of the page, as it is now."""
    return find_figure(page, name).inner_text()


def find_row(page: Page, name: str) -> Locator:
    """Return where the cells of a row of the loss table are."""
    found = page.locator(".hw-matrix tr").filter(has=page.locator("th", has_text=re.compile(f"^{name}$")))
    return found.locator("td")


def row(page: Page, name: str) -> list[str]:
    """Return a row of the loss table, as it is now."""
    return find_row(page, name).all_inner_texts()


def drawn_at(page: Page, place: int, count: int) -> Position:
    """Return where a node of a chain of so many is drawn in the picture of the pathway."""
    graph = page.locator(GRAPH).first
    expect(graph).to_be_visible()
    # The picture has the width of its panel once it is drawn.
    page.wait_for_timeout(SETTLES_MS)
    box = graph.bounding_box()
    assert box is not None
    return {
        "x": SIDE_PX + (box["width"] - 2 * SIDE_PX) * place / (count - 1),
        "y": (box["height"] + ABOVE_PX - BELOW_PX) / 2,
    }
