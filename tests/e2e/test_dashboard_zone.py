"""The dashboard on somebody else's clock: a Chromium in another zone, on the days when its clocks are moved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import HEAT, SEEN_WITHIN_MS, cell_at, dashboard, new_page
from tests.support.dashboard_stores import fill
from tests.support.examples import soak_after
from tests.support.windows import window
from tests.support.workspace import Workspace

MARCH_29: Final = 87 * 1_440
OCTOBER_25: Final = 297 * 1_440
"""Minutes from the first window to the days on which Berlin's clocks are moved, both at 01:00 UTC."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a dashboard over twenty minutes around each of these moments; one in ten is lost at b."""
    place = Workspace(tmp_path_factory.mktemp("zone")).configure()
    streams = {"spring": MARCH_29, "autumn": OCTOBER_25}
    windows = [
        window(day + minute, stream=name, lost={"b": 100}) for name, day in streams.items() for minute in range(50, 70)
    ]
    fill(place.store_url, *windows).dispose()
    with dashboard(place.config) as started:
        yield started


def opened(browser: Browser, zone: str, url: str) -> Page:
    """Return a page that somebody in a zone has opened, with its heat map drawn."""
    page = new_page(browser, timezone_id=zone, viewport={"width": 1280, "height": 900})
    page.goto(url)
    expect(page.locator(f"{HEAT} svg")).to_be_visible()
    return page


CASES: Final = {
    "clocks go forward": (
        "spring",
        "Europe/Berlin",
        "2026-03-29",
        ("01:50 CET", "03:10 CEST", "03:05 CEST", "03:05"),
    ),
    "clocks go back": ("autumn", "Europe/Berlin", "2026-10-25", ("02:50 CEST", "02:10 CET", "02:05 CET", "02:05")),
    "three quarters": (
        "spring",
        "Asia/Kathmandu",
        "2026-03-29",
        ("06:35 +0545", "06:55 +0545", "06:50 +0545", "06:50"),
    ),
}


@pytest.mark.parametrize(("stream", "zone", "day", "told"), soak_after(1, CASES.values()), ids=CASES)
def test_ranges_windows_and_charts_are_told_by_the_clock_of_who_looks(
    stream: str, zone: str, day: str, told: tuple[str, str, str, str], url: str, browser: Browser
) -> None:
    """Each moment with the zone that was in force, and what is clicked is the minute that was meant."""
    first, last, chosen, on_axis = told
    at = f"{day}T01:05:00Z"
    page = opened(browser, zone, f"{url}?stream={stream}&zone=local&from={day}T00:50:00Z&to={day}T01:10:00Z")
    expect(page.locator(".hw-title", has_text="final windows")).to_contain_text(f"{day} {first} to {day} {last}")
    ticks = page.locator(f"{HEAT} .hw-moment text").all_text_contents()
    assert any(tick.startswith(on_axis[:2]) for tick in ticks), ticks
    assert not any(tick.startswith("01:1") for tick in ticks), ticks
    heat, cell = cell_at(page, "b", int(datetime.fromisoformat(at).timestamp()) * 1_000_000)
    heat.hover(position=cell)
    expect(page.locator(".hw-live-tip").first).to_contain_text(f"{day} {chosen}")
    heat.click(position=cell)
    page.wait_for_url(re.compile(re.escape(f"window={at.replace(':', '%3A')}")), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-title", has_text=f"{day} {chosen}")).to_be_visible()
    page.context.close()


def test_the_same_link_is_told_in_utc_to_who_asks_for_it(url: str, browser: Browser) -> None:
    """One click from one to the other, which the URL keeps."""
    page = opened(browser, "Europe/Berlin", f"{url}?stream=spring&window=2026-03-29T01:05:00Z")
    expect(page.locator(".hw-title", has_text="2026-03-29 01:05 UTC")).to_be_visible()
    page.get_by_text("Local time").click()
    page.wait_for_url(re.compile("zone=local"), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-title", has_text="2026-03-29 03:05 CEST")).to_be_visible()
    page.context.close()


def test_below_a_path_of_a_host_all_is_the_same(browser: Browser, tmp_path: Path) -> None:
    """As behind a proxy that keeps the path: links stay below it."""
    place = Workspace(tmp_path).configure()
    fill(place.store_url, *[window(minute) for minute in range(5)]).dispose()
    page = new_page(browser)
    with dashboard(place.config, None, "--base-path", "/hopwatch/") as started:
        page.goto(f"{started}hopwatch/")
        page.get_by_role("link", name="orders").click()
        expect(page.locator(".hw-matrix")).to_be_visible()
        assert page.url == f"{started}hopwatch/?stream=orders"
        page.close()
