"""Tests of the pages of probes, of outliers and alerts, and of quality, in every state that they may meet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine

from hopwatch.alerts.decision.episode import Phase
from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.alerts.storage import outbox
from hopwatch.dashboards.queries.health import MAX_ROWS
from hopwatch.dashboards.queries.query_cache import FRESH_FOR_US, QueryCache
from hopwatch.dashboards.views import address
from hopwatch.display import texts
from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.kernel.books import ClockOffset, InstanceCounts
from hopwatch.monitor.payloads import SendingInstance
from hopwatch.monitor.results import Verdict
from hopwatch.monitor.store import undeclared_names
from hopwatch.monitor.store.writer import set_values
from tests.support import health_data, notifications
from tests.support.dashboard_stores import (
    HOSTILE,
    build_windows,
    chain,
    clock,
    fill,
    open_page,
    plain,
    read_elements,
    read_page,
    run_app,
    store_url,
)
from tests.support.notifications import alert, notification
from tests.support.spool import STREAM_CONFIGS
from tests.support.windows import at, window

PAGES: Final = ("probes", "alerts", "quality")
LOSS: Final = notification(
    alerts=(alert(since_us=at(7), window_start_us=at(9), summary="lost: 20 of 1,000 messages"),),
    since_us=at(7),
    at_us=at(11),
    summary="lost: 20 of 1,000 messages",
)


@pytest.mark.parametrize("page", PAGES)
def test_without_a_store_the_page_says_how_to_send_the_first_observation(page: str, tmp_path: Path) -> None:
    """As every other page."""
    tested = open_page(store_url(tmp_path), page=page)
    assert not tested.exception
    assert "There is no store yet" in read_page(tested)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("probes", "No probe has reported yet."),
        ("alerts", "Firing now: 0 incidents"),
        ("quality", "No message was seen in a final window of this range."),
    ],
)
def test_an_empty_store_has_nothing_of_it(page: str, expected: str, tmp_path: Path) -> None:
    """Each page says that there is nothing, and what it would show."""
    fill(store_url(tmp_path), pathways={"orders": chain("a", "b")})
    tested = open_page(store_url(tmp_path), page=page)
    assert not tested.exception
    assert expected in read_page(tested)


def test_what_cannot_be_read_is_told_before_anything_was_read(tmp_path: Path) -> None:
    """If every record was set aside, the page says why, though no window is there."""
    engine = fill(store_url(tmp_path), pathways={"orders": chain("a", "b")})
    health_data.write(engine, set_aside=[health_data.record(reason="unknown_schema")])
    told = plain(read_page(open_page(store_url(tmp_path), page="quality")))
    assert "unknown_schema 1 100% 1 its layout is not known here" in told


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("probes", "1 instance: 1 ALIVE"),
        ("alerts", "Outliers: 0"),
        ("quality", "0 nodes stopped or kept messages, 2 did not."),
    ],
)
def test_a_healthy_store_is_calm(page: str, expected: str, healthy: Engine, tmp_path: Path) -> None:
    """No warning and nothing loud."""
    health_data.write(healthy, health_data.book())
    tested = open_page(store_url(tmp_path), page=page)
    assert not tested.exception
    assert not tested.warning
    assert expected in read_page(tested)
    assert not [one for one in ('hw-loud"', 'hw-bad"', 'hw-old"') if one in read_page(tested)]


# Probes


def test_instances_that_need_a_person_come_first(healthy: Engine, tmp_path: Path) -> None:
    """Silent, then what misses, drops or sets aside, then what has retired, then the others."""
    health_data.write(
        healthy,
        health_data.book(probe="alive"),
        health_data.book(probe="bye", said_bye=True),
        health_data.book(probe="retired", told_ago_s=700),
        health_data.book(probe="silent", told_ago_s=100),
        health_data.holed(probe="holed"),
    )
    told = read_page(open_page(store_url(tmp_path), page="probes"))
    places = [told.index(f">{name}<") for name in ("silent", "holed", "retired", "alive", "bye")]
    assert places == sorted(places)
    assert "5 instances: 1 SILENT, 1 TROUBLED, 1 RETIRED, 1 ALIVE, 1 BYE" in told


def test_a_row_tells_books_holes_drops_and_clock(healthy: Engine, tmp_path: Path) -> None:
    """The row of an instance has records read and due, gaps, drops by cause, and how far its clock is ahead."""
    tallies = InstanceCounts(62, 2, 6_000, 20, 14, 3)
    health_data.write(healthy, health_data.holed(tallies=tallies, skew_us=4_200_000))
    row = plain(read_page(open_page(store_url(tmp_path), page="probes")))
    assert "60 of 63 due, 2 twice" in row
    assert "3 2 holes, the newest: 2026-01-01 00:05:00 UTC to 2026-01-01 00:06:00 UTC" in row
    assert "9 queue full: 7, sink: 2" in row
    assert "17 too late: 14, implausible: 3" in row
    assert "4.2 s ahead" in row
    assert "Versions of probes are not known" in row


def test_a_clock_that_was_measured_has_its_offset(healthy: Engine, tmp_path: Path) -> None:
    """In place of what a batch took to arrive; the page of its stream says it beside the lags, if it is wrong."""
    wrong, right = ClockOffset(147_400, 152_600), ClockOffset(-1_500, 2_900)
    health_data.write(healthy, health_data.book(clock_offset=wrong), health_data.book(probe="p2", clock_offset=right))
    told = plain(read_page(open_page(store_url(tmp_path), page="probes")))
    assert "150.0 ± 2.7 ms ahead by the clock of the brokers" in told
    assert "right to 2.9 ms by the clock of the brokers" in told
    line = "Clock: the clock of probe-1 at b is 150.0 ± 2.7 ms ahead: lags that it stamps are too long by that"
    assert line in plain(read_page(open_page(store_url(tmp_path), page="stream", stream="orders")))
    health_data.write(healthy, health_data.book(clock_offset=right))
    assert "Clock:" not in plain(read_page(open_page(store_url(tmp_path), page="stream", stream="orders")))


def test_one_that_is_silent_is_marked_by_what_the_monitor_has_read(healthy: Engine, tmp_path: Path) -> None:
    """A monitor that is behind calls nobody silent; the age is by the clock on the wall."""
    health_data.write(healthy, health_data.book(probe="x", told_ago_s=100))
    told = plain(read_page(open_page(store_url(tmp_path), page="probes")))
    assert "⚠ SILENT for 1 min 40 s ⚠ 1 min 44 s ago" in told
    health_data.write(healthy, health_data.book(probe="x"))
    late = plain(read_page(open_page(store_url(tmp_path), clock(42), page="probes")))
    assert "1 instance: 1 ALIVE" in late
    assert "30 min 9 s ago" in late


def test_a_clock_that_is_behind_is_told_from_silence(healthy: Engine, tmp_path: Path) -> None:
    """An instance heard just now with old reports is shown as such, and not as silent."""
    health_data.write(healthy, health_data.book(told_ago_s=120, last_arrival_us=health_data.WATERMARK_US - 3_000_000))
    assert "it was heard 3 s ago, and reported up to 2 min 0 s ago" in read_page(
        open_page(store_url(tmp_path), page="probes")
    )


def test_those_that_left_long_ago_are_folded_away_with_a_count(healthy: Engine, tmp_path: Path) -> None:
    """And are there again when they are asked for; that stands in the URL."""
    left = [health_data.book(probe=f"left-{n}", said_bye=True, told_ago_s=4_000) for n in range(3)]
    health_data.write(healthy, health_data.book(probe="here"), *left, health_data.book(probe="gone", told_ago_s=90_000))
    tested = open_page(store_url(tmp_path), page="probes")
    assert "left-1" not in read_page(tested)
    (toggle,) = tested.toggle
    assert toggle.label.replace("\\", "") == (
        "Folded away: 3 that said bye over 1 h ago and 1 that fell silent without a bye over 24 h ago"
    )
    toggle.set_value(True).run()
    assert tested.query_params["folded"] == "shown"
    assert "5 instances: 1 RETIRED, 1 ALIVE, 3 BYE" in read_page(tested)
    assert ">left-1<" in read_page(tested)


def test_thousands_of_instances_are_told_in_parts(healthy: Engine, tmp_path: Path) -> None:
    """Never more rows than a part has, with ways to the others; a search finds one of all."""
    health_data.write(healthy, *[health_data.book(probe=f"pod-{n:04}") for n in range(2 * MAX_ROWS + 1)])
    first = read_page(open_page(store_url(tmp_path), page="probes"))
    assert first.count("<tr>") == MAX_ROWS + 1
    assert "1 to 200 of 401" in first
    assert "part=2" in first
    last = read_page(open_page(store_url(tmp_path), page="probes", part="3"))
    assert "401 to 401 of 401" in last
    tested = open_page(store_url(tmp_path), page="probes", part="3")
    tested.text_input[0].set_value("POD-0399").run()
    assert tested.query_params["find"] == "POD-0399"
    assert "part" not in tested.query_params
    assert read_page(tested).count("<tr>") == 2
    assert "this part is empty" in read_page(open_page(store_url(tmp_path), page="probes", part="9"))


def test_a_search_that_finds_nothing_says_so(healthy: Engine, tmp_path: Path) -> None:
    """A search without a result says so, and wildcards are searched for as they are."""
    health_data.write(healthy, health_data.book())
    tested = open_page(store_url(tmp_path), page="probes", find="%")
    assert "no instance has '%'" in read_page(tested).replace("\\", "")


def test_in_a_store_that_was_filled_once_nobody_is_silent_by_the_wall(healthy: Engine, tmp_path: Path) -> None:
    """The newest arrival is what silence is measured by."""
    health_data.write(healthy, health_data.book(probe="x"), health_data.book(probe="y", told_ago_s=300))
    with healthy.execution_options(writes=True).begin() as connection:
        set_values(connection, {"query_id": "once"})
    told = read_page(open_page(store_url(tmp_path), clock(60 * 24 * 30), page="probes"))
    assert "2 instances: 1 SILENT, 1 ALIVE" in told


# Outliers and alerts


def test_what_fires_is_told_with_its_place_and_its_deliveries(healthy: Engine, tmp_path: Path) -> None:
    """Severity, rule, observed against expected, the way to node and window, the runbook, each channel."""
    health_data.fire(healthy, LOSS, channels=("pager", "chat"))
    refused, _ = sorted(outbox.query_due(healthy, clock().now_us()), key=lambda one: one.channel)
    outbox.mark_failed(healthy, refused, "HTTP 503", clock().now_us() + 60_000_000)
    tested = open_page(store_url(tmp_path), page="alerts")
    assert not tested.exception
    shown = read_page(tested)
    row = plain(shown)
    assert "Firing now: 1 incident" in row
    assert "loss since 2026-01-01 00:07 UTC, for 5 min 0 s" in row
    assert "2.00% at most 1.00% 20 of 1,000 messages" in row
    assert "chat … waiting (1 failure, the last: HTTP 503; tried again in 1 min 0 s)" in row
    assert "docs/runbooks/loss.md" in row
    assert '<a href="?stream=orders&amp;node=b&amp;window=2026-01-01T00%3A09%3A00Z"' in shown


def test_a_runbook_of_the_web_is_a_link_and_nothing_else_is(healthy: Engine, tmp_path: Path) -> None:
    """An address that a browser would run is text."""
    evil = alert(runbook="javascript:alert(1)", window_start_us=at(9))
    good = alert(runbook="https://wiki.example/loss.md", window_start_us=at(9))
    health_data.fire(healthy, replace(LOSS, alerts=(good,)), replace(LOSS, key="loss/ticket/orders", alerts=(evil,)))
    shown = read_page(open_page(store_url(tmp_path), page="alerts"))
    assert 'href="https://wiki.example/loss.md" target="_blank" rel="noopener noreferrer"' in shown
    assert 'href="javascript' not in shown


def test_the_history_has_beginning_and_end_of_each_incident(healthy: Engine, tmp_path: Path) -> None:
    """One row an incident, how long it lasted, and who was told of what."""
    before = replace(LOSS, since_us=at(1), at_us=at(2))
    health_data.tell(healthy, before)
    (begun,) = outbox.query_due(healthy, clock().now_us())
    outbox.mark_sent(healthy, begun)
    health_data.tell(healthy, health_data.over(before, 5))
    (ended,) = outbox.query_due(healthy, clock().now_us())
    outbox.mark_dead(healthy, ended, "HTTP 404")
    row = plain(read_page(open_page(store_url(tmp_path), page="alerts")))
    assert "Incidents: 1" in row
    assert "2026-01-01 00:01 UTC 2026-01-01 00:05 UTC lasted 4 min 0 s" in row
    assert "Beginning: pager ✓ sent End: pager ✕ given up (1 failure, the last: HTTP 404)" in row
    assert "superseded: something newer of the same incident was sent in its place" in row


def test_an_incident_is_in_every_range_that_it_meets(healthy: Engine, tmp_path: Path) -> None:
    """One that began before and ended behind, too; what was over before is not."""
    health_data.tell(healthy, replace(LOSS, since_us=at(1), at_us=at(2)))
    health_data.tell(healthy, health_data.over(replace(LOSS, since_us=at(1)), 9))
    spans = {(4, 6): 1, (0, 1): 0, (10, 11): 0, (8, 10): 1}
    for (first, last), count in spans.items():
        query = {"from": f"2026-01-01T00:{first:02}:00Z", "to": f"2026-01-01T00:{last:02}:00Z"}
        assert f"Incidents: {count}" in read_page(open_page(store_url(tmp_path), clock(), page="alerts", **query)), (
            first
        )


def test_what_is_not_told_is_there_with_why(healthy: Engine, tmp_path: Path) -> None:
    """Bad for too short a time, or covered by another alert."""
    states = [
        health_data.bad_since(8, Phase.PENDING),
        health_data.bad_since(5, Phase.FIRING, "end_to_end_lag", node=""),
    ]
    health_data.fire(healthy, LOSS, untold=states)
    row = plain(read_page(open_page(store_url(tmp_path), page="alerts")))
    assert "Pending: not bad for long enough yet: 1 ■ TICKET lag: orders b for 4 min 0 s" in row
    assert "Not notified, because another alert covers them: 1 ■ TICKET end_to_end_lag: orders for 7 min 0 s" in row


def test_a_heartbeat_is_no_incident(healthy: Engine, tmp_path: Path) -> None:
    """A heartbeat is not listed as an incident."""
    key = "heartbeat/ticket/*"
    beat = notification(key=key, kind=AlertKind.HEARTBEAT, rule="heartbeat", severity=Severity.TICKET, alerts=())
    health_data.fire(healthy, beat, channels=("dead-man",))
    row = plain(read_page(open_page(store_url(tmp_path), page="alerts")))
    assert "Firing now: 0 incidents" in row
    assert "The heartbeat is firing, as it does while the monitor evaluates alerts: dead-man (waiting)." in row
    assert "Incidents: 0" in row


def test_outliers_say_what_was_expected_and_why(healthy: Engine, tmp_path: Path) -> None:
    """With the way to node and window; notices are there when they are asked for."""
    health_data.find(healthy, health_data.finding(), health_data.finding(6, is_outlier=False, node="a"))
    tested = open_page(store_url(tmp_path), page="alerts")
    row = plain(read_page(tested))
    assert "Outliers: 1" in row
    assert "◆ OUTLIER lag out p95 2.5 s 1.0 ms to 3.0 ms far from its usual level (once in 100,000)" in row
    assert "window=2026-01-01T00%3A05%3A00Z" in read_page(tested)
    tested.toggle[0].set_value(True).run()
    assert "Outliers: 2" in plain(read_page(tested))
    assert "◇ NOTICE" in plain(read_page(tested))


def test_one_stream_may_be_looked_at(tmp_path: Path) -> None:
    """Chosen on the page, kept in the URL; of other streams nothing is told."""
    engine = fill(store_url(tmp_path), *build_windows(), *build_windows(stream="refunds"))
    health_data.fire(engine, LOSS, replace(notifications.notification(stream="refunds"), summary="refunds are lost"))
    health_data.find(engine, health_data.finding(), stream="refunds")
    tested = open_page(store_url(tmp_path), page="alerts")
    assert "Firing now: 2 incidents" in read_page(tested)
    tested.selectbox[0].set_value("orders").run()
    assert (tested.query_params["stream"], tested.query_params["page"]) == ("orders", "alerts")
    shown = read_page(tested)
    assert "Firing now: 1 incident" in shown
    assert "refunds are lost" not in shown
    assert "Outliers: 0" in shown


# Quality


def test_what_is_set_aside_is_told_by_reason_with_where_the_bytes_are(healthy: Engine, tmp_path: Path) -> None:
    """Records set aside are listed by reason, with counts, meaning, path, position, length and the newest message."""
    old = [health_data.record(n, arrival_us=at(-300)) for n in range(3)]
    health_data.write(healthy, set_aside=[*old, health_data.record(217)])
    row = plain(read_page(open_page(store_url(tmp_path), page="quality")))
    assert "bad_crc 1 100% 4 its bytes differ from those that were written" in row
    assert "bad_crc the checksum is 1, got 2 /spool/0/0000000007.seg position 217, 217 bytes" in row
    assert row.count("0000000007.seg") == 1
    query = {"from": "2025-12-31T00:00:00Z", "to": "2025-12-31T23:00:00Z"}
    assert "bad_crc 3 100% 4" in plain(read_page(open_page(store_url(tmp_path), clock(), page="quality", **query)))


def test_names_that_are_not_declared_are_told_with_the_nearest_and_the_probe(healthy: Engine, tmp_path: Path) -> None:
    """An undeclared stream or node is listed with the nearest declared name and the probe, as plain text."""
    sent = [SendingInstance("orders", "c", "<b>p</b>", at(0)), SendingInstance("oders", "a", "h-1", at(0))]
    records = [
        health_data.record(n, reason=("unknown_node", "unknown_stream")[n], message="why", sender=one)
        for n, one in enumerate(sent)
    ]
    with healthy.execution_options(writes=True).begin() as connection:
        undeclared_names.count_undeclared(connection, records, STREAM_CONFIGS)
    html = read_page(open_page(store_url(tmp_path), page="quality"))
    row = plain(html)
    assert "Names that are not declared" in row
    assert "oders a stream, with the node a orders h-1 started 2026-01-01 00:00:00 UTC 1 " in row
    assert f"c a node of orders {texts.NONE} " in row
    assert "&lt;b&gt;p&lt;/b&gt;" in html


def test_what_nodes_stopped_is_told_in_per_cent_of_what_they_saw(tmp_path: Path) -> None:
    """Rejected first; that reasons are not kept is said, and where one stands."""
    nodes = {"a": {"filtered": 10}, "b": {"rejected": 5, "seen": 500}}
    fill(store_url(tmp_path), *build_windows(nodes=nodes))
    row = plain(read_page(open_page(store_url(tmp_path), page="quality")))
    assert "b orders 5,000 50 1.00% 0 0% 0 0% a orders 10,000 0 0% 100 1.00% 0 0%" in row
    assert "2 nodes stopped or kept messages, 0 did not." in row
    assert "Reasons are not kept in the store: hopwatch find ID shows that of one message" in row


def test_long_ranges_are_summed_from_hours(tmp_path: Path) -> None:
    """A week by the hour, the same sums as the windows'."""
    windows = [window(60 * 24 * day, nodes={"b": {"rejected": 5}}) for day in range(6)]
    fill(store_url(tmp_path), *windows)
    row = plain(read_page(open_page(store_url(tmp_path), clock(60 * 24 * 5 + 1), page="quality", range="7d")))
    assert "final windows by the hour" in row
    assert "b orders 6,000 30 0.50%" in row


