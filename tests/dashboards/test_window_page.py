"""Tests of the page of a window in every state that it may meet, as Streamlit runs it, without a browser."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards.charts import second_chart
from hopwatch.dashboards.pages import label_panel
from hopwatch.dashboards.queries.query_cache import FRESH_FOR_US, QueryCache
from hopwatch.display.colours import LIGHT
from hopwatch.monitor import settings
from hopwatch.monitor.kernel.masks import ids_from_bytes
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.kernel.tally import LostIds, empty_tally
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import (
    LabelCounts,
    LabelValueKind,
    NodeCounts,
    SecondCounts,
    ServerCount,
    Status,
    Verdict,
)
from hopwatch.monitor.store.markers import add_marker
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.dashboard_stores import (
    HOSTILE,
    build_windows,
    chain,
    clock,
    fill,
    open_page,
    read_elements,
    read_page,
    run_app,
    store_url,
    without_verdict,
)
from tests.support.spool import pack_ids
from tests.support.windows import at, window
from tests.support.workspace import Workspace, one_of_ten_lost

AT_3 = "2026-01-01T00:03:00Z"


def shown(folder: Path, start: str = AT_3, **query: str) -> AppTest:
    """Return the page of a window of the store in a folder."""
    tested = open_page(store_url(folder), page="window", stream="orders", window=start, **query)
    assert not tested.exception
    return tested


def with_lost(folder: Path, numbers: range, **fields: Any) -> Engine:  # noqa: ANN401 - the fields of a window
    """Fill a store whose window of minute 3 has lost these messages at b."""
    lossy = window(3, lost={"b": len(numbers)}, **fields)
    engine = fill(store_url(folder), *build_windows(10))
    write_conclusions(engine, build_conclusion(lossy, lost={"b": b"".join(sorted(pack_ids(one) for one in numbers))}))
    return engine


def test_without_a_store_it_says_how_to_begin(tmp_path: Path) -> None:
    """As every page does."""
    assert "There is no store yet" in read_page(shown(tmp_path))


@pytest.mark.usefixtures("healthy")
def test_a_healthy_minute_adds_up_and_has_no_lost_id(tmp_path: Path) -> None:
    """With verdict, status, revision, and what lies beside it."""
    told = read_page(shown(tmp_path))
    assert "CLEAN" in told
    assert "FINAL, revision 0" in told
    assert "1,000 known = 1,000 delivered + 0 filtered + 0 rejected + 0 lost" in told
    assert "None: no message is missing." in told
    assert "No probe instance that was heard has a hole in this window." in told
    assert "None: the first judgement stands." in told
    assert "← 2026-01-01 00:02 UTC" in told
    assert "2026-01-01 00:04 UTC →" in told


@pytest.mark.usefixtures("healthy")
def test_the_first_and_the_last_minute_have_nothing_beside_them(tmp_path: Path) -> None:
    """And say so, on their one side."""
    assert "no window before" in read_page(shown(tmp_path, "2026-01-01T00:00:00Z"))
    assert "no window after" in read_page(shown(tmp_path, "2026-01-01T00:09:00Z"))


def test_all_parts_of_a_lossy_minute_are_told(tmp_path: Path) -> None:
    """Each part of a lossy window has its number: stopped, surely lost, missing and recovered."""
    counts: dict[str, Any] = {
        "delivered": 960,
        "filtered": 7,
        "rejected": 3,
        "lost_lower": 20,
        "lost_upper": 34,
        "recovered": 5,
    }
    fill(store_url(tmp_path), replace(window(3, lost={"b": 30}), **counts), *build_windows(1))
    told = read_page(shown(tmp_path))
    assert "1,000 known = 960 delivered + 7 filtered + 3 rejected + 30 missing (20 to 34 lost)" in told
    assert "<b>20</b> surely lost <small>2.00%</small>" in told
    assert "<b>10</b> missing, lost or not" in told
    assert "at least 20, at most 34" in told
    assert "<b>? up to 4</b> more that may be lost" in told
    assert "5 recovered" in told


def test_counts_stand_beside_the_ids(tmp_path: Path) -> None:
    """Marked as by count, with what each server counted; a stream in which no node counts says nothing of it."""
    servers = (ServerCount("server-7", 600), ServerCount("server-8", 412))
    counted = NodeCounts("packets", 1_012, 1_012, 0, 0, 1.0, None, None, None, 0, "a", 1_000, None, servers)
    fill(store_url(tmp_path), window(3, counts=(counted,)), *build_windows(1))
    told = read_page(shown(tmp_path))
    assert "packets, by count: 1,012 came; 1,000 seen at a by ids, 12 fewer" in told
    assert "server-7 600, server-8 412" in told
    assert "By count" not in read_page(shown(tmp_path, "2026-01-01T00:00:00Z"))


def test_a_server_is_shown_beside_its_ids_whatever_strangers_call_it(tmp_path: Path) -> None:
    """Markup in its name or in an id is text, and a control character is written out."""
    server = ServerCount("<b>", 600, 600, 600, seen_behind=599, missing_behind=1, missing_ids=("<i>\0",))
    counted = NodeCounts("packets", 600, 600, 0, 0, 1.0, None, None, None, 0, "a", 599, None, (server,))
    fill(store_url(tmp_path), window(3, counts=(counted,)), *build_windows(1))
    line = "&lt;b&gt;: 600 by count; 599 at a, 1 fewer; 1 missing at a: &lt;i&gt;\\x00"
    assert line in read_page(shown(tmp_path))


def test_what_nobody_knows_is_never_0(tmp_path: Path) -> None:
    """The bar of an UNKNOWN window has a part without a number, and its reasons stand there."""
    fill(
        store_url(tmp_path),
        window(3, verdict=Verdict.UNKNOWN, reasons=("b: no probe instance was heard",)),
        *build_windows(1),
    )
    told = read_page(shown(tmp_path))
    assert "? UNKNOWN" in told.replace("</span>", "")
    assert "+ ? lost" in told
    assert "0 lost" not in told
    assert "<b>?</b> unknown" in told
    assert "no upper bound" in told
    assert "b: no probe instance was heard" in told


@pytest.mark.parametrize("status", [Status.OPEN, Status.PROVISIONAL])
def test_a_minute_that_is_not_final_looks_so(status: Status, tmp_path: Path) -> None:
    """Its status is its chip, its bar is drawn apart, what is missing is in flight, and nothing is called lost."""
    one = window(3, status=status, delivered=900, in_flight=100)
    fill(store_url(tmp_path), without_verdict(one), *build_windows(1))
    told = read_page(shown(tmp_path))
    assert status.value in told
    assert "hw-not-final" in told
    assert "900 delivered + 0 filtered + 0 rejected + 100 in flight" in told
    assert "surely lost" not in told
    assert "what is missing is in flight" in told


def test_ids_of_what_is_overdue_lead_to_their_journeys(tmp_path: Path) -> None:
    """Each is shown as it was given, none is called lost, and of a text that is not known the hash leads there."""
    ids = ("order-<1>", f"{'0a' * 16}{HASH_SUFFIX}")
    at_b = {"b": {"in_flight": 9, "overdue": 1, "overdue_ids": ids}}
    one = window(3, status=Status.OPEN, in_flight=9, overdue=1, nodes=at_b)
    fill(store_url(tmp_path), without_verdict(one), *build_windows(1))
    told = read_page(shown(tmp_path))
    assert "1 message is overdue at b, for sure" in told
    assert "the first 2 are listed" in told
    assert "Overdue ids" in told
    assert "order-&lt;1&gt;" in told
    assert "id=order-%3C1%3E" in told
    assert f'id={"0a" * 16}"' in told
    assert "Lost ids" not in told


def test_lost_ids_are_shown_a_page_at_a_time(tmp_path: Path) -> None:
    """Each leads to its journey; part of the URL is which page, and one beyond the last is the last."""
    with_lost(tmp_path, range(100, 160))
    told = read_page(shown(tmp_path))
    assert "1 to 25 of 60" in told
    assert f"{100:032x}" in told
    assert f"id={UUID(int=100)}" in told
    assert f"{125:032x}" not in told
    assert "page 1 of 3" in told
    assert "left a" in told
    last = read_page(shown(tmp_path, part="99"))
    assert "51 to 60 of 60" in last


@pytest.mark.parametrize("search", [f"{142:032x}", f"{142:x}".zfill(6), "142"])
def test_an_id_is_looked_for_by_its_digits_or_as_it_is_written(search: str, tmp_path: Path) -> None:
    """An id is found by its digits or its text, and the search is in the URL."""
    with_lost(tmp_path, range(100, 160))
    tested = shown(tmp_path)
    next(one for one in tested.text_input if one.label == "Look for an id").set_value(search).run()
    assert tested.query_params["find"] == search
    told = read_page(tested)
    assert "1 to 1 of 1 that match, of 60" in told
    assert f"id={UUID(int=142)}" in told


def test_an_id_that_was_not_lost_here_is_told(tmp_path: Path) -> None:
    """Of how many it is none."""
    with_lost(tmp_path, range(100, 160))
    assert "None of the 60 ids that are kept as missing at b is this text" in read_page(shown(tmp_path, find="nobody"))


def test_more_were_lost_than_ids_are_kept(tmp_path: Path) -> None:
    """The page says how many messages are missing, and how many of their ids are kept."""
    with_lost(tmp_path, range(100, 103), nodes={"b": {"loss": 20_000}})
    assert "20,000 are missing and 3 ids are kept" in read_page(shown(tmp_path))


def test_a_revision_says_what_it_changed(tmp_path: Path) -> None:
    """Field by field in words, before and after, end to end first."""
    changed = {
        "verdict": ["UNKNOWN", "CLEAN"],
        "reasons": [["b: silent"], []],
        "lost_upper": [None, 0],
        "loss_ratio": [0.25, 0.0],
        "lag_us": [None, {"p95": 2_000}],
        "b.seen": [0, 1_000],
        "b.process_duration_p95_us": [None, 1_000],
    }
    engine = fill(store_url(tmp_path), *build_windows())
    amended = window(3, status=Status.AMENDED, revision=1)
    write_conclusions(engine, build_conclusion(amended, changed=changed))
    told = read_page(shown(tmp_path))
    assert "AMENDED, revision 1" in told
    assert "verdict UNKNOWN → CLEAN · reasons b: silent → none · lost at most no bound → 0" in told
    assert "missing part 25.0% → 0% · lag p95 \u2013 → 2.0 ms" in told
    assert "seen 0 → 1,000 · process duration p95 \u2013 → 1.0 ms" in told


def with_labels(folder: Path) -> Engine:
    """Fill a store whose window of minute 3 has counts by label at both nodes: the hostile value is new there."""
    engine = fill(store_url(folder), *build_windows())
    row = LabelCounts("schema", "a", LabelValueKind.VALUE, "orders/1", 900, 0, 0, 0, 0)
    for minute, rows in ((2, [row]), (3, [replace(row, value=value) for value in (*HOSTILE, "\0")])):
        lost = [replace(one, loss=7, rejected=5, loss_lower=7, loss_upper=7) for one in rows]
        made = build_conclusion(window(minute, lost={"b": 7}))
        write_conclusions(engine, made._replace(labels=(tuple(rows), tuple(lost))))
    return engine


def test_figures_by_label_are_one_node_at_a_time(tmp_path: Path) -> None:
    """The one that misses most, unless another is asked for; what is new is named, and none of it is markup."""
    with_labels(tmp_path)
    told = read_page(shown(tmp_path))
    assert "Messages at b by the labels" in told
    assert "first seen at a: schema &lt;img src=x onerror=alert(1)&gt;" in told
    assert " and 1 more" in told
    assert "<img" not in told
    assert '<span class="hw-bad">7</span>' in told
    assert "\\x00" in told
    assert "node=a" in told
    at_a = read_page(shown(tmp_path, node="a"))
    assert "Messages at a by the labels" in at_a
    assert "b (7 missing)" in at_a


def test_what_the_missing_have_in_common_is_named(tmp_path: Path) -> None:
    """Above the table by label, and not as markup; where no label explains it, that is said."""
    engine = fill(store_url(tmp_path), *build_windows())
    row = LabelCounts("schema", "a", LabelValueKind.VALUE, "orders/1", 500, 0, 0, 0, 0)
    for minute, lost in ((2, (40, 40)), (3, (80, 0))):
        named = zip((HOSTILE[0], "orders/1"), lost, strict=True)
        rows = tuple(replace(row, value=value, loss=loss, loss_lower=loss, loss_upper=loss) for value, loss in named)
        made = build_conclusion(window(minute, lost={"b": 80}))
        write_conclusions(engine, made._replace(labels=((), rows)))
    told = read_page(shown(tmp_path))
    assert "likely cause at b: schema &lt;img src=x onerror=alert(1)&gt; at a, with 100% of 80 missing;" in told
    assert "<img" not in told
    add_marker(engine, Marker(at(3) + 34_000_000, HOSTILE[0], "ada", "orders", {"version": "1.1"}))
    told = read_page(shown(tmp_path))
    assert "marked 34 s into this minute: &lt;img src=x onerror=alert(1)&gt; (version=1.1), by ada" in told
    assert "<img" not in told
    before = read_page(shown(tmp_path, "2026-01-01T00:02:00Z"))
    assert "no label explains the 80 missing at b" in before
    assert "marked" not in before


def test_what_the_slowest_have_in_common_is_named(tmp_path: Path) -> None:
    """Above the table by label, which has how many are slow; and not as markup."""
    engine = fill(store_url(tmp_path), *build_windows())
    row = LabelCounts("host", "b", LabelValueKind.VALUE, "h1", 500, 0, 0, 0, 0, departures=500, slow_dispersion=1.0)
    rows = (replace(row, slow=0), replace(row, value=HOSTILE[0], slow=50))
    write_conclusions(engine, build_conclusion(window(3))._replace(labels=((), rows)))
    told = read_page(shown(tmp_path))
    cause = "host &lt;img src=x onerror=alert(1)&gt;, with 100% of 50 slowest departures"
    assert f"likely cause of lag at b: {cause}; of its departures 10.0% are so slow, of all others 0%" in told
    assert "<img" not in told
    assert "Slow %" in told


def test_the_page_of_the_stream_names_the_minute_of_a_new_schema(tmp_path: Path) -> None:
    """With a link to its figures; the first one of all is not new, and what is named is no markup."""
    with_labels(tmp_path)
    told = read_page(open_page(store_url(tmp_path), page="stream", stream="orders", range="24h"))
    assert "Schema \\x00 first seen at a:" in told
    assert "Schema &lt;img src=x onerror=alert(1)&gt; first seen at a:" in told
    assert "Schema orders/1 first" not in told
    assert "window=2026-01-01T00%3A03%3A00Z" in told


def with_seconds(folder: Path, *counts: SecondCounts | None) -> None:
    """Fill a store whose window of minute 3 has counts by second at its nodes, a and b, where it is lost."""
    engine = with_lost(folder, range(30))
    write_conclusions(engine, build_conclusion(window(3, lost={"a": 30, "b": 30}))._replace(seconds=counts))
    add_marker(engine, Marker(at(3) - 15_000_000, "deploy <b>", "ada"))


def test_the_seconds_of_a_loss_are_drawn_and_its_bursts_are_told(tmp_path: Path) -> None:
    """Of the node that misses most, with the last marker before the burst, and links to the others."""
    outage = SecondCounts((20,) * 60, (0,) * 25 + (20,) * 10 + (0,) * 25)
    with_seconds(tmp_path, SecondCounts((20,) * 60, (1,) * 60), outage)
    told = read_page(shown(tmp_path))
    assert "Messages of b by the second of their event time; those on top are missing." in told
    share = "100% of 200 missing; of its messages 100% are missing, of all others of the minute 0%"
    after = "it begins 40 s after deploy &lt;b&gt;"
    assert f"burst at b from 00:03:25 UTC to 00:03:35 UTC: {share}; {after}" in told
    said = "Messages of b by second: 200 of 1,200 are missing, from second 25 to 34 of the minute, in 10 of its seconds"
    assert said in told
    picture = base64.b64decode(re.search(r"hw-wide\" src=\"data:image/svg\+xml;base64,([^\"]+)", told)[1]).decode()  # type: ignore[index]
    assert picture.count("<rect") == 60
    assert picture.count(f'fill="{LIGHT.lossy}"') == 10
    assert ">00:03:10<" in picture
    assert "a (60 missing)" in told
    assert "Messages of a by the second" in read_page(shown(tmp_path, node="a"))


def test_a_loss_that_is_spread_over_the_minute_says_so(tmp_path: Path) -> None:
    """No run of seconds has more of it than its messages have."""
    with_seconds(tmp_path, None, SecondCounts((20,) * 60, (1,) * 60))
    told = read_page(shown(tmp_path))
    assert "no second stands out: the loss is spread over the minute" in told
    assert "Other nodes by second" not in told


def test_what_is_missing_and_not_surely_lost_is_not_drawn_as_lost() -> None:
    """Missing messages have the colour of what is unknown where none of them is surely lost."""
    counts = SecondCounts((20,) * 60, (1,) * 60)
    for is_sure, colour in ((True, LIGHT.lossy), (False, LIGHT.unknown)):
        picture = second_chart.draw_seconds(counts, 0, LIGHT, UTC, is_sure=is_sure)
        assert {one: picture.count(f'fill="{one}"') for one in (LIGHT.lossy, LIGHT.unknown)}[colour] == 60


def test_a_window_without_counts_by_second_has_no_such_panel(tmp_path: Path) -> None:
    """As of an older version, or without a loss."""
    with_lost(tmp_path, range(30))
    assert "Loss by second" not in read_page(shown(tmp_path))


def test_without_labels_there_is_no_table_of_them(tmp_path: Path) -> None:
    """Most streams have none."""
    fill(store_url(tmp_path), *build_windows())
    assert "By label" not in read_page(shown(tmp_path))


def test_rows_by_label_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many the first are drawn, and the page says where all are."""
    monkeypatch.setattr(label_panel, "MAX_ROWS", 2)
    with_labels(tmp_path)
    assert "6 rows; the first 2 are shown, and report --json has all." in read_page(shown(tmp_path))


