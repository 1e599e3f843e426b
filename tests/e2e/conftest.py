"""Fixtures of tests in a browser: one Chromium, and one dashboard per file over the store that the file sets up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import SEEN_WITHIN_MS, chromium, dashboard, new_page
from tests.support.workspace import Workspace


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser for all tests of a file."""
    expect.set_options(timeout=SEEN_WITHIN_MS)
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def url(place: Workspace) -> Iterator[str]:
    """Yield the URL of the dashboard over the place of a file."""
    with dashboard(place.config) as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a page of its own."""
    opened = new_page(browser, viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()
