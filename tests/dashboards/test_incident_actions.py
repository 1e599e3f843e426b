"""Tests of what a user can do about an incident on the page of alerts."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import pytest
import streamlit
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from hopwatch.alerts.storage import history_queries
from hopwatch.alerts.storage.acknowledgements import acknowledge_incident
from hopwatch.alerts.storage.history import Acknowledgement
from hopwatch.alerts.storage.silences import Silence, query_silences
from hopwatch.dashboards import login_page
from hopwatch.dashboards.pages.incident_actions import MAX_TEXT
from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.monitor.store import schema
from tests.support import health_data
from tests.support.dashboard_stores import build_windows, clock, fill, read_page, run_app, store_url
from tests.support.notifications import alert, notification
from tests.support.windows import at

ADA: Final = "ada@host.example"
LOSS: Final = notification(alerts=(alert(since_us=at(7)),), since_us=at(7), at_us=at(11))
KEY: Final = LOSS.key


@pytest.fixture
def store(tmp_path: Path) -> Engine:
    """Return a store with one open incident."""
    engine = fill(store_url(tmp_path), *build_windows())
    health_data.fire(engine, LOSS)
    return engine


@pytest.fixture
def page(store: Engine, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Return the page as ada sees it, who has logged in."""
    monkeypatch.setattr(login_page, "read_user_name", lambda: ADA)
    now = clock()
    return run_app(QueryCache(str(store.url), now), now, page="alerts")


def press(page: AppTest, label: str) -> AppTest:
    """Press the button of a label."""
    (button,) = (one for one in page.button if one.label.replace("\\", "") == label)
    button.click()
    page.run()
    assert not page.exception
    return page


def find_acknowledgement(store: Engine) -> Acknowledgement | None:
    """Return the acknowledgement of the incident as it is stored."""
    with schema.open_snapshot(store) as connection:
        (one,) = history_queries.query_open_incidents(connection)
    return one.acknowledgement


def find_silences(store: Engine) -> list[Silence]:
    """Return the silences that last."""
    with schema.open_snapshot(store) as connection:
        return query_silences(connection, clock().now_us())


def test_without_a_login_the_page_shows_commands_and_changes_nothing(store: Engine) -> None:
    """Nobody is known by name there."""
    now = clock()
    page = run_app(QueryCache(str(store.url), now), now, page="alerts")
    assert f"hopwatch alerts ack {KEY}" in read_page(page)
    assert not [one for one in page.button if "Acknowledge" in one.label or one.label == "Silence"]


def test_a_user_acknowledges_an_incident_and_takes_it_back(page: AppTest, store: Engine) -> None:
    """In their own name and with their note; the page shows it at once."""
    page.text_input(key=f"note-{KEY}").input("on it")
    press(page, f"Acknowledge as {ADA}")
    assert find_acknowledgement(store) == Acknowledgement(ADA, clock().now_us(), "on it")
    assert f"acknowledged by {ADA}" in read_page(page)
    press(page, "Take the acknowledgement back")
    assert find_acknowledgement(store) is None
    assert f"Acknowledge as {ADA}" in [one.label.replace("\\", "") for one in page.button]


def test_an_incident_that_somebody_acknowledged_meanwhile_stays_theirs(page: AppTest, store: Engine) -> None:
    """The first one has it, and the page says who that is."""
    first = acknowledge_incident(store, KEY, Acknowledgement("bob", at(10), ""))
    press(page, f"Acknowledge as {ADA}")
    assert find_acknowledgement(store) == first
    assert "acknowledged by bob" in read_page(page)


def test_a_user_silences_an_incident_and_ends_the_silence(page: AppTest, store: Engine) -> None:
    """For the span that was chosen, from now on."""
    page.selectbox(key=f"span-{KEY}").select("30 min")
    page.text_input(key=f"why-{KEY}").input("restore")
    press(page, "Silence")
    now_us = clock().now_us()
    assert find_silences(store) == [Silence(KEY, now_us, now_us + 1_800_000_000, ADA, "restore", 1)]
    assert "Silences: 1" in read_page(page)
    press(page, "End this silence")
    assert find_silences(store) == []


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("  ", "Give a reason, for others."),
        ("a\x1b[31m", "Give one line of printable text"),
        ("x" * (MAX_TEXT + 1), f"of at most {MAX_TEXT} characters."),
    ],
)
def test_a_reason_that_cannot_be_shown_to_others_is_refused(why: str, told: str, page: AppTest, store: Engine) -> None:
    """The page says what is to be given, and nothing is silenced."""
    page.text_input(key=f"why-{KEY}").input(why)
    assert told in read_page(press(page, "Silence"))
    assert find_silences(store) == []


def test_an_incident_that_has_ended_meanwhile_is_not_acknowledged(page: AppTest, store: Engine) -> None:
    """The page says that no incident of this key is open."""
    with sqlite3.connect(str(store.url.database)) as connection:
        connection.execute("DELETE FROM alert_incidents")
    assert f"no incident '{KEY}' is open" in read_page(press(page, f"Acknowledge as {ADA}")).replace("\\", "")


def test_a_store_that_cannot_be_written_is_told(page: AppTest, store: Engine) -> None:
    """The page says so, and goes on."""
    with sqlite3.connect(str(store.url.database)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON alert_acknowledgements BEGIN SELECT 1 FROM gone; END")
    told = read_page(press(page, f"Acknowledge as {ADA}"))
    assert "no such table: main.gone" in told.replace("\\", "")
    assert find_acknowledgement(store) is None


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": ADA, "name": "Ada"}, ADA),
        ({"name": "Ada"}, "Ada"),
        ({}, ""),
        ({"name": "a\nb"}, "'a\\nb'"),
        ({"name": "x" * 900}, "x" * login_page.MAX_NAME),
    ],
)
def test_a_user_is_named_by_address_or_name(claims: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one line of printable text of a bounded length."""
    monkeypatch.setattr(login_page, "_needs_login", lambda: True)
    monkeypatch.setattr(streamlit, "user", claims)
    assert login_page.read_user_name() == name