def test_the_holes_of_probes_are_told(tmp_path: Path) -> None:
    """One that fell silent without a bye has told all up to a moment, and no more."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost()[:2])
    now = clock()
    answers = QueryCache(place.store_url, now, settings.load(place.config, flags={}, environ={}))
    told = read_page(run_app(answers, now, page="window", stream="orders", window="2026-01-01T00:00:00Z"))
    assert "probe-of-a" in told
    assert "silent without a bye: it reported everything up to 2026-01-01 00:01 UTC, and nothing after" in told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"window": "2026-01-01T05:00:00Z"}, "The store has no window of 2026-01-01 05:00 UTC for this stream"),
        ({"window": AT_3, "part": "x"}, "part is a number from 1 on, got 'x'"),
        ({"window": AT_3, "part": "0"}, "part is a number from 1 on, got '0'"),
    ],
)
@pytest.mark.usefixtures("healthy")
def test_a_url_that_makes_no_sense_is_one_line(query: dict[str, str], told: str, tmp_path: Path) -> None:
    """And there is a way on."""
    tested = open_page(store_url(tmp_path), page="window", stream="orders", **query)
    assert not tested.exception
    (warning,) = tested.warning
    assert told in warning.value.replace("\\", "")
    assert "stream=orders" in read_page(tested)


@pytest.mark.usefixtures("healthy")
def test_a_window_that_is_no_time_is_told_and_the_stream_shown(tmp_path: Path) -> None:
    """Both what is wrong and what is shown instead."""
    tested = open_page(store_url(tmp_path), page="window", stream="orders", window="yesterday")
    assert not tested.exception
    first, second = (one.value.replace("\\", "") for one in tested.warning)
    assert "window is a time such as" in first
    assert "no window is named: showing the stream" in second


def test_when_the_store_goes_away_the_window_stays(tmp_path: Path) -> None:
    """As it was last known; one that was not read before says why it cannot be."""
    fill(store_url(tmp_path), *build_windows()).dispose()
    now = clock()
    answers, query = QueryCache(store_url(tmp_path), now), {"page": "window", "stream": "orders"}
    run_app(answers, now, **query, window=AT_3)
    (tmp_path / "store.db").write_bytes(b"this is no database any more" * 1_000)
    now.advance(FRESH_FOR_US / 1e6 + 1)
    kept = run_app(answers, now, **query, window=AT_3)
    assert not kept.exception
    assert "1,000 known = 1,000 delivered" in read_page(kept)
    new = run_app(answers, now, **query, window="2026-01-01T00:04:00Z")
    assert not new.exception
    assert "The window of 2026-01-01 00:04 UTC was not read" in "".join(read_elements(new, "error")).replace("\\", "")


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """In tables, links, holes and revisions."""
    for name in HOSTILE:
        (folder := tmp_path / str(HOSTILE.index(name))).mkdir()
        one = window(3, stream=name, names=HOSTILE, lost={HOSTILE[0]: 1}, reasons=(f"{name}: silent",))
        engine = fill(store_url(folder), one)
        lost = tuple(LostIds.from_ids(ids_from_bytes(pack_ids(7))) for _ in HOSTILE)
        changed = {f"{name}.seen": [1, 2], "reasons": [[name], []]}
        made = build_conclusion()._replace(result=one, tally=empty_tally(chain(*HOSTILE)), lost=lost, changed=changed)
        write_conclusions(engine, made)
        tested = open_page(store_url(folder), page="window", stream=name, node=name, window=AT_3, find=name)
        assert not tested.exception
        told = "".join(read_elements(tested, "html"))
        assert "<img src=x" not in told
        assert not any(name in one for one in read_elements(tested, "markdown"))


def test_the_page_of_the_stream_leads_here(tmp_path: Path) -> None:
    """From the window that is chosen, and from the figures of its loss."""
    fill(store_url(tmp_path), *build_windows(lost={"b": 20}))
    told = read_page(open_page(store_url(tmp_path), stream="orders", window=AT_3))
    assert "Everything about this minute" in told
    assert told.count("page=window&amp;stream=orders&amp;window=2026-01-01T00%3A03%3A00Z") == 3


def test_markers_are_told_above_the_charts(tmp_path: Path) -> None:
    """Those of the stream and of all streams; of many the latest ten, and how many more there are."""
    engine = fill(store_url(tmp_path), *build_windows())
    for number in range(12):
        add_marker(engine, Marker(at(1) + number, f"deploy {number}", "ada", "orders" if number % 2 else ""))
    add_marker(engine, Marker(at(1), "other", "ada", "refunds"))
    told = read_page(open_page(store_url(tmp_path), page="stream", stream="orders"))
    assert "Marker: 2026-01-01 00:01:00 UTC deploy 11, by ada" in told
    assert "2 earlier markers are in the charts alone." in told
    assert "Marker: 2026-01-01 00:01:00 UTC deploy 1, by ada" not in told
    assert "other" not in told
