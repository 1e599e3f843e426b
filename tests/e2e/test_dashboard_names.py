"""Names as long as they may be, in a real Chromium: nothing is cut off, nothing lies outside of its panel."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from tests.support.dashboard_stores import build_windows, fill
from tests.support.examples import soak_after
from tests.support.windows import lag
from tests.support.workspace import Workspace

STREAM: Final = "M" * 64
NODES: Final = ("W" * 64, "the-ingest-of-orders-" + "w" * 43, "sink", "w" * 64)
OUTSIDE: Final = """() => {
  const found = [];
  for (const one of document.querySelectorAll(".hw-note, .hw-title, .hw-trail, .hw-notes, .hw-matrix thead th"))
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth) found.push(one.className + ": " + one.textContent);
  for (const one of document.querySelectorAll(".hw-picture .hw-key, .hw-picture > text")) {
    const own = one.getBoundingClientRect(), all = one.closest("svg").getBoundingClientRect();
    if (own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1) found.push(one.textContent);
  }
  return found;
}"""
"""What of notes, titles, heads and charts reaches beyond its own place."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place with a store of a stream whose names are as long as names may be."""
    made = Workspace(tmp_path_factory.mktemp("names")).configure()
    lags = {"lag_in_us": lag(4_000_000_000), "lag_out_us": lag(4_000_000_000), "process_duration_p95_us": -1}
    timed: dict[str, dict[str, Any]] = {NODES[0]: lags, NODES[2]: lags | {"process_duration_p95_us": 2_000}}
    fill(made.store_url, *build_windows(5, stream=STREAM, names=NODES, lost={NODES[1]: 5}, nodes=timed)).dispose()
    return made


@pytest.mark.parametrize("wide", soak_after(1, [1280, 390]))
def test_long_names_wrap(browser: Browser, url: str, wide: int) -> None:
    """On a desk and on a telephone; the pathway is scrolled where it has no room, and the legends take more lines."""
    page = browser.new_page(viewport={"width": wide, "height": 5_000})
    page.goto(f"{url}?stream={STREAM}&node={NODES[0]}&window=2026-01-01T00:03:00Z")
    expect(page.locator(".hw-live svg")).to_have_count(5)
    expect(page.locator('[class*="st-key-graph-"] canvas')).to_be_visible()
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") == wide
    heads = page.locator(".hw-matrix thead th").evaluate_all("all => all.map((one) => one.offsetWidth)")
    assert max(heads) < wide / 2
    graph = page.locator('[class*="st-key-graph-"]')
    has_room = graph.evaluate("(one) => one.scrollWidth <= one.clientWidth + 1")
    assert has_room is (wide == 1280)
    page.close()
