"""The dashboard as a person meets it: a real Chromium over a store that the monitor's own code has filled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.contract.batch import BatchKind
from tests.e2e.browser import REFRESH_MS, SEEN_WITHIN_MS, STARTS_WITHIN_S, cell_at, dashboard, drag_across, new_page
from tests.e2e.page_elements import GRAPH, drawn_at, figure, find_figure, find_row, row
from tests.support.command_call import called
from tests.support.dashboard_stores import HOSTILE, build_windows, fill
from tests.support.micro_batches import run_once
from tests.support.program import run_program
from tests.support.spool import STREAM_CONFIGS, at_us, make_batch, observation_batch, window_ms, write_segment
from tests.support.workspace import CONFIGURATION, Workspace

MINUTES: Final = 12
BAD_FROM: Final = 7
"""From this minute on the last two of 50 messages do not arrive at b."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place whose monitor has judged twelve minutes, five of them with a loss of 4 % at b."""
    made = Workspace(tmp_path_factory.mktemp("dashboard")).configure(CONFIGURATION)
    engine = dialect.create_engine(made.store_url)
    schema.prepare_store(engine)
    run_once(engine, STREAM_CONFIGS, list(_segments(made.folder / "spool" / "0")))
    engine.dispose()
    return made


def _segments(folder: Path) -> Iterator[Path]:
    for number in range(MINUTES):
        numbers = range(number * 50, number * 50 + 50)
        told: dict[str, Any] = {
            "window_start_ms": window_ms(number),
            "seq": number,
            "complete_through_us": at_us(60 * number + 65),
        }
        arrived = numbers[:-2] if number >= BAD_FROM else numbers
        batches = [observation_batch(numbers, **told), observation_batch(arrived, "b", **told)]
        yield write_segment(folder / f"{number:010d}.seg", *batches, arrival_us=at_us(60 * number + 70))
    byes = [
        make_batch(BatchKind.BYE, node, seq=MINUTES, complete_through_us=at_us(60 * MINUTES + 400))
        for node in ("a", "b")
    ]
    yield write_segment(folder / "9000000000.seg", *byes, arrival_us=at_us(60 * MINUTES + 400))


def reported(place: Workspace, *flags: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what ``hopwatch report --json`` says of the stream."""
    return json.loads(called("report", "--config", str(place.config), "--json", *flags).stdout)["streams"][0]


def test_a_person_finds_the_bad_node_by_clicking(place: Workspace, url: str, page: Page) -> None:
    """From the overview to the stream to the node to a window, with the numbers of the report at each step."""
    hour = reported(place, "--by", "hour")["hours"][0]
    page.goto(url)
    expect(page.locator(".hw-overview tbody tr")).to_have_count(1)
    page.get_by_role("link", name="orders").click()
    expect(page.locator(".hw-matrix")).to_be_visible()
    assert "stream=orders" in page.url
    assert figure(page, "known") == f"{hour['known']:,}"
    assert figure(page, "surely lost") == f"{hour['lost_lower']:,}" == "10"
    assert row(page, "count") == [f"{node['seen']:,}" for node in hour["nodes"]]
    assert row(page, "loss of node") == [f"{node['loss']:,}" for node in hour["nodes"]]
    page.locator(GRAPH).first.click(position=drawn_at(page, 1, 2))
    page.wait_for_url(re.compile("node=b"), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-matrix th.hw-chosen")).to_have_text("b")
    # The charts of another node take the place of these.
    page.wait_for_timeout(REFRESH_MS)
    heat, cell = cell_at(page, "b", at_us(8 * 60))
    heat.hover(position=cell)
    expect(page.locator(".hw-live-tip").first).to_have_text(
        re.compile("^2026-01-01 00:08 UTC\nb: . LOSSY, 4.00% lost$")
    )
    heat.click(position=cell)
    page.wait_for_url(re.compile("window=2026-01-01T00%3A08%3A00Z"), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-title", has_text="2026-01-01 00:08 UTC")).to_be_visible()
    window = reported(place)["windows"][8]
    # The figures and the table of the page before may stand for a moment beside the title of this one.
    assert window["lost_lower"] == 2
    expect(find_figure(page, "surely lost")).to_have_text("2")
    expect(find_row(page, "loss of node")).to_have_text([f"{node['loss']:,}" for node in window["nodes"]])


def test_a_drag_chooses_the_range_of_all_charts_and_stays(url: str, page: Page) -> None:
    """A chosen range is in the URL, survives a refresh and a reload, and a button leads back."""
    page.goto(f"{url}?stream=orders&node=b")
    drag_across(page, 0.88, 0.96)
    page.wait_for_url(re.compile("from=2026.*to=2026"), timeout=SEEN_WITHIN_MS)
    chosen = page.url
    page.wait_for_timeout(REFRESH_MS)
    assert page.url == chosen
    page.reload()
    expect(page.get_by_role("button", name="Back to the newest")).to_be_visible()
    assert page.url == chosen
    page.get_by_role("button", name="Back to the newest").click()
    page.wait_for_url(lambda to: "from=" not in to, timeout=SEEN_WITHIN_MS)


def test_hostile_names_do_nothing(browser: Browser, tmp_path: Path) -> None:
    """No dialog, no image, no error: in tables, graph and charts they are text."""
    place = Workspace(tmp_path).configure()
    fill(place.store_url, *build_windows(5, stream=HOSTILE[0], names=HOSTILE, lost={HOSTILE[0]: 5})).dispose()
    page = new_page(browser)
    dialogs: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    with dashboard(place.config) as started:
        page.goto(started)
        page.get_by_role("link", name=HOSTILE[0]).click()
        expect(page.locator(".hw-matrix thead")).to_contain_text(HOSTILE[0])
        expect(page.locator(GRAPH).first).to_be_visible()
        page.locator(GRAPH).first.hover(position=drawn_at(page, 1, 2))
        assert page.locator("img[src=x]").count() == 0
        assert page.locator(".hw-matrix thead b, .hw-matrix thead strong").count() == 0
        page.close()
    assert dialogs == []


def test_ctrl_c_ends_it_and_a_taken_port_is_told(place: Workspace, url: str) -> None:
    """Exit 3 with what to do for a port that somebody has; exit 2 for a configuration that is not there."""
    port = url.rstrip("/").rpartition(":")[2]
    base = ["hopwatch", "dashboard", "--port", port, "--config"]
    taken = run_program([*base, str(place.config)], timeout=STARTS_WITHIN_S)
    assert taken.returncode == 3
    assert f"the dashboard cannot listen at 127.0.0.1:{port}" in taken.stderr
    wrong = run_program([*base, "nowhere.toml"], timeout=STARTS_WITHIN_S)
    assert wrong.returncode == 2
    assert "nowhere.toml" in wrong.stderr
