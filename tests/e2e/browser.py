"""A real Chromium, and the dashboard that it looks at."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, Playwright, Position, expect, sync_playwright

from hopwatch.dashboards.charts.time_chart import BOTTOM, LEFT, RIGHT, ROW_HEIGHT, TOP
from hopwatch.probes.contract.limits import WINDOW_US

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--in-process-gpu", "--js-flags=--no-opt"),
)
SEEN_WITHIN_MS: Final = 120_000
REFRESH_MS: Final = 7_000
"""Longer than it takes a page to be drawn anew by itself."""
STARTS_WITHIN_S: Final = 180.0
ENDS_WITHIN_S: Final = 90.0
WITHDRAWN: Final = re.compile(
    r"^[^\n]*Error executing deferred callable .*?MediaFileStorageError: Deferred file \w+ not found$",
    re.MULTILINE | re.DOTALL,
)
"""Words of Streamlit about a file that was asked for while the page was drawn anew."""


HEAT: Final = ".st-key-chart-nodes-over-time .hw-live-picture"
ARRIVALS: Final = ".st-key-chart-arrivals .hw-live-picture"


def cell_at(page: Page, node: str, start_us: int | None = None) -> tuple[Locator, Position]:
    """Return the heat map, and where the cell of a node at a minute is in it; without one the first of the range."""
    map_ = page.locator(HEAT)
    svg = map_.locator("svg")
    expect(svg.locator("text", has_text=re.compile(f"^{node}$"))).to_be_visible()
    from_ms, length_ms, wide = (float(svg.get_attribute(name) or "nan") for name in ("data-from", "data-ms", "width"))
    rows = svg.locator(':scope > text[text-anchor="end"]').all_text_contents()
    middle_ms = (from_ms if start_us is None else start_us / 1e3) + WINDOW_US / 2e3
    x = LEFT + (wide - LEFT - RIGHT) * (middle_ms - from_ms) / length_ms
    return map_, {"x": x, "y": TOP + (rows.index(node) + 0.5) * ROW_HEIGHT}


def drag_across(page: Page, first: float, last: float) -> None:
    """Drag across what arrived, from one part of its width to another."""
    chart = page.locator(ARRIVALS)
    expect(chart.locator("svg")).to_be_visible()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    height = box["y"] + (TOP + box["height"] - BOTTOM) / 2
    page.mouse.move(box["x"] + box["width"] * first, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (first + last) / 2, height, steps=5)
    page.mouse.move(box["x"] + box["width"] * last, height, steps=5)
    page.mouse.up()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the Chromium of this machine."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("there is no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = _launch(playwright, program)
        yield browser
        browser.close()


def _launch(playwright: Playwright, program: str) -> Browser:
    """Start the browser, which crashes now and then before it has opened a page: then once more."""
    try:
        return playwright.chromium.launch(executable_path=program, args=list(FLAGS))
    except Error:
        return playwright.chromium.launch(executable_path=program, args=list(FLAGS))


def new_page(browser: Browser, **options: Any) -> Page:  # noqa: ANN401 - what Playwright takes
    """Open a page in a context of its own, which waits as long as all that is looked for."""
    page = browser.new_page(**options)
    page.set_default_timeout(SEEN_WITHIN_MS)
    return page


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def dashboard(config: Path, port: int | None = None, *flags: str) -> Iterator[str]:
    """Yield the URL of ``hopwatch dashboard`` over a configuration; Ctrl-C ends it, and it ends well."""
    port = port or free_port()
    base = [
        sys.executable,
        "-m",
        "hopwatch",
        "dashboard",
        "--config",
        str(config),
        "--port",
        str(port),
    ]
    with subprocess.Popen([*base, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            _await(port, process)
            yield f"http://127.0.0.1:{port}/"
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=ENDS_WITHIN_S)
            told = WITHDRAWN.sub("", told)
            assert (process.returncode, "Traceback" in told) == (0, False), told
        finally:
            process.kill()


def _await(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    process.kill()
    pytest.fail(f"the dashboard did not start: {process.communicate()[0]}")