def test_records_that_aged_out_are_told(healthy: Engine, tmp_path: Path) -> None:
    """Partition, offsets, how many, and between which arrivals."""
    health_data.write(healthy, holes=[Hole("hopwatch/3", 1_200, 3_400, at(3), at(4))])
    row = plain(read_page(open_page(store_url(tmp_path), page="quality")))
    assert "hopwatch/3 1,200 to 3,400 2,201 2026-01-01 00:03:00 UTC to 2026-01-01 00:04:00 UTC" in row


# All three


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.SILENT, Verdict.LOSSY])
def test_they_are_drawn_whatever_windows_were_judged(page: str, verdict: Verdict, tmp_path: Path) -> None:
    """With instances, incidents, outliers and records set aside of that store."""
    engine = fill(store_url(tmp_path), *build_windows(verdict=verdict))
    health_data.write(engine, health_data.holed(), set_aside=[health_data.record()])
    health_data.fire(engine, LOSS)
    health_data.find(engine, health_data.finding(low=None, high=None, reasons=()))
    tested = open_page(store_url(tmp_path), page=page)
    assert not tested.exception
    assert "hw-signs" in read_page(tested)


@pytest.mark.parametrize(("page", "kept"), [("probes", "probe-1"), ("alerts", "lost: 20"), ("quality", "bad_crc")])
def test_when_the_store_goes_away_the_last_that_was_known_stays(
    page: str, kept: str, healthy: Engine, tmp_path: Path
) -> None:
    """With a banner that says so."""
    health_data.write(healthy, health_data.book(), set_aside=[health_data.record()])
    health_data.fire(healthy, LOSS)
    healthy.dispose()
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    run_app(answers, now, page=page)
    (tmp_path / "store.db").write_bytes(b"this is no database any more" * 1_000)
    now.advance(FRESH_FOR_US / 1e6 + 1)
    tested = run_app(answers, now, page=page)
    assert not tested.exception
    assert "The store cannot be read" in tested.error[0].value
    assert kept in read_page(tested)


