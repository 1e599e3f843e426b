"""Tests of what leaves the dashboard as files, and of who can read it, in a real Chromium."""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as PageTimeoutError

from hopwatch.cli.main import main
from hopwatch.monitor.results import Verdict, WindowResult
from tests.e2e.browser import new_page
from tests.support.dashboard_stores import fill
from tests.support.examples import soak_after
from tests.support.windows import lag, window
from tests.support.workspace import Workspace

DOWNLOADS_WITHIN_MS: Final = 30_000
TRIES: Final = 4
PNG: Final = b"\x89PNG\r\n\x1a\n"
CHARTS: Final = '.hw-live svg, [data-testid="stEChartsChart"]'
WITH_TOOLS: Final = 'xpath=ancestor::*[.//*[@data-testid="stElementToolbar"] or .//*[@class="hw-live-png"]][1]'
READ: Final = 4.5
LARGE: Final = 3.0
"""Contrasts that WCAG calls AA, of text and of large text."""
TEXTS: Final = """() => {
  const rgba = (colour) => {
    const parts = (colour.match(/[\\d.]+/g) || []).map(Number);
    if (colour.startsWith('color(srgb')) return [parts[0] * 255, parts[1] * 255, parts[2] * 255, parts[3] ?? 1];
    return [parts[0] || 0, parts[1] || 0, parts[2] || 0, parts.length ? parts[3] ?? 1 : 0];
  };
  const over = (top, low) => [0, 1, 2].map((at) => top[at] * top[3] + low[at] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => {
    const part = (value) => value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((low, top) => over(top, low), [255, 255, 255, 1]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!words || !element || element.closest('style, script, title, desc, .hw-hidden, [disabled]')) continue;
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (style.visibility === 'hidden' || !box.width || !box.height) continue;
    let alpha = 1;
    for (let at = element; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    if (!alpha || style.fontFamily.includes('Material')) continue;
    const low = ground(element), raw = rgba(element.closest('svg') ? style.fill : style.color);
    const top = over([raw[0], raw[1], raw[2], raw[3] * alpha], low);
    const [bright, dark] = [light(top), light(low)].sort((one, other) => other - one);
    const size = parseFloat(style.fontSize), is_bold = Number(style.fontWeight) >= 700;
    const is_large = size >= 24 || (size >= 18.66 && is_bold);
    found.push({words: words.slice(0, 40), contrast: (bright + 0.05) / (dark + 0.05), is_large, kind: element.tagName});
  }
  return found;
}"""
"""All text that is seen, with its contrast to what is behind it, opacities counted."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place with an hour of a stream that is lossy at last, and of one of every other verdict."""
    made = Workspace(tmp_path_factory.mktemp("files")).configure()
    unknown = [window(minute, stream="parcels", verdict=Verdict.UNKNOWN) for minute in range(60)]
    silent = [window(minute, stream="quiet", known=0, verdict=Verdict.SILENT) for minute in range(60)]
    idle = [window(minute, stream="rest", known=0) for minute in range(60)]
    clean = [window(minute, stream="sound") for minute in range(60)]
    fill(made.store_url, *_orders(), *unknown, *silent, *idle, *clean).dispose()
    return made


def _orders() -> list[WindowResult]:
    lags = {"lag_in_us": lag(20_000, low=8_000), "lag_out_us": lag(31_000), "process_duration_p95_us": 11_000}
    made = [window(minute, lost={"b": minute % 9} if minute > 40 else {}, nodes={"b": lags}) for minute in range(60)]
    made[20] = window(20, verdict=Verdict.UNKNOWN, reasons=("b is silent",))
    return [replace(one, lag_us=lag(31_000)) for one in made]


