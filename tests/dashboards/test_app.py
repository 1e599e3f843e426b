"""Tests of the pages in every state that they may meet, as Streamlit runs them, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.dashboards.app import GarbageTimer
from hopwatch.dashboards.queries.query_cache import FRESH_FOR_US, QueryCache
from hopwatch.dashboards.views import series
from hopwatch.dashboards.views.address import PageName
from hopwatch.monitor.results import Status, Verdict
from tests.support import health_data
from tests.support.dashboard_stores import (
    HOSTILE,
    build_windows,
    chain,
    clock,
    drop_all_digests,
    fill,
    open_page,
    read_elements,
    read_page,
    run_app,
    store_url,
)
from tests.support.notifications import notification
from tests.support.windows import at, window


def test_without_a_store_the_page_says_how_to_send_the_first_observation(tmp_path: Path) -> None:
    """With the commands, and the configuration that the dashboard was given."""
    tested = open_page(store_url(tmp_path))
    assert not tested.exception
    told = read_page(tested)
    assert "There is no store yet" in told
    assert "hopwatch run --config hopwatch.toml" in told
    assert 'Probe(stream="orders"' in told


def test_of_a_store_that_was_never_read_nobody_says_that_it_is_empty(tmp_path: Path) -> None:
    """The banner says what is wrong, and nothing else is claimed."""
    (tmp_path / "store.db").write_bytes(b"this is no database" * 1_000)
    tested = open_page(store_url(tmp_path))
    assert not tested.exception
    assert "The store cannot be read" in tested.error[0].value.replace("\\", "")
    assert "no observation is in it" not in read_page(tested)
    assert "Nothing was read yet" not in read_page(tested)


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    """A monitor has worked, and nothing came."""
    fill(store_url(tmp_path), pathways={"orders": chain("a", "b")})
    tested = open_page(store_url(tmp_path))
    assert not tested.exception
    assert "no observation is in it" in read_page(tested)


@pytest.mark.usefixtures("healthy")
def test_a_healthy_stream_is_clean_with_its_figures(tmp_path: Path) -> None:
    """Verdict in words, loss of 0, messages a minute."""
    told = read_page(open_page(store_url(tmp_path)))
    assert "CLEAN" in told
    assert "0 ppm" in told
    assert "1,000 /min" in told
    assert "2 min 0 s ago" in told


def test_unhealthy_streams_come_first(tmp_path: Path) -> None:
    """LOSSY before UNKNOWN before CLEAN, whatever their names."""
    fill(
        store_url(tmp_path),
        *build_windows(stream="a-clean"),
        *build_windows(stream="b-unknown", verdict=Verdict.UNKNOWN),
        *build_windows(stream="c-lossy", lost={"b": 20}),
    )
    told = read_page(open_page(store_url(tmp_path)))
    places = [told.index(f"stream={name}") for name in ("c-lossy", "b-unknown", "a-clean")]
    assert places == sorted(places)
    assert "20,000 ppm" in told


def test_what_is_unknown_is_never_shown_as_none(tmp_path: Path) -> None:
    """On the overview the loss of an UNKNOWN window is unknown, and it has no upper bound."""
    fill(store_url(tmp_path), *build_windows(verdict=Verdict.UNKNOWN))
    told = read_page(open_page(store_url(tmp_path)))
    assert "UNKNOWN" in told
    assert "0 ppm" not in told
    assert "no upper bound" in told


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_the_page_of_a_stream_is_drawn_for_every_verdict(verdict: Verdict | None, tmp_path: Path) -> None:
    """With graph, table and charts; of windows that are not final too."""
    status = Status.FINAL if verdict else Status.PROVISIONAL
    fill(
        store_url(tmp_path),
        *build_windows(verdict=verdict, status=status, lost={"b": 20 if verdict is Verdict.LOSSY else 0}),
    )
    tested = open_page(store_url(tmp_path), stream="orders")
    assert not tested.exception
    assert "Nodes over time" in read_page(tested)


def test_the_link_of_an_alert_opens_node_and_window(tmp_path: Path) -> None:
    """The form that alerts write: stream, node, window; the figures are of that window."""
    fill(store_url(tmp_path), *build_windows(3), window(3, lost={"b": 30}), *[window(n) for n in range(4, 10)])
    tested = open_page(store_url(tmp_path), stream="orders", node="b", window="2026-01-01T00:03:00Z")
    assert not tested.exception
    assert [one.value for one in tested.selectbox] == ["b", at(3), "none"]
    told = read_page(tested)
    assert "2026-01-01 00:03 UTC" in told
    assert re.search('<span class="hw-what">surely lost</span><span class="hw-value"><a [^>]*>30</a></span>', told)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"stream": "nobody"}, "there is no stream 'nobody': showing all of them"),
        ({"stream": "orders", "window": "yesterday"}, "window is a time such as 2026-01-01T00:00:00Z, got 'yesterday'"),
        ({"stream": "orders", "window": "2001-01-01T00:00:00Z"}, "the store has no window of 2001-01-01 00:00 UTC"),
        (
            {"stream": "orders", "from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            "the range ends before it begins",
        ),
        (
            {"stream": "orders", "from": "2001-01-01", "to": "2001-01-02"},
            "nothing of this stream was read",
        ),
        ({"stream": "orders", "from": "2001-01-01"}, "a range has a from and a to"),
        ({"stream": "orders", "node": "nobody"}, "There is no such node in this stream"),
        (
            {"page": "nonsense"},
            "page is one of overview, map, stream, window, message, probes, alerts, quality; got 'nonsense'",
        ),
        ({"page": "stream"}, "no stream is named"),
        ({"page": "window", "stream": "orders"}, "no window is named: showing the stream"),
        ({"stream": "orders", "range": "1y"}, "range is one of 1h, 6h, 24h, 7d, 30d; got '1y'"),
    ],
)
@pytest.mark.usefixtures("healthy")
def test_a_url_that_makes_no_sense_is_one_line(query: dict[str, str], told: str, tmp_path: Path) -> None:
    """And what can be shown is shown, never a traceback."""
    tested = open_page(store_url(tmp_path), clock(), **query)
    assert not tested.exception
    (warning,) = tested.warning
    assert told in warning.value.replace("\\", "")


def test_when_the_store_goes_away_the_last_that_was_known_stays(healthy: Engine, tmp_path: Path) -> None:
    """A banner says since when, and the rows are those of before."""
    healthy.dispose()
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    run_app(answers, now)
    (tmp_path / "store.db").write_bytes(b"this is no database any more" * 1_000)
    now.advance(FRESH_FOR_US / 1e6 + 1)
    tested = run_app(answers, now)
    assert not tested.exception
    (banner,) = tested.error
    assert "The store cannot be read" in banner.value
    assert "The page shows data of 5 s ago" in banner.value
    assert "1,000 /min" in read_page(tested)


@pytest.mark.usefixtures("healthy")
def test_a_monitor_that_is_behind_is_told(tmp_path: Path) -> None:
    """By its watermark and the clock on the wall."""
    (late,) = open_page(store_url(tmp_path), clock(14)).warning
    assert "The monitor is 2 min 5 s behind the clock" in late.value
    (stopped,) = open_page(store_url(tmp_path), clock(42)).error
    assert (
        "The monitor has read nothing that came after 2026-01-01 00:11:55 UTC (30 min 5 s ago)"
        in stopped.value.replace("\\", "")
    )


@pytest.mark.parametrize("page", PageName)
@pytest.mark.usefixtures("healthy")
def test_every_page_says_that_the_monitor_stands_still(page: PageName, tmp_path: Path) -> None:
    """With the moment up to which it has read."""
    window_of = {"window": "2026-01-01T00:03:00Z"} if page is PageName.WINDOW else {}
    tested = open_page(store_url(tmp_path), clock(42), page=page.value, stream="orders", **window_of)
    assert "The monitor has read nothing that came after 2026-01-01 00:11:55 UTC" in tested.error[0].value.replace(
        "\\", ""
    )


def test_hostile_names_are_text_everywhere(tmp_path: Path) -> None:
    """Names with HTML or Markdown in them are plain text on every page."""
    windows = [one for name in HOSTILE for one in build_windows(3, stream=name, names=HOSTILE, lost={HOSTILE[0]: 5})]
    fill(store_url(tmp_path), *windows)
    over = open_page(store_url(tmp_path))
    assert "&lt;img src=x onerror=alert(1)&gt;" in read_page(over)
    for name in HOSTILE:
        tested = open_page(store_url(tmp_path), stream=name, node=name)
        assert not tested.exception
        told = "".join(read_elements(tested, "html"))
        assert "<img src=x" not in told
        assert not any(name in one for one in read_elements(tested, "markdown"))


def test_long_ranges_come_from_hours_and_days(tmp_path: Path) -> None:
    """A week is shown by the hour, and says so."""
    fill(store_url(tmp_path), *build_windows(), *[window(60 * 24 * day) for day in range(1, 6)])
    tested = open_page(store_url(tmp_path), clock(60 * 24 * 5 + 1), stream="orders", range="7d")
    assert not tested.exception
    assert "final windows by the hour" in read_page(tested)


def test_a_range_without_digests_says_why_it_has_no_lag(tmp_path: Path) -> None:
    """Its minutes and their counts are as ever."""
    drop_all_digests(fill(store_url(tmp_path), *build_windows()))
    shown = read_page(open_page(store_url(tmp_path), page="stream", stream="orders"))
    assert series.NO_LAG in shown
    assert "No lag of the whole range is known.<" in shown
    assert "No node stamps both sides." not in shown
    minute = read_page(open_page(store_url(tmp_path), page="stream", stream="orders", window="2026-01-01T00:03:00Z"))
    assert series.NO_LAG not in minute


@pytest.mark.usefixtures("healthy")
def test_choices_go_into_the_url(tmp_path: Path) -> None:
    """The node that is chosen is in the query string, so that a link to this page opens it."""
    tested = open_page(store_url(tmp_path), stream="orders")
    tested.selectbox[0].set_value("b").run()
    assert tested.query_params["node"] == "b"
    tested.selectbox[1].set_value(at(4)).run()
    assert tested.query_params["window"] == "2026-01-01T00:04:00Z"


def test_a_store_that_vanishes_leaves_what_was_known(healthy: Engine, tmp_path: Path) -> None:
    """A file that somebody has deleted is told, and is no empty store."""
    healthy.dispose()
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    run_app(answers, now)
    for file in tmp_path.glob("store.db*"):
        file.unlink()
    now.advance(FRESH_FOR_US / 1e6 + 1)
    tested = run_app(answers, now)
    (banner,) = tested.error
    assert "The store cannot be read: it is not there any more" in banner.value.replace("\\", "")
    assert "1,000 /min" in read_page(tested)


def test_a_page_that_could_not_be_read_anew_says_so(healthy: Engine, tmp_path: Path) -> None:
    """While the frame above it still can: what is shown is older than it looks."""
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    run_app(answers, now, page="alerts")
    with healthy.execution_options(writes=True).begin() as connection:
        connection.exec_driver_sql("DROP TABLE alert_history")
    healthy.dispose()
    now.advance(FRESH_FOR_US / 1e6 + 1)
    (told,) = run_app(answers, now, page="alerts").error
    assert "This could not be refreshed" in told.value
    assert "The page shows data of 5 s ago" in told.value


def test_the_newest_loss_of_a_range_is_a_click_away(tmp_path: Path) -> None:
    """From the page of the stream to the page of that minute; a range without a loss leads nowhere."""
    lossy = [window(number, lost={"b": 30} if number in {3, 5} else {}) for number in range(10)]
    fill(store_url(tmp_path), *lossy)
    told = read_page(open_page(store_url(tmp_path), stream="orders"))
    assert "The newest minute with a loss: 2026-01-01 00:05 UTC" in told
    assert "page=window&amp;stream=orders&amp;window=2026-01-01T00%3A05%3A00Z" in told
    (tmp_path / "clean").mkdir()
    fill(store_url(tmp_path / "clean"), *build_windows())
    assert "The newest" not in read_page(open_page(store_url(tmp_path / "clean"), stream="orders"))


def test_what_fires_stands_in_the_navigation(healthy: Engine, tmp_path: Path) -> None:
    """On each page; nothing stands there while nothing but the heartbeat does."""
    beat = notification(
        key="heartbeat/ticket/*", kind=AlertKind.HEARTBEAT, rule="heartbeat", severity=Severity.TICKET, alerts=()
    )
    health_data.fire(healthy, beat)
    assert "firing" not in read_page(open_page(store_url(tmp_path)))
    health_data.fire(healthy, notification())
    for query in ({}, {"stream": "orders"}, {"page": "alerts"}):
        assert '<a href="?page=alerts" target="_self">⚠ 1 firing</a>' in read_page(
            open_page(store_url(tmp_path), **query)
        )


def test_an_hour_that_is_not_over_is_told_where_it_is_left_out(tmp_path: Path) -> None:
    """As one that is not over for the monitor."""
    fill(store_url(tmp_path), *build_windows(3), window(7 * 60)).dispose()
    shown = read_page(open_page(store_url(tmp_path), page="stream", stream="orders", range="24h"))
    assert "The newest hour is not over for the monitor yet, and left out." in shown


def test_garbage_is_collected_once_a_minute_for_all_viewers() -> None:
    """By the clock: the first page collects, and the next one after the interval."""
    timer = GarbageTimer()
    assert [timer.collect_if_due(now_s) for now_s in (5.0, 6.0, 64.9, 65.0, 66.0)] == [True, False, False, True, False]
