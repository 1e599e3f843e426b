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

from tests.e2e import picture_store
from tests.e2e.browser import chromium, dashboard
from tests.repository import ROOT
from tests.support.examples import soak_after

WANTED: Final = "PICTURES"
"""The variable that asks for the pictures in docs/images: tests themselves leave the repository as it is."""
IMAGES: Final = ROOT / "docs" / "images"
PAGES: Final = {"overview": ("", 460), "stream": ("?stream=orders&node=router", 1_316)}
"""What is pictured: its query, and how high."""
THEMES: Final = ("light", "dark")
WIDTHS_PX: Final = (1_280, 1_920)
MOST_BYTES: Final = 250_000
COLOURS: Final = 256
SEEN_WITHIN_MS: Final = 60_000
DRAWN_WITHIN_MS: Final = 2_500
"""So long charts take to be drawn once they are there."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a dashboard over an hour of three streams."""
    with dashboard(picture_store.place(tmp_path_factory.mktemp("pictured")).config) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser for all pictures."""
    with chromium() as started:
        yield started


def taken(browser: Browser, url: str, page: str, theme: str, width_px: int, file: Path) -> None:
    """Take a picture of a page; nothing of it lies outside of the window."""
    query, high_px = PAGES[page]
    context = browser.new_context(viewport={"width": width_px, "height": high_px}, color_scheme=theme)  # type: ignore[arg-type]  # one of two texts
    opened = context.new_page()
    opened.goto(url + query)
    seen = opened.locator(".hw-overview" if page == "overview" else ".hw-live svg").first
    expect(seen).to_be_attached(timeout=SEEN_WITHIN_MS)
    opened.wait_for_timeout(DRAWN_WITHIN_MS)
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    opened.screenshot(path=file)
    context.close()
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


@pytest.mark.parametrize("width_px", soak_after(1, WIDTHS_PX))
@pytest.mark.parametrize("theme", soak_after(1, THEMES))
@pytest.mark.parametrize("page", PAGES)
def test_a_picture_is_of_modest_size(
    page: str, theme: str, width_px: int, url: str, browser: Browser, tmp_path: Path
) -> None:
    """As large as the window, and small enough for a repository; the page itself fits the window."""
    file = tmp_path / f"{page}-{theme}-{width_px}.png"
    taken(browser, url, page, theme, width_px, file)
    with Image.open(file) as picture:
        assert picture.size == (width_px, PAGES[page][1])
    assert file.stat().st_size < MOST_BYTES
    if os.environ.get(WANTED):
        IMAGES.mkdir(exist_ok=True)
        shutil.copy(file, IMAGES / file.name)


def test_the_pictures_of_the_repository_are_those_of_this_test() -> None:
    """Each is there, and no other."""
    names = {f"{page}-{theme}-{width_px}.png" for page in PAGES for theme in THEMES for width_px in WIDTHS_PX}
    assert {file.name for file in IMAGES.iterdir()} == names
    assert all(file.stat().st_size < MOST_BYTES for file in IMAGES.iterdir())
