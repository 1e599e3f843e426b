"""A person at a browser: how long a page takes until its last chart is drawn, in a real Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.contestant import ContestantError
from hopwatch.dashboards.views import display_range
from hopwatch.dashboards.views.address import RangePreset

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS: Final = 120_000
LOOK_MS: Final = 10
REST_MS: Final = 1_000
"""How long a person looks at a page before the next click."""
HOUR_MS: Final = 3_600_000
"""As much longer than asked for is a range that is shown in whole hours."""
CHARTS, GRAPHS = 5, 2
OVERVIEW: Final = "document.querySelectorAll('.hw-overview tbody tr').length > 0"
PLAIN: Final = "document.querySelectorAll('[data-testid=\"stVegaLiteChart\"] :is(canvas, svg)').length === 3"
EMPTY: Final = "document.querySelector('.there') !== null"


def stream(range_name: str) -> str:
    """Return what is true of the page of a stream once all of its charts are drawn, those of the range asked for."""
    length_ms = display_range.LENGTHS_US[RangePreset(range_name)] // 1_000
    return (
        "(() => {"
        " const charts = [...document.querySelectorAll('.hw-live svg')];"
        f" return charts.length === {CHARTS} && document.querySelectorAll('.stEChartsChart canvas').length === {GRAPHS}"
        f" && charts.every((one) => Math.abs(one.dataset.ms - {length_ms}) <= {HOUR_MS}); }})()"
    )


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the Chromium of this machine.

    Raises:
        ContestantError: there is none.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise ContestantError("there is no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


def loads_s(browser: Browser, url: str, is_drawn: str, times: int) -> tuple[list[float], list[float]]:
    """Return how long a page takes in a browser session that is new, so many times, and in a new tab of each."""
    new_s: list[float] = []
    again_s: list[float] = []
    for _ in range(times):
        session = browser.new_context(viewport={"width": 1280, "height": 900})
        for spans_s in (new_s, again_s):
            page = session.new_page()
            page.set_default_timeout(PATIENCE_MS)
            spans_s.append(_timed(page, is_drawn, lambda: page.goto(url, wait_until="commit")))  # noqa: B023 - at once
            page.close()
        session.close()
    return new_s, again_s


def changes_s(browser: Browser, url: str, ranges: Sequence[str], times: int) -> dict[str, list[float]]:
    """Return how long each change to another range takes from the click to the last chart over time, in rounds of all.

    The first of each may be the first that the server is asked for it.
    """
    spans_s: dict[str, list[float]] = {name: [] for name in ranges}
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(_CLICKED)
    _timed(page, stream("1h"), lambda: page.goto(url, wait_until="commit"))
    for _ in range(times):
        for name in (*ranges, "1h"):
            page.wait_for_timeout(REST_MS)
            page.evaluate(_AWAIT.replace("DRAWN", stream(name)))
            page.get_by_role("radio", name=name, exact=True).click()
            took_ms = page.evaluate("window.drawn")
            if name in spans_s:
                spans_s[name].append(took_ms / 1e3)
    page.close()
    return spans_s


_CLICKED: Final = "addEventListener('click', () => { window.clickedAt = performance.now(); }, true);"
_AWAIT: Final = """() => {
  window.clickedAt = Infinity;
  window.drawn = new Promise((done) => {
    const look = () => {
      if (performance.now() > window.clickedAt && DRAWN) done(performance.now() - window.clickedAt);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}"""
"""The browser's own clock, from a person's click to the frame in which all is there."""


def _timed(page: Page, is_drawn: str, act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    page.wait_for_function(is_drawn, polling=LOOK_MS)
    return time.perf_counter() - began_s
