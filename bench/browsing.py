"""A person at a browser: how long a page takes until its last chart is drawn, in a real Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.alone import ContestantError

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS: Final = 120_000
LOOK_MS: Final = 10
REST_MS: Final = 1_000
"""How long a person looks at a page before the next click."""
OVERVIEW: Final = "document.querySelectorAll('.hw-overview tbody tr').length > 0"
PLAIN: Final = "document.querySelectorAll('[data-testid=\"stVegaLiteChart\"] canvas').length === 3"


def stream(range_name: str) -> str:
    """Return what is true of the page of a stream once all of its charts are drawn, those of the range asked for."""
    return (
        "['arrivals', 'lag-in', 'lag-out', 'durations'].every(name => document.querySelector("
        f'`[class*="st-key-${{name}}-None-None-{range_name}"] :is(canvas, svg)`))'
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
    """Return how long each change to another range takes by a click, so many rounds of all."""
    spans_s: dict[str, list[float]] = {name: [] for name in ranges}
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    _timed(page, stream("1h"), lambda: page.goto(url, wait_until="commit"))
    for _ in range(times):
        for name in (*ranges, "1h"):
            page.wait_for_timeout(REST_MS)
            button = page.get_by_role("radio", name=name, exact=True).or_(
                page.get_by_role("button", name=name, exact=True)
            )
            took_s = _timed(page, stream(name), button.first.click)
            if name in spans_s:
                spans_s[name].append(took_s)
    page.close()
    return spans_s


def _timed(page: Page, is_drawn: str, act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    page.wait_for_function(is_drawn, polling=LOOK_MS)
    return time.perf_counter() - began_s
