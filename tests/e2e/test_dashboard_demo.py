"""The demo with a drop of 2 % at router, and a person who looks for it in the dashboard that the demo has started."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import REFRESH_MS, SEEN_WITHIN_MS, cell_at, chromium, drag_across, free_port, new_page
from tests.e2e.page_elements import GRAPH, drawn_at, find_figure, find_row, row

HOPWATCH: Final = (sys.executable, "-m", "hopwatch")
FLAGS: Final = "demo --drop router=0.02 --rate 300 --dashboard-port"
FINAL_WITHIN_MS: Final = 240_000
"""A minute that had begun, one that is whole, and what both take to be final."""
ENDS_WITHIN_S: Final = 90
INTERRUPTED: Final = 1
"""Its exit code when it could not compare: Ctrl-C twice."""


@dataclass
class Running:
    """A demo that runs, and what it has said."""

    folder: Path
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read what it says until it ends."""
        assert self.process.stdout is not None
        self.said.extend(self.process.stdout)

    def window(self, start: str) -> Any:  # noqa: ANN401 - what JSON holds
        """Return what ``hopwatch report --json`` says of one window."""
        command = [*HOPWATCH, "report", "--config", str(self.folder / "hopwatch.toml"), "--json", "--from", start]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return told["streams"][0]["windows"][0]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Running]:
    """Yield a demo that goes on until Ctrl-C."""
    folder = tmp_path / "demo"
    command = [*HOPWATCH, *FLAGS.split(), str(free_port()), "--workdir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        running = Running(folder, process)
        reader = threading.Thread(target=running.read)
        reader.start()
        try:
            yield running
        finally:
            # Killed it would leave its monitor and its dashboard behind.
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_WITHIN_S)
            process.kill()
            reader.join(ENDS_WITHIN_S)


def url_of(demo: Running) -> str:
    """Return the URL that it prints."""
    for _ in range(SEEN_WITHIN_MS // 100):
        found = [re.fullmatch(r"the dashboard is at (http://\S+)\n", line) for line in demo.said]
        for match in filter(None, found):
            return match[1]
        time.sleep(0.1)
    pytest.fail(f"no URL is said: {demo.said}")


def left_over(demo: Running) -> list[str]:
    """Return the processes that still name the folder of the demo."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return [line for line in listed.splitlines() if str(demo.folder) in line]


@pytest.mark.soak  # test_dashboard.py finds a bad node by default
def test_a_person_finds_the_bad_node_of_the_demo(demo: Running) -> None:
    """Worst stream, worst node, the window, its numbers; the URL restores it all, and a refresh keeps a zoom.

    After Ctrl-C no process is left, and the last line says how to look again.
    """
    expect.set_options(timeout=SEEN_WITHIN_MS)
    with chromium() as browser:
        page = new_page(browser, viewport={"width": 1280, "height": 900})
        page.goto(url_of(demo))
        worst = page.locator(".hw-overview tbody tr").first
        expect(worst).to_contain_text("LOSSY", timeout=FINAL_WITHIN_MS)
        worst.get_by_role("link", name="flights").click()
        # The table of all nodes says which one it is; the graph is clicked.
        expect(page.locator(".hw-matrix")).to_be_visible()
        names = page.locator(".hw-matrix thead th").all_inner_texts()[1:]
        losses = [int(cell.replace(",", "")) for cell in row(page, "loss of node")[: len(names)]]
        assert names[losses.index(max(losses))] == "router"
        at = drawn_at(page, names.index("router"), len(names))
        page.locator(GRAPH).first.click(position=at)
        page.wait_for_url(re.compile("node=router"), timeout=SEEN_WITHIN_MS)
        expect(page.locator(".hw-matrix th.hw-chosen")).to_have_text("router")
        page.wait_for_timeout(REFRESH_MS)
        heat, cell = cell_at(page, "router")
        heat.click(position=cell)
        page.wait_for_url(re.compile("window="), timeout=SEEN_WITHIN_MS)
        check_window(demo, page)
        again = new_page(browser, viewport={"width": 1920, "height": 1080})
        again.goto(page.url)
        check_window(demo, again)
        expect(again.locator(".hw-matrix th.hw-chosen")).to_have_text("router")
        drag_across(again, 0.80, 0.97)
        again.wait_for_url(re.compile("from=.*to="), timeout=SEEN_WITHIN_MS)
        zoomed = again.url
        again.wait_for_timeout(REFRESH_MS)
        expect(again.get_by_role("button", name="Back to the newest")).to_be_visible()
        assert again.url == zoomed
    demo.process.send_signal(signal.SIGINT)
    demo.process.send_signal(signal.SIGTERM)
    assert demo.process.wait(ENDS_WITHIN_S) == INTERRUPTED
    assert left_over(demo) == []
    assert demo.said[-1] == f"the dashboard of this run: hopwatch dashboard --config {demo.folder}/hopwatch.toml\n"


def check_window(demo: Running, page: Page) -> None:
    """Check that a page shows the numbers of the report for the window that its URL names, which lost at router."""
    found = re.search(r"window=([^&]+)", page.url)
    assert found is not None
    window = demo.window(found[1].replace("%3A", ":"))
    expect(page.locator(".hw-title", has_text=f"{window['window_start'][:16].replace('T', ' ')} UTC")).to_be_visible()
    assert (window["status"], window["verdict"]) == ("FINAL", "LOSSY")
    # The figures and the table of the page before may stand for a moment beside the title of this one.
    expect(find_figure(page, "known")).to_have_text(f"{window['known']:,}")
    expect(find_figure(page, "surely lost")).to_have_text(f"{window['lost_lower']:,}")
    expect(find_row(page, "count")).to_have_text([f"{node['seen']:,}" for node in window["nodes"]])
    expect(find_row(page, "loss of node")).to_have_text([f"{node['loss']:,}" for node in window["nodes"]])
    assert {node["node"] for node in window["nodes"] if node["loss"]} == {"router"}
