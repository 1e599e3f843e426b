"""Pictures of the dashboard, as README and docs show them; ``make pictures`` puts those of its run into docs/images."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.e2e import map_store, picture_store
from tests.e2e.browser import chromium, dashboard
from tests.repository import ROOT
from tests.support.examples import soak_after

WANTED: Final = "PICTURES"
"""The variable that asks for the pictures in docs/images: tests themselves leave the repository as it is."""
IMAGES: Final = ROOT / "docs" / "images"
PAGES: Final = {
    "overview": ("", ".hw-overview", {1_280: 460, 1_920: 460}),
    "stream": ("?stream=orders&node=router", ".hw-live svg", {1_280: 1_316, 1_920: 1_316}),
    "map": ("?page=map&node=order-router", ".hw-service:visible", {390: 2_000, 1_280: 1_900, 1_920: 1_900}),
    "pathway": ("?stream=orders&node=pay-07", ".hw-live svg", {390: 1_600, 1_280: 1_500, 1_920: 1_500}),
}
"""What is pictured: its query, what is there once it is drawn, and by the width of the page how high, px."""
SHOTS: Final = [(page, width_px) for page, (_, _, high_px) in PAGES.items() for width_px in high_px]
THEMES: Final = ("light", "dark")
MOST_BYTES: Final = 250_000
COLOURS: Final = 256
SEEN_WITHIN_MS: Final = 60_000
DRAWN_WITHIN_MS: Final = 2_500
"""So long charts take to be drawn once they are there."""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the URL of a dashboard for each page: over an hour of three streams, and over a hundred services."""
    hour, services, lanes = (tmp_path_factory.mktemp("pictured") for _ in range(3))
    with (
        dashboard(picture_store.place(hour).config) as of_hour,
        dashboard(map_store.place(services, map_store.build_paths()).config) as of_services,
        dashboard(map_store.place(lanes, map_store.build_lanes()).config) as of_lanes,
    ):
        yield {"overview": of_hour, "stream": of_hour, "map": of_services, "pathway": of_lanes}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser for all pictures."""
    with chromium() as started:
        yield started


def taken(browser: Browser, url: str, page: str, theme: str, width_px: int, file: Path) -> None:
    """Take a picture of a page; nothing of it lies outside of the window."""
    query, drawn, high_px = PAGES[page]
    context = browser.new_context(viewport={"width": width_px, "height": high_px[width_px]}, color_scheme=theme)  # type: ignore[arg-type]  # one of two texts
    opened = context.new_page()
    opened.goto(url + query)
    expect(opened.locator(drawn).first).to_be_attached(timeout=SEEN_WITHIN_MS)
    opened.wait_for_timeout(DRAWN_WITHIN_MS)
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    opened.screenshot(path=file)
    context.close()
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


@pytest.mark.parametrize("theme", soak_after(1, THEMES))
@pytest.mark.parametrize(("page", "width_px"), soak_after(2, sorted(SHOTS, key=lambda one: one[1])))
def test_a_picture_is_of_modest_size(
    page: str, theme: str, width_px: int, urls: dict[str, str], browser: Browser, tmp_path: Path
) -> None:
    """As large as the window, and small enough for a repository; the page itself fits the window."""
    file = tmp_path / f"{page}-{theme}-{width_px}.png"
    taken(browser, urls[page], page, theme, width_px, file)
    with Image.open(file) as picture:
        assert picture.size == (width_px, PAGES[page][2][width_px])
    assert file.stat().st_size < MOST_BYTES
    if os.environ.get(WANTED):
        IMAGES.mkdir(exist_ok=True)
        shutil.copy(file, IMAGES / file.name)


def test_the_pictures_of_the_repository_are_those_of_this_test() -> None:
    """Each is there, and no other."""
    names = {f"{page}-{theme}-{width_px}.png" for page in PAGES for theme in THEMES for width_px in PAGES[page][2]}
    assert {file.name for file in IMAGES.iterdir()} == names
    assert all(file.stat().st_size < MOST_BYTES for file in IMAGES.iterdir())