def opened(browser: Browser, url: str, scheme: Any = "light") -> Page:  # noqa: ANN401 - one of Playwright's words
    """Return the page of the stream, all of it drawn."""
    page = new_page(browser, viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(f"{url}?stream=orders&node=b")
    expect(page.locator(".hw-live svg")).to_have_count(4)
    return page


def saved(page: Page, button: Locator) -> tuple[str, bytes]:
    """Return name and content of the file that a click downloads."""
    for _ in range(TRIES):
        # A page that is drawn anew at that moment takes the file back: whoever wants it presses again.
        with suppress(PageTimeoutError), page.expect_download(timeout=DOWNLOADS_WITHIN_MS) as coming:
            # As with keys alone; what a chart offers to a mouse is there while it is over the chart.
            button.focus()
            page.keyboard.press("Enter")
            return coming.value.suggested_filename, coming.value.path().read_bytes()
    pytest.fail("nothing was downloaded")


def test_the_numbers_of_every_chart_are_a_file(browser: Browser, url: str) -> None:
    """CSV with names of its columns, from the pathway to the last chart, and of the overview."""
    page = opened(browser, url)
    buttons = page.get_by_role("button", name="CSV")
    files = dict(saved(page, button) for button in buttons.all())
    assert sorted(files) == [
        f"hopwatch-orders-{what}.csv"
        for what in ("arrivals", "lag-in", "lag-out", "loss", "nodes-over-time", "pathway", "shares")
    ]
    lines = files["hopwatch-orders-lag-in.csv"].decode().splitlines()
    assert lines[0].startswith("start,seen_as,node,lag_in_stamps,lag_in_min_us,lag_in_p50_us,lag_in_p95_us")
    assert lines[1] == "2026-01-01T00:00:00Z,CLEAN,b,1000,8000,8000,20000,20000,20000,"
    assert len(lines) == 61
    page.goto(url)
    name, content = saved(page, page.get_by_role("button", name="CSV"))
    assert name == "hopwatch-overview.csv"
    assert {line.split(",")[0] for line in content.decode().splitlines()[1:]} == {
        *("orders", "parcels", "quiet", "rest", "sound")
    }
    page.close()


@pytest.mark.parametrize("scheme", soak_after(1, ["light", "dark"]))
def test_every_chart_is_a_picture(browser: Browser, url: str, scheme: str) -> None:
    """A PNG of its own ground, twice as fine as it is shown."""
    page = opened(browser, url, scheme)
    charts = page.locator(CHARTS)
    expect(charts).to_have_count(5)
    for chart in charts.all():
        box = chart.bounding_box()
        assert box is not None
        button = chart.locator(WITH_TOOLS).get_by_role("button", name="Download as PNG")
        name, content = saved(page, button)
        assert name.endswith(".png")
        assert content.startswith(PNG)
        wide, high = struct.unpack(">II", content[16:24])
        assert wide >= 1.9 * box["width"]
        assert high >= 1.9 * box["height"]
    page.close()


def test_every_chart_is_told_in_words_and_over_time_as_a_table(browser: Browser, url: str) -> None:
    """Each chart has a text with figures for screen readers, and a table that opens and stays open."""
    page = opened(browser, url)
    for chart in page.locator(CHARTS).all():
        said = chart.evaluate("one => (one.closest('[aria-label]') ?? one.querySelector('[aria-label]')).ariaLabel")
        assert re.search(r"\d", said), said
    page.get_by_text("As a table").nth(1).click()
    rows = page.locator(".hw-sheet tbody tr")
    expect(rows).to_have_count(60)
    assert rows.first.locator("th, td").all_inner_texts() == ["2026-01-01T00:00:00Z", "CLEAN", "b", "1,000", "1,000"]
    page.wait_for_timeout(7_000)
    expect(rows).to_have_count(60)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(browser: Browser, url: str, scheme: str) -> None:
    """By what WCAG calls AA, as the browser paints it: pages, banners, charts, labels of what is chosen."""
    page = opened(browser, f"{url}", scheme)
    page.wait_for_timeout(2_000)
    seen = page.evaluate(TEXTS)
    page.goto(f"{url}?stream=orders&node=nobody&window=2001-01-01T00:00:00Z")
    expect(page.locator('[data-testid="stAlert"]')).to_have_count(4)
    page.wait_for_timeout(2_000)
    seen += page.evaluate(TEXTS)
    page.goto(url)
    expect(page.locator(".hw-overview tbody tr")).to_have_count(5)
    seen += page.evaluate(TEXTS)
    page.goto(f"{url}?page=map&node=b")
    expect(page.locator(".hw-map-wide .hw-service.hw-chosen")).to_be_visible()
    seen += page.evaluate(TEXTS)
    page.close()
    assert {"LOSSY", "UNKNOWN", "SILENT", "IDLE", "CLEAN", "CSV", "lag in, ms"} <= {one["words"] for one in seen}
    weak = {
        (one["words"], one["kind"], round(one["contrast"], 2))
        for one in seen
        if one["contrast"] < (LARGE if one["is_large"] else READ)
    }
    assert sorted(weak) == []


@pytest.mark.parametrize("scheme", soak_after(1, ["light", "dark"]))
def test_a_report_opens_from_disk_without_scripts(browser: Browser, place: Workspace, scheme: Any) -> None:  # noqa: ANN401 - one of Playwright's words
    """A report from disk requests nothing but itself, and shows its tables, charts and readable text."""
    file = Path(place.folder / f"{scheme}.html")
    assert main(["report", "--config", str(place.config), "--html", str(file)]) == 0
    page = new_page(browser, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(file.as_uri())
    assert (asked, complaints) == ([file.as_uri()], [])
    assert page.locator(".hw-steps").count() == 5
    assert page.locator("svg path").first.bounding_box() is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    seen = page.evaluate(TEXTS)
    assert [one for one in seen if one["contrast"] < READ] == []
    page.close()
