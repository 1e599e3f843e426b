"""A dashboard with a login: a real Chromium, and a real provider of OpenID Connect that knows two people."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.e2e.browser import dashboard, free_port, new_page
from tests.e2e.login_provider import CLIENT_ID, CLIENT_SECRET, PEOPLE, provider
from tests.support import health_data
from tests.support.dashboard_stores import build_windows, fill
from tests.support.notifications import alert, notification
from tests.support.workspace import CONFIGURATION, Workspace

LOGIN: Final = """
[dashboard.login]
url = "{url}"
provider = "{issuer}"
client_id = "{client}"
client_secret_file = "client_secret"
allowed = ["@host.example"]
"""
STREAM: Final = "orders-of-the-store"
INCIDENT: Final = notification(stream=STREAM, alerts=(alert(stream=STREAM),))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place with a store."""
    made = Workspace(tmp_path_factory.mktemp("login"))
    engine = fill(made.store_url, *build_windows(5, stream=STREAM))
    health_data.fire(engine, INCIDENT)
    engine.dispose()
    return made


@pytest.fixture(scope="module")
def url(place: Workspace) -> Iterator[str]:
    """Yield the URL of a dashboard over it that lets in who has an address at host.example."""
    port = free_port()
    (place.folder / "client_secret").write_text(CLIENT_SECRET + "\n")
    with provider(f"http://127.0.0.1:{port}/oauth2callback") as issuer:
        place.configure(CONFIGURATION + LOGIN.format(url=f"http://127.0.0.1:{port}", issuer=issuer, client=CLIENT_ID))
        with dashboard(place.config, port) as started:
            yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a page of somebody who was never here."""
    opened = new_page(browser, viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


def received(page: Page) -> list[bytes]:
    """Return what the page is sent from now on."""
    frames: list[bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: frames.append(data if isinstance(data, bytes) else data.encode()))

    page.on("websocket", listen)
    return frames


def log_in(page: Page, url: str, email: str) -> None:
    """Say who one is."""
    page.goto(url)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=email).click()


def log_out(page: Page, button: str) -> None:
    """Go, and wait until the provider has sent one back."""
    with page.expect_response(lambda response: "/logout?" in response.url):
        page.get_by_role("button", name=button).click()
    page.wait_for_load_state()


def test_who_is_let_in_sees_the_pages_until_the_log_out(place: Workspace, url: str, page: Page) -> None:
    """Before and after it nothing of the store is sent; in between the login outlives a reload.

    No secret is written to a file: Streamlit is told in memory.
    """
    before = received(page)
    page.goto(url)
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert not [frame for frame in before if STREAM.encode() in frame]
    log_in(page, url, PEOPLE[0])
    row = page.locator(".hw-overview tbody tr")
    expect(row).to_contain_text(STREAM)
    page.reload()
    expect(row).to_contain_text(STREAM)
    assert [frame for frame in before if STREAM.encode() in frame]
    files = [one for one in place.folder.rglob("*") if one.is_file() and CLIENT_SECRET.encode() in one.read_bytes()]
    assert [one.name for one in files] == ["client_secret"]
    log_out(page, "Log out")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    after = received(page)
    page.goto(f"{url}?stream={STREAM}&node=b")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert page.locator(".hw-matrix").count() == 0
    # The URL itself comes back; what else the store holds does not.
    assert after
    assert not [frame for frame in after if b"Nodes over time" in frame]


def test_who_is_let_in_acknowledges_and_silences_in_their_name(url: str, page: Page) -> None:
    """By buttons, with a note and a reason; the page shows both at once, and takes both back."""
    log_in(page, url, PEOPLE[0])
    expect(page.locator(".hw-overview tbody tr")).to_contain_text(STREAM)
    page.goto(f"{url}?page=alerts")
    incident = page.locator(".hw-incident")
    with opened_actions(page):
        page.get_by_label("Note for others").fill("on it")
        page.get_by_role("button", name=f"Acknowledge as {PEOPLE[0]}").click()
        expect(incident).to_contain_text(f"acknowledged by {PEOPLE[0]}")
        expect(incident).to_contain_text("on it")
    with opened_actions(page):
        page.get_by_label("Reason").fill("restore")
        page.get_by_role("button", name="Silence", exact=True).click()
        expect(incident).to_contain_text("silenced until")
    page.get_by_role("button", name="End this silence").click()
    expect(incident).not_to_contain_text("silenced until")
    with opened_actions(page):
        page.get_by_role("button", name="Take the acknowledgement back").click()
        expect(incident).not_to_contain_text("acknowledged by")


@contextmanager
def opened_actions(page: Page) -> Iterator[None]:
    """Open what can be done about the incident; it is closed at the end, as it takes the next click elsewhere."""
    page.get_by_role("button", name="Acknowledge or silence").click()
    reason = page.get_by_label("Reason")
    expect(reason).to_be_visible()
    yield
    page.keyboard.press("Escape")
    expect(reason).to_be_hidden()


def test_who_is_not_allowed_is_told_and_sees_nothing(url: str, page: Page) -> None:
    """With the address that was refused, and a way to be somebody else."""
    sent = received(page)
    log_in(page, url, PEOPLE[1])
    expect(page.get_by_text(f"{PEOPLE[1]} is not among the addresses that have access.")).to_be_visible()
    assert sent
    assert not [frame for frame in sent if STREAM.encode() in frame]
    log_out(page, "Log in with another account")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_without_its_package_the_dashboard_does_not_start(tmp_path: Path) -> None:
    """Exit 3 before anything listens, with what to install: a login that cannot be asked for is never left out."""
    place = Workspace(tmp_path).configure(
        CONFIGURATION + LOGIN.format(url="http://127.0.0.1:1", issuer="http://127.0.0.1:2", client=CLIENT_ID)
    )
    (tmp_path / "client_secret").write_text(CLIENT_SECRET)
    (tmp_path / "authlib").mkdir()
    (tmp_path / "authlib" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='authlib')")
    command = [sys.executable, "-m", "hopwatch", "dashboard", "--config", str(place.config)]
    paths = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environ = os.environ | {"PYTHONPATH": paths}
    ended = subprocess.run(
        [*command, "--port", str(free_port())], capture_output=True, text=True, check=False, env=environ
    )
    told = "hopwatch: the Python package 'authlib' is not installed: pip install 'hopwatch[monitor,dashboards]'\n"
    assert (ended.returncode, ended.stderr) == (3, told)