@pytest.mark.parametrize("page", PAGES)
def test_a_store_that_was_down_from_the_start_is_told(page: str, healthy: Engine, tmp_path: Path) -> None:
    """A page that was never read says that the store is down, while other pages are known."""
    healthy.dispose()
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    run_app(answers, now)
    (tmp_path / "store.db").write_bytes(b"this is no database any more" * 1_000)
    now.advance(FRESH_FOR_US / 1e6 + 1)
    tested = run_app(answers, now, page=page)
    assert not tested.exception
    assert len(tested.error) == 2


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_are_text(page: str, tmp_path: Path) -> None:
    """Streams, nodes, probes, causes, channels, rules, paths, messages: whatever they mean to HTML or Markdown."""
    evil = HOSTILE[0]
    engine = fill(store_url(tmp_path), *build_windows(3, stream=evil, names=HOSTILE, nodes={evil: {"rejected": 5}}))
    records = [health_data.record(n, path=name, message=name, reason=name) for n, name in enumerate(HOSTILE)]
    books = [health_data.book(name, name, stream=evil, drops={(at(0) // 1_000, name): 1}) for name in HOSTILE]
    health_data.write(engine, *books, set_aside=records, holes=[Hole(evil, 1, 2, at(0), at(1))])
    alerts = tuple(alert(stream=evil, node=name, edge=name, runbook=name, summary=name) for name in HOSTILE)
    health_data.fire(
        engine, replace(LOSS, key=f"{evil}/page/{evil}", rule=evil, alerts=alerts, summary=evil), channels=HOSTILE
    )
    health_data.find(engine, *[health_data.finding(node=name) for name in HOSTILE], stream=evil)
    for query in ({}, {"stream": evil}, {"find": evil}, {"stream": HOSTILE[1]}):
        tested = open_page(store_url(tmp_path), clock(), page=page, **query)
        assert not tested.exception
        assert "<img src=x" not in "".join(read_elements(tested, "html"))
        assert "&lt;img src=x onerror=alert(1)&gt;" in read_page(tested)
        shown = [*read_elements(tested, "markdown"), *read_elements(tested, "warning"), *read_elements(tested, "info")]
        assert not any(name in one for name in HOSTILE for one in shown)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"stream": "nobody"}, "there is no stream 'nobody': showing all of them"),
        ({"part": "0"}, "part is a number from 1 on, got '0': showing the first"),
        ({"part": "٣"}, "part is a number from 1 on"),
        ({"folded": "half"}, "folded is one of away, shown; got 'half': showing away"),
        ({"range": "1y"}, "range is one of 1h, 6h, 24h, 7d, 30d; got '1y'"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "the range ends before it begins"),
        ({"from": "2026-01-02T00:00:00Z"}, "a range has a from and a to"),
    ],
)
def test_a_url_that_makes_no_sense_is_one_line(
    page: str, query: dict[str, str], expected: str, healthy: Engine, tmp_path: Path
) -> None:
    """And the page is there."""
    health_data.write(healthy, health_data.book())
    tested = open_page(store_url(tmp_path), clock(), page=page, **query)
    assert not tested.exception
    (warning,) = tested.warning
    assert expected in warning.value.replace("\\", "")


def test_a_search_for_what_no_text_holds_is_one_for_the_rest() -> None:
    """PostgreSQL refuses a NUL in a text: the page would be lost."""
    found, wrong = address.parse_address({"page": "probes", "find": "no\0rm\0"})
    assert (found.search, wrong) == ("norm", ())


@pytest.mark.parametrize("page", ["alerts", "quality"])
@pytest.mark.parametrize(("first", "last"), [("0001-01-01", "9999-12-31"), ("2040-01-01", "2041-01-01")])
def test_ranges_of_ages_are_drawn(page: str, first: str, last: str, healthy: Engine, tmp_path: Path) -> None:
    """All of time, or a year to come: with a way back to now."""
    health_data.write(healthy, health_data.book(), set_aside=[health_data.record()])
    health_data.fire(healthy, LOSS)
    tested = open_page(store_url(tmp_path), clock(), page=page, **{"from": first, "to": last})
    assert not tested.exception
    if first < "2026" and page == "alerts":
        (warning,) = tested.warning
        assert "longer than 2,000 days" in warning.value.replace("\\", "")
        assert "Incidents: 1" in read_page(tested)
    assert "Back to the newest" in [one.label for one in tested.button]
