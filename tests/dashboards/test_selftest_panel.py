"""Tests of the self-test on pages."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from hopwatch.dashboards.queries.overview import query_overview
from hopwatch.dashboards.views import sheets
from hopwatch.monitor.selftest.comparison import ProblemKind, SelftestOutcome, SelftestProblem
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store import schema, selftest
from tests.support.dashboard_stores import (
    NOW_MINUTE,
    build_windows,
    chain,
    fill,
    open_page,
    plain,
    read_page,
    store_url,
)
from tests.support.windows import at, window

PROBLEM = SelftestProblem(ProblemKind.WRONG_COUNT, "lost: injected were <2>, measured 1")


def compare(engine: Engine, minute: int, *problems: SelftestProblem) -> None:
    """Let a minute be compared with what was injected."""
    selftest.record_start(engine, at(0))
    selftest.record_minute(engine, InjectedMinute(at(minute)))
    with schema.open_change(engine) as connection:
        selftest.write_outcome(connection, at(minute), SelftestOutcome(4, 4, 0, problems), at(minute + 2))


def test_without_a_self_test_pages_say_nothing_of_it(healthy: Engine, tmp_path: Path) -> None:
    """Neither the overview nor the page of quality."""
    del healthy
    for page in ("overview", "quality"):
        assert "elf-test" not in read_page(open_page(store_url(tmp_path), page=page))


def test_the_overview_says_how_the_self_test_stands(tmp_path: Path) -> None:
    """In a line that leads to the page of quality; its stream, which loses on purpose, is no row."""
    lossy = window(9, stream=SELFTEST_STREAM, lost={"b": 40})
    engine = fill(store_url(tmp_path), *build_windows(), lossy)
    compare(engine, NOW_MINUTE - 2)
    told = read_page(open_page(store_url(tmp_path)))
    assert "1 stream: 1 CLEAN" in plain(told)
    assert (
        "Self-test : 1 of 1 minutes were measured as injected; lost messages found: 4 of 4, called lost by mistake: 0."
        in plain(told).replace("Self-test:", "Self-test :")
    )
    assert "page=quality" in told
    with schema.open_snapshot(engine) as connection:
        assert [row[0] for row in sheets.build_overview(query_overview(connection)).rows] == ["orders"]
    assert 'hw-bad"' not in told


def test_a_minute_that_failed_is_shown_with_its_problems(healthy: Engine, tmp_path: Path) -> None:
    """Each problem in words, and a link to the window; what a problem says is harmless."""
    compare(healthy, NOW_MINUTE - 2, PROBLEM, PROBLEM)
    told = read_page(open_page(store_url(tmp_path), page="quality"))
    assert "0 of 1 minutes were measured as injected" in plain(told)
    assert told.count("lost: injected were &lt;2&gt;, measured 1") == 2
    assert f"stream={SELFTEST_STREAM}" in told
    assert 'hw-bad"' in told


def test_a_comparison_that_is_overdue_is_loud(healthy: Engine, tmp_path: Path) -> None:
    """On both pages."""
    selftest.record_start(healthy, at(0))
    for page in ("overview", "quality"):
        told = read_page(open_page(store_url(tmp_path), page=page))
        assert "minutes are injected or compared no more, there is none" in told
        assert 'hw-bad"' in told


def test_what_the_self_test_rejects_is_not_among_all_streams(tmp_path: Path) -> None:
    """Only the page of its own stream has it."""
    odd = window(9, stream=SELFTEST_STREAM, nodes={"b": {"rejected": 54_321}})
    compare(fill(store_url(tmp_path), *build_windows(), odd), NOW_MINUTE - 2)
    assert "54,321" not in plain(read_page(open_page(store_url(tmp_path), page="quality")))
    assert "54,321" in plain(read_page(open_page(store_url(tmp_path), page="quality", stream=SELFTEST_STREAM)))


def test_a_self_test_alone_leaves_the_first_steps_on_the_overview(tmp_path: Path) -> None:
    """A person without a stream reads how to send the first message; the page of the self-test can be looked at."""
    url, pathways = store_url(tmp_path), {"orders": chain("a", "b")}
    compare(fill(url, window(9, stream=SELFTEST_STREAM), pathways=pathways), NOW_MINUTE - 2)
    assert "Self-test" not in read_page(open_page(url))
    shown = plain(read_page(open_page(url, page="stream", stream=SELFTEST_STREAM)))
    assert "1,000" in shown
