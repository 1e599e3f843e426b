"""From an alert to its cause as a person goes: a real Chromium over a store in which the monitor has decided."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.texts import loss_bounds
from tests.e2e.browser import REFRESH_MS, SEEN_WITHIN_MS
from tests.support.alert_batches import BEFORE_AMENDED, alerting, play
from tests.support.command_call import called
from tests.support.micro_batches import MicroBatches
from tests.support.spool import STREAM_CONFIGS
from tests.support.workspace import CONFIGURATION, Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place whose monitor has judged minutes that lose messages on their way to b, and told of it."""
    made = Workspace(tmp_path_factory.mktemp("signs")).configure(CONFIGURATION)
    engine = dialect.create_engine(made.store_url)
    schema.prepare_store(engine)
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), made.folder / "segments", BEFORE_AMENDED)
    engine.dispose()
    return made


def told(place: Workspace, *command: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what a command says as JSON."""
    return json.loads(called(*command, "--config", str(place.config), "--json").stdout)


def test_a_person_gets_from_an_alert_to_its_node_by_clicking(place: Workspace, url: str, page: Page) -> None:
    """From the overview to what fires to the node and the window, with the numbers of the commands at each step."""
    incidents = told(place, "alerts", "list")["incidents"]
    (loss,) = [one for one in incidents if one["kind"] == "loss"]
    (alert,) = loss["alerts"]
    page.goto(url)
    page.get_by_role("link", name="Outliers and alerts").click()
    fires = sum(one["kind"] != "heartbeat" for one in incidents)
    expect(page.locator(".hw-title").first).to_have_text(f"Firing now: {fires} incidents")
    incident = page.locator(".hw-incident").filter(has_text=loss["key"])
    expect(incident).to_contain_text("PAGE")
    row = page.locator(".hw-signs tr").filter(has_text=alert["summary"]).first
    expect(row).to_contain_text(f"{alert['affected']:,} of {alert['out_of']:,} messages")
    row.get_by_role("link", name=alert["node"], exact=True).click()
    expect(page.locator(".hw-matrix th.hw-chosen")).to_have_text(alert["node"])
    assert f"window={alert['window_start'].replace(':', '%3A')}" in page.url
    windows = told(place, "report")["streams"][0]["windows"]
    (window,) = [one for one in windows if one["window_start"] == alert["window_start"]]
    losses = page.locator(".hw-matrix tr").filter(has=page.locator("th", has_text=re.compile("^loss of node$")))
    of_nodes = [
        loss_bounds.format_bounds(node["loss"], node["loss_lower"], node["loss_upper"]) for node in window["nodes"]
    ]
    assert losses.locator("td").all_inner_texts() == of_nodes


def test_what_is_set_aside_leads_to_its_records(place: Workspace, url: str, page: Page) -> None:
    """An alert that is the monitor's own leads to the page of quality, with the counts of the report."""
    page.goto(f"{url}?page=alerts")
    page.get_by_role("link", name="the monitor itself").first.click()
    table = page.locator(".hw-signs").filter(has=page.locator("caption", has_text="Records set aside, by reason"))
    expect(table).to_be_visible()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert {row[0]: row[3] for row in rows} == {
        reason: f"{count:,}" for reason, count in told(place, "report")["accounts"]["set_aside"].items()
    }


def test_a_search_stays_in_the_url_and_over_a_refresh(url: str, page: Page) -> None:
    """A search is in the URL and survives a refresh, and so does a text that is not yet submitted."""
    page.goto(f"{url}?page=probes")
    rows = page.locator(".hw-signs tbody tr")
    expect(rows).to_have_count(2)
    box = page.get_by_label("Node, probe or stream")
    box.fill("probe-of-b")
    page.wait_for_timeout(REFRESH_MS)
    expect(box).to_have_value("probe-of-b")
    expect(rows).to_have_count(2)
    box.press("Enter")
    page.wait_for_url(re.compile("find=probe-of-b"), timeout=SEEN_WITHIN_MS)
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Node, probe or stream")).to_have_value("probe-of-b")


@pytest.mark.parametrize(("width_px", "kind"), [(1_280, "wide"), (390, "narrow")])
def test_the_map_that_fits_the_page_leads_to_a_node(url: str, page: Page, width_px: int, kind: str) -> None:
    """All cards are within the page; a click on one shows the service, and a second click takes it back."""
    page.set_viewport_size({"width": width_px, "height": 900})
    page.goto(f"{url}?page=map")
    cards = page.locator(".hw-service:visible")
    expect(cards).to_have_count(2, timeout=SEEN_WITHIN_MS)
    expect(page.locator(f".hw-map-{kind} .hw-service:visible")).to_have_count(2)
    boxes = [card.bounding_box() for card in cards.all()]
    assert all(box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width_px for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator('.hw-service[aria-label^="b:"]:visible').click()
    page.wait_for_url(re.compile("node=b"), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-labels tbody th")).to_have_text("orders")
    page.locator(".hw-service.hw-chosen:visible").click()
    expect(page.locator(".hw-labels")).to_have_count(0)
    assert "node" not in page.url
